"""Assembles the transaction side of a gateway."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from coordinator_logic.apis import TXN_OFFSET_COMMIT
from streaming.contract.topics import TopicNames
from streaming.gateway.groups.serving import GroupService
from streaming.gateway.options import CLIENT_ID, GatewayOptions
from streaming.gateway.proxy.cluster import Cluster
from streaming.gateway.transactions.completion import TransactionCompleter
from streaming.gateway.transactions.coordinators import TransactionCoordinators
from streaming.gateway.transactions.handlers import TransactionHandlers
from streaming.gateway.transactions.participation_log import ParticipationLog
from streaming.gateway.transactions.recovery import TransactionRecovery
from streaming.gateway.transactions.timeouts import TransactionTimeouts
from streaming.gateway.wire.client_request import ServedApi


@asynccontextmanager
async def serving_transactions(
    options: GatewayOptions, groups: GroupService, cluster: Cluster, timeouts: TransactionTimeouts | None = None
) -> AsyncIterator[Mapping[int, ServedApi]]:
    """Serve the transaction APIs and run recovery, while the block runs; yields the APIs by key.

    They include TxnOffsetCommit, which replaces the one of ``groups``. ``timeouts`` are the defaults of
    :class:`TransactionTimeouts` if omitted.
    """
    timeouts = timeouts or TransactionTimeouts()
    topic = TopicNames(options.topic_prefix).transactions
    participation_log = ParticipationLog(options.bootstrap_servers, topic, CLIENT_ID, options.kafka, timeouts)
    completer = TransactionCompleter(groups.channel, participation_log, timeouts.marker_seconds)
    coordinators = TransactionCoordinators(cluster)
    assert TXN_OFFSET_COMMIT.key is not None
    txn_offset_commit = groups.apis[TXN_OFFSET_COMMIT.key]
    handlers = TransactionHandlers(
        participation_log, completer, coordinators, groups.authorizer, txn_offset_commit, options.transactions_v2
    )
    participation_log.start()
    recovery = TransactionRecovery(participation_log, completer, coordinators, groups.caller, timeouts)
    recovering = asyncio.create_task(recovery.run())
    try:
        yield handlers.apis
    finally:
        recovering.cancel()
        with suppress(asyncio.CancelledError):
            await recovering
        await asyncio.to_thread(participation_log.close)
