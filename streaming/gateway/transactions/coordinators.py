"""The real transaction coordinators, asked how transactions stand."""

import logging
import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from kio.schema.describe_transactions.v0.request import DescribeTransactionsRequest
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.types import TransactionalId
from kio.static.primitive import i8

from streaming.gateway.addresses import Address
from streaming.gateway.broker_client import ASKING_FAILED, asking
from streaming.gateway.transactions.participation import Described
from streaming.gateway.upstream import Forward

__all__ = ["CoordinatorsUnreachable", "Standing", "TransactionCoordinators", "describe"]

log = logging.getLogger(__name__)

TRANSACTION = i8(1)

Standing = Mapping[str, Described | None]
"""By transactional id, as far as the broker has told; None for an id that it does not know."""


class CoordinatorsUnreachable(Exception):
    """Nobody could be asked."""


async def describe(forward: Forward, transactional_ids: Iterable[str]) -> Standing:
    """What the broker behind ``forward`` tells. It is silent about ids that another one coordinates."""
    ids = tuple(map(TransactionalId, transactional_ids))
    answer: Any = await forward(DescribeTransactionsRequest(transactional_ids=ids))
    standing: dict[str, Described | None] = {}
    for told in answer.transaction_states:
        if told.error_code is ErrorCode.none:
            standing[told.transactional_id] = Described(
                told.transaction_state, told.producer_id, told.producer_epoch, told.transaction_start_time
            )
        elif told.error_code is ErrorCode.transactional_id_not_found:
            standing[told.transactional_id] = None
        else:
            log.log(
                logging.WARNING if "authorization" in told.error_code.name else logging.DEBUG,
                "the state of transactional id %r is not told: %s",
                told.transactional_id,
                told.error_code.name.upper(),
            )
    return standing


class TransactionCoordinators:
    """Asks over connections of the gateway's own, with its own rights: Describe on the transactional ids.

    brokers: the addresses of the brokers that there are now.
    librdkafka: the properties of the gateway's own clients, of which ``sasl.*`` counts here.
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

    async def describe(self, transactional_ids: Iterable[str]) -> Standing:
        """How they stand, as far as their coordinators tell. Raises :class:`CoordinatorsUnreachable`."""
        by_coordinator = await self._find(tuple(transactional_ids))
        standing: dict[str, Described | None] = {}
        for address, ids in by_coordinator.items():
            try:
                async with self._connection(address) as ask:
                    standing |= await describe(ask, ids)
            except ASKING_FAILED as failure:
                log.warning("the coordinator at %s does not tell of its transactions: %r", address, failure)
        return standing

    async def _find(self, transactional_ids: tuple[str, ...]) -> Mapping[Address, list[str]]:
        failure: Exception | None = None
        for address in self._brokers():
            try:
                async with self._connection(address) as ask:
                    request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=transactional_ids)
                    answer: Any = await ask(request)
            except ASKING_FAILED as caught:
                failure = caught
                continue
            found: dict[Address, list[str]] = {}
            for coordinator in answer.coordinators:
                if coordinator.error_code is ErrorCode.none:
                    found.setdefault(Address(coordinator.host, coordinator.port), []).append(coordinator.key)
            return found
        raise CoordinatorsUnreachable(f"no broker names the coordinators of transactions: {failure!r}")

    def _connection(self, address: Address) -> AbstractAsyncContextManager[Forward]:
        return asking(address, self._tls, self._client_id, self._timeout, self._librdkafka)
