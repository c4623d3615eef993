"""Queries to the brokers' transaction coordinators."""

import logging
import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from typing import Any

from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.types import TransactionalId
from kio.static.primitive import i8

from streaming.gateway.proxy.broker_client import BROKER_CONNECTION_ERRORS, broker_connection
from streaming.gateway.transactions.participation import TransactionDescription
from streaming.gateway.wire.brokers import Address
from streaming.gateway.wire.forwarding import Forward

__all__ = [
    "CoordinatorsUnreachable",
    "TransactionCoordinators",
    "TransactionDescriptions",
    "describe_transactions",
]

log = logging.getLogger(__name__)

TRANSACTION_KEY_TYPE = i8(1)
EPOCH = datetime.fromtimestamp(0, UTC)
NOT_BEGUN = -1
"""The start of a transaction while none is open, in milliseconds."""

TransactionDescriptions = Mapping[str, TransactionDescription | None]
"""Descriptions by transactional id. None: the coordinator does not know the id. Missing: no coordinator answered."""


class CoordinatorsUnreachable(Exception):
    """No broker could be asked for the transaction coordinators."""


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


class TransactionCoordinators:
    """Queries over the gateway's own connections, with its own principal: it needs DESCRIBE on transactional ids.

    Args:
        brokers: Returns the addresses of the current brokers.
        librdkafka: Properties of the gateway's own clients; the ``sasl.*`` ones are used.
        tls: The TLS context of the connections, None for plaintext.
        client_id: The client id of the requests.
        timeout: Seconds that all queries over one connection may take.
    """

    def __init__(
        self,
        brokers: Callable[[], Iterable[Address]],
        librdkafka: Mapping[str, str],
        tls: ssl.SSLContext | None,
        client_id: str,
        timeout: float,
    ) -> None:
        self._brokers = brokers
        self._librdkafka = librdkafka
        self._tls = tls
        self._client_id = client_id
        self._timeout = timeout

    async def describe(self, transactional_ids: Iterable[str]) -> TransactionDescriptions:
        """Describe transactions, as far as their coordinators answer. Raises :class:`CoordinatorsUnreachable`."""
        ids_by_coordinator = await self._find(tuple(transactional_ids))
        descriptions: dict[str, TransactionDescription | None] = {}
        for address, ids in ids_by_coordinator.items():
            try:
                async with self._connection(address) as forward:
                    descriptions |= await describe_transactions(forward, ids)
            except BROKER_CONNECTION_ERRORS as failure:
                log.warning("the transaction coordinator at %s does not answer: %r", address, failure)
        return descriptions

    async def _find(self, transactional_ids: tuple[str, ...]) -> Mapping[Address, list[str]]:
        failure: Exception | None = None
        for address in self._brokers():
            try:
                async with self._connection(address) as forward:
                    request = FindCoordinatorRequest(key_type=TRANSACTION_KEY_TYPE, coordinator_keys=transactional_ids)
                    response: Any = await forward(request)
            except BROKER_CONNECTION_ERRORS as caught:
                failure = caught
                continue
            found: dict[Address, list[str]] = {}
            for coordinator in response.coordinators:
                if coordinator.error_code is ErrorCode.none:
                    found.setdefault(Address(coordinator.host, coordinator.port), []).append(coordinator.key)
            return found
        raise CoordinatorsUnreachable(f"no broker can be asked for the transaction coordinators: {failure!r}")

    def _connection(self, address: Address) -> AbstractAsyncContextManager[Forward]:
        return broker_connection(address, self._tls, self._client_id, self._timeout, self._librdkafka)
