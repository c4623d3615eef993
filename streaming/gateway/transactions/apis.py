"""AddOffsetsToTxn, EndTxn, InitProducerId, and what stands before TxnOffsetCommit. See the package's description."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from kio.index import load_entity_module, load_response_schema
from kio.schema.errors import ErrorCode
from kio.schema.types import ProducerId
from kio.static.constants import EntityType
from kio.static.primitive import i16
from kio.static.protocol import Entity

from streaming.gateway.codec import KNOWN_VERSIONS
from streaming.gateway.request import Caller, ClientRequest, Handler, ServedApi
from streaming.gateway.transactions.coordinators import (
    CoordinatorsUnreachable,
    Standing,
    TransactionCoordinators,
    describe,
)
from streaming.gateway.transactions.ledger import Ledger, LedgerUnavailable
from streaming.gateway.transactions.participation import (
    Described,
    Participation,
    Phase,
    new_participation,
    outcome,
    outcome_after_init,
)
from streaming.gateway.transactions.settlement import Settlement, Unsettled, log_outcome
from streaming.gateway.upstream import Forward, forward_upstream

__all__ = ["TransactionApis"]

INIT_PRODUCER_ID, ADD_OFFSETS_TO_TXN, END_TXN, TXN_OFFSET_COMMIT = 22, 25, 26, 28
LAST_INIT_PRODUCER_ID_VERSION = 5
"""v6 can keep a transaction that was prepared (KIP-939), which no broker supports yet."""
LAST_END_TXN_VERSION = 4

RETRY = ErrorCode.coordinator_load_in_progress
"""The answer while it cannot be said how things stand: every producer waits, and sends the same once more."""

FIRST_TXN_OFFSET_COMMIT_VERSION_WITH_LOADING = 2
"""Producers before 2.0 crash over the other one (KAFKA-7296)."""

ResultT = TypeVar("ResultT")


class TransactionApis:
    """The handlers. ``txn_offset_commit`` is the one that makes an event of the request.

    forward: asks a real broker as the client whose request is handled.
    """

    def __init__(
        self,
        ledger: Ledger,
        settlement: Settlement,
        coordinators: TransactionCoordinators,
        txn_offset_commit: ServedApi,
        forward: Forward = forward_upstream,
    ) -> None:
        self._ledger = ledger
        self._settlement = settlement
        self._coordinators = coordinators
        self._txn_offset_commit = txn_offset_commit
        self._forward = forward

    @property
    def apis(self) -> Mapping[int, ServedApi]:
        """The served APIs by key."""
        committing = self._txn_offset_commit
        served = [
            _served("InitProducerId", INIT_PRODUCER_ID, LAST_INIT_PRODUCER_ID_VERSION, self.init_producer_id),
            _served("AddOffsetsToTxn", ADD_OFFSETS_TO_TXN, None, self.add_offsets_to_txn),
            _served("EndTxn", END_TXN, LAST_END_TXN_VERSION, self.end_txn),
            replace(committing, handle=self.txn_offset_commit),
        ]
        return {api.key: api for api in served}

    # ---- the steps -----------------------------------------------------------------------------------------------

    async def ask_broker(self, payload: Any) -> Any:
        """Send a client's own request to the broker, over its own connection."""
        return await self._forward(payload)

    async def settle(self, participations: list[Participation], committed: bool, caller: Caller) -> None:
        """Tell the groups. Raises :class:`Unsettled`."""
        await _unhindered(self._settlement.settle(participations, committed, caller))

    # ---- the requests --------------------------------------------------------------------------------------------

    async def add_offsets_to_txn(self, request: ClientRequest) -> Entity:
        """Take a group into a transaction: by the broker, then by a line of the group's."""
        asked: Any = request.payload
        answer = await self.ask_broker(asked)
        if answer.error_code is not ErrorCode.none:
            return answer  # type: ignore[no-any-return]
        producer = asked.transactional_id, asked.producer_id, asked.producer_epoch
        described = (await self._describe(asked.transactional_id)).get(asked.transactional_id)
        if described is None or not _is_under_way(described, asked):
            # It has ended since the broker answered. Asked again, the broker will say what is the matter.
            return replace(answer, error_code=ErrorCode.concurrent_transactions)  # type: ignore[no-any-return]
        participation = new_participation(asked.transactional_id, asked.group_id, described)
        try:
            lines = await self._ledger.read()
            if not any(
                line.belongs_to(*producer)
                and line.group_id == asked.group_id
                and line.transaction_start_time_ms == described.transaction_start_time_ms
                and line.phase is Phase.ONGOING
                for line in lines
            ):
                await self._ledger.write([participation])
        except LedgerUnavailable:
            return replace(answer, error_code=RETRY)  # type: ignore[no-any-return]
        return answer  # type: ignore[no-any-return]

    async def txn_offset_commit(self, request: ClientRequest) -> Entity:
        """Commit offsets in a transaction that the group has a part in, under the id of that part."""
        return await _unhindered(self._commit_offsets(request))

    async def _commit_offsets(self, request: ClientRequest) -> Entity:
        asked: Any = request.payload
        try:
            line = _line_of(asked, await self._ledger.read())
            if line is None:
                return _commit_refusal(asked, await self._why_unverified(asked))
            payload = replace(asked, producer_id=ProducerId(line.id))
            answer = await self._txn_offset_commit.handle(replace(request, payload=payload))
            now = {current.id: current.phase for current in await self._ledger.read()}.get(line.id)
            if now is Phase.ONGOING:
                return answer
            # The end may be in the group's log already, before these offsets. With the line there (again), somebody
            # looks how the transaction ended, and tells the group once more.
            await self._ledger.write([line.in_phase(now or Phase.ABORTING)])
            return _commit_refusal(asked, ErrorCode.invalid_txn_state)
        except LedgerUnavailable:
            return _commit_refusal(asked, RETRY)

    async def end_txn(self, request: ClientRequest) -> Entity:
        """End a transaction: the intention, the broker, the outcome, the answer."""
        asked: Any = request.payload
        producer = asked.transactional_id, asked.producer_id, asked.producer_epoch
        try:
            lines = [line for line in await self._ledger.read() if line.belongs_to(*producer)]
            if lines:
                await self._ledger.write(_with_intention(lines, asked.committed))
        except LedgerUnavailable:
            return _end_refusal(request, RETRY)
        answer = await self.ask_broker(asked)
        if not lines or answer.error_code is not ErrorCode.none:
            return answer  # type: ignore[no-any-return]
        try:
            await self.settle(lines, asked.committed, request.caller)
        except Unsettled:
            # The broker answers the same request the same way once more.
            return replace(answer, error_code=RETRY)  # type: ignore[no-any-return]
        return answer  # type: ignore[no-any-return]

    async def init_producer_id(self, request: ClientRequest) -> Entity:
        """Begin anew with a transactional id, when the outcome of the last transaction is known."""
        asked: Any = request.payload
        transactional_id = asked.transactional_id
        if transactional_id is None:
            return await self.ask_broker(asked)  # type: ignore[no-any-return]
        try:
            if await self._lines_of(transactional_id):
                await self._settle_what_ended(transactional_id, request.caller)
            answer = await self.ask_broker(asked)
            if answer.error_code is ErrorCode.none:
                await self._settle_before(answer, transactional_id, request.caller)
        except (LedgerUnavailable, Unsettled):
            return _init_refusal(request, RETRY)
        return answer  # type: ignore[no-any-return]

    async def _settle_what_ended(self, transactional_id: str, caller: Caller) -> None:
        standing = await self._describe(transactional_id)
        if transactional_id not in standing:
            return
        for line in await self._lines_of(transactional_id):
            committed = outcome(line, standing[transactional_id])
            if committed is not None:
                log_outcome(line, committed, "since the producer begins anew")
                await self.settle([line], committed, caller)

    async def _settle_before(self, answer: Any, transactional_id: str, caller: Caller) -> None:
        """What was still open when the broker was asked; it has ended before the broker answered."""
        for line in await self._lines_of(transactional_id):
            if not line.belongs_to(transactional_id, answer.producer_id, answer.producer_epoch):
                committed = outcome_after_init(line, answer.producer_id, answer.producer_epoch)
                log_outcome(line, committed, "just before the producer began anew")
                await self.settle([line], committed, caller)

    async def _lines_of(self, transactional_id: str) -> list[Participation]:
        return [line for line in await self._ledger.read() if line.transactional_id == transactional_id]

    async def _describe(self, transactional_id: str) -> Standing:
        return await describe(self._forward, [transactional_id])

    async def _why_unverified(self, asked: Any) -> ErrorCode:
        """What a broker would say of offsets that belong to no transaction that it has.

        The client asks the coordinator of its group, so its connection need not lead to that of the transaction.
        """
        try:
            standing = await self._coordinators.describe([asked.transactional_id])
        except CoordinatorsUnreachable:
            standing = {}
        if asked.transactional_id not in standing:
            return ErrorCode.invalid_txn_state
        described = standing[asked.transactional_id]
        if described is None or described.producer_id != asked.producer_id:
            return ErrorCode.invalid_producer_id_mapping
        if described.producer_epoch != asked.producer_epoch:
            return ErrorCode.invalid_producer_epoch
        return ErrorCode.invalid_txn_state


