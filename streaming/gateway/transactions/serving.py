"""The transactional side of a gateway, put together."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from streaming.gateway.cluster import CLIENT_ID, Cluster
from streaming.gateway.groups import GroupSide
from streaming.gateway.options import GatewayOptions
from streaming.gateway.request import Caller, ServedApi
from streaming.gateway.sasl import ANONYMOUS
from streaming.gateway.tls import upstream_context
from streaming.gateway.transactions.apis import TXN_OFFSET_COMMIT, TransactionApis
from streaming.gateway.transactions.coordinators import TransactionCoordinators
from streaming.gateway.transactions.ledger import Ledger
from streaming.gateway.transactions.settlement import Settlement, Settler
from streaming.topics import TopicNames

__all__ = ["serving_transactions"]


@asynccontextmanager
async def serving_transactions(
    options: GatewayOptions, groups: GroupSide, cluster: Cluster
) -> AsyncIterator[Mapping[int, ServedApi]]:
    """Serve the requests about transactions, and settle what is left over, while the block runs; the APIs by key.

    They include TxnOffsetCommit, in the place of the groups' own.
    """
    ledger = Ledger(options.bootstrap_servers, TopicNames(options.topic_prefix).transactions, CLIENT_ID, options.kafka)
    settlement = Settlement(groups.channel, ledger)
    coordinators = TransactionCoordinators(
        lambda: [broker.address for broker in cluster.brokers.values()],
        options.kafka,
        upstream_context(options.kafka),
        CLIENT_ID,
        options.limits.upstream_connect_timeout_ms / 1000,
    )
    name = options.kafka.get("sasl.username")
    gateway = Caller(CLIENT_ID, socket.gethostname(), f"User:{name}" if name else ANONYMOUS)
    ledger.start()
    settling = asyncio.create_task(Settler(ledger, settlement, coordinators, gateway).run())
    try:
        yield TransactionApis(ledger, settlement, coordinators, groups.apis[TXN_OFFSET_COMMIT]).apis
    finally:
        settling.cancel()
        with suppress(asyncio.CancelledError):
            await settling
        await asyncio.to_thread(ledger.close)
