"""Requests to the brokers' transaction coordinators."""

import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from kio.schema.add_offsets_to_txn.v4.request import AddOffsetsToTxnRequest
from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.types import GroupId, ProducerId, TransactionalId
from kio.static.primitive import i8, i16

from streaming.contract.output.broker_failures import connection_failed
from streaming.contract.rights.refusals import not_allowed
from streaming.contract.rights.table import Kind, Operation
from streaming.gateway.proxy.broker_client import BROKER_CONNECTION_ERRORS
from streaming.gateway.proxy.cluster import Cluster
from streaming.gateway.transactions.participation import TransactionDescription
from streaming.gateway.wire.brokers import Address, ClusterUnreachable
from streaming.gateway.wire.forwarding import Forward

log = logging.getLogger(__name__)

TRANSACTION_KEY_TYPE = i8(1)
EPOCH = datetime.fromtimestamp(0, UTC)
NOT_BEGUN = -1
"""The start of a transaction while none is open, in milliseconds."""

TransactionDescriptions = Mapping[str, TransactionDescription | None]
"""Descriptions by transactional id. None: the coordinator does not know the id. Missing: no coordinator answered."""


class CoordinatorsUnreachable(Exception):
    """A transaction coordinator is not known, or does not answer."""


class TransactionalIdRefused(Exception):
    """The brokers do not allow the gateway to describe a transactional id."""


async def describe_transactions(forward: Forward, transactional_ids: Iterable[str]) -> TransactionDescriptions:
    """Ask the broker behind ``forward``. The result lacks ids that another broker coordinates."""
    ids = tuple(map(TransactionalId, transactional_ids))
    response: Any = await forward(DescribeTransactionsRequest(transactional_ids=ids))
    descriptions: dict[str, TransactionDescription | None] = {}
    for state in response.transaction_states:
        if state.error_code is ErrorCode.none:
            began = state.transaction_start_time
            began_ms = NOT_BEGUN if began is None else (began - EPOCH) // timedelta(milliseconds=1)
            descriptions[state.transactional_id] = TransactionDescription(
                state.transaction_state, state.producer_id, state.producer_epoch, began_ms
            )
        elif state.error_code is ErrorCode.transactional_id_not_found:
            descriptions[state.transactional_id] = None
        else:
            log.log(
                logging.WARNING if "authorization" in state.error_code.name else logging.DEBUG,
                "cannot describe the transaction of transactional id %r: %s",
                state.transactional_id,
                state.error_code.name.upper(),
            )
    return descriptions


async def add_group(
    forward: Forward, transactional_id: str, producer_id: int, producer_epoch: int, group_id: str
) -> ErrorCode:
    """Add a group to a producer's transaction, which this may begin, at the broker behind ``forward``."""
    request = AddOffsetsToTxnRequest(
        transactional_id=TransactionalId(transactional_id),
        producer_id=ProducerId(producer_id),
        producer_epoch=i16(producer_epoch),
        group_id=GroupId(group_id),
    )
    response: Any = await forward(request)
    warn_of_missing_right(response.error_code, transactional_id, group_id)
    return response.error_code  # type: ignore[no-any-return]


class TransactionCoordinators:
    """Requests over the gateway's own connections, with its own principal.

    It needs WRITE on transactional ids to add groups, and READ on the groups; to describe transactions, DESCRIBE.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def describe(self, transactional_ids: Iterable[str]) -> TransactionDescriptions:
        """Describe transactions, as far as their coordinators answer. Raises :class:`CoordinatorsUnreachable`."""
        ids_by_coordinator, _ = await self._find(tuple(transactional_ids))
        descriptions: dict[str, TransactionDescription | None] = {}
        for address, ids in ids_by_coordinator.items():
            try:
                async with self._cluster.connection(address) as forward:
                    descriptions |= await describe_transactions(forward, ids)
            except BROKER_CONNECTION_ERRORS as failure:
                log.warning(
                    "the transaction coordinator at %s does not answer: %s", address, connection_failed(failure)
                )
        return descriptions

    @asynccontextmanager
    async def connection(self, transactional_id: str) -> AsyncIterator[Forward]:
        """Connect to the coordinator of a transactional id.

        Raises :class:`CoordinatorsUnreachable`, also when the coordinator does not answer a request of the block, and
        :class:`TransactionalIdRefused`.
        """
        found, refused = await self._find((transactional_id,))
        if refused:
            raise TransactionalIdRefused(transactional_id)
        address = next(iter(found), None)
        if address is None:
            raise CoordinatorsUnreachable(f"transactional id {transactional_id!r} has no coordinator at the moment")
        try:
            async with self._cluster.connection(address) as forward:
                yield forward
        except BROKER_CONNECTION_ERRORS as failure:
            reason = f"the transaction coordinator at {address} does not answer: {connection_failed(failure)}"
            log.warning("a group is not added to the transaction of %r: %s", transactional_id, reason)
            raise CoordinatorsUnreachable(reason) from failure

    async def _find(self, transactional_ids: tuple[str, ...]) -> tuple[Mapping[Address, list[str]], set[str]]:
        """The ids by the addresses of their coordinators, and those that the gateway may not describe."""
        request = FindCoordinatorRequest(key_type=TRANSACTION_KEY_TYPE, coordinator_keys=transactional_ids)
        try:
            response = await self._cluster.ask_any(request)
        except ClusterUnreachable as failure:
            reason = f"no broker can be asked for the transaction coordinators: {failure.__cause__!r}"
            raise CoordinatorsUnreachable(reason) from failure
        found: dict[Address, list[str]] = {}
        refused = set()
        for coordinator in response.coordinators:
            if coordinator.error_code is ErrorCode.none:
                found.setdefault(Address(coordinator.host, coordinator.port), []).append(coordinator.key)
            elif coordinator.error_code is ErrorCode.transactional_id_authorization_failed:
                refused.add(coordinator.key)
        return found, refused


def warn_of_missing_right(error: ErrorCode, transactional_id: str, group_id: str) -> None:
    """Tell the operator, since the client itself is authorized."""
    refused = {
        ErrorCode.transactional_id_authorization_failed: (Operation.WRITE, transactional_id, Kind.TRANSACTIONAL_ID),
        ErrorCode.group_authorization_failed: (Operation.READ, group_id, Kind.GROUP),
    }
    if error in refused:
        log.warning(
            "the gateway cannot add group %r to the transaction of transactional id %r: %s; with "
            "transactions-v2=false on all gateways, it need not",
            group_id,
            transactional_id,
            not_allowed(*refused[error]),
        )