def _served(name: str, key: int, last: int | None, handle: Handler) -> ServedApi:
    lowest, highest = KNOWN_VERSIONS[key]
    return ServedApi(name, key, lowest, highest if last is None else min(last, highest), handle)


def _is_under_way(described: Described, asked: Any) -> bool:
    told = described.state, described.producer_id, described.producer_epoch
    return told == ("Ongoing", asked.producer_id, asked.producer_epoch)


def _line_of(asked: Any, lines: list[Participation]) -> Participation | None:
    """The line under which offsets are committed; of several, which a repeated AddOffsetsToTxn leaves, the last."""
    fitting = [
        line
        for line in lines
        if line.belongs_to(asked.transactional_id, asked.producer_id, asked.producer_epoch)
        and line.group_id == asked.group_id
        and line.phase is Phase.ONGOING
    ]
    return max(fitting, key=lambda line: line.transaction_start_time_ms, default=None)


def _with_intention(lines: list[Participation], committed: bool) -> list[Participation]:
    return [line.in_phase(Phase.ending(committed)) for line in lines]


def _init_refusal(request: ClientRequest, error: ErrorCode) -> Entity:
    response: Any = load_response_schema(INIT_PRODUCER_ID, request.version)
    return response(throttle_time=timedelta(0), error_code=error, producer_epoch=i16(-1))  # type: ignore[no-any-return]


def _end_refusal(request: ClientRequest, error: ErrorCode) -> Entity:
    response: Any = load_response_schema(END_TXN, request.version)
    return response(throttle_time=timedelta(0), error_code=error)  # type: ignore[no-any-return]


def _commit_refusal(asked: Any, error: ErrorCode) -> Entity:
    """The answer to TxnOffsetCommit with one error for all partitions."""
    version = asked.__version__
    if error is RETRY and version < FIRST_TXN_OFFSET_COMMIT_VERSION_WITH_LOADING:
        error = ErrorCode.coordinator_not_available
    module: Any = load_entity_module("txn_offset_commit", version, EntityType.response)
    topics = []
    for topic in asked.topics:
        partitions = tuple(
            module.TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
            for partition in topic.partitions
        )
        topics.append(module.TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions))
    return module.TxnOffsetCommitResponse(throttle_time=timedelta(0), topics=tuple(topics))  # type: ignore[no-any-return]


async def _unhindered(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Finish the work even if the client goes away in the middle of it."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(_retrieve)
    return await asyncio.shield(task)


def _retrieve(task: "asyncio.Future[Any]") -> None:
    """Nobody may be left to be told of a failure, and nobody has to: the settler goes on."""
    if not task.cancelled():
        task.exception()
