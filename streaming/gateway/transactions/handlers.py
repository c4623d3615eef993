"""InitProducerId, AddOffsetsToTxn, TxnOffsetCommit and EndTxn. docs/transactions.md explains the steps."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

from kio.index import load_response_schema
from kio.schema.add_offsets_to_txn.v0.request import AddOffsetsToTxnRequest
from kio.schema.end_txn.v0.request import EndTxnRequest
from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v0.request import InitProducerIdRequest
from kio.static.primitive import i16
from kio.static.protocol import Entity
from msgspec import structs

from coordinator_logic.apis import (
    TXN_OFFSET_COMMIT,
    TXN_OFFSET_COMMIT_FIRST_VERSION_ADDING_THE_GROUP,
    TXN_OFFSET_COMMIT_FIRST_VERSION_WITH_TRANSACTION_ABORTABLE,
)
from coordinator_logic.errors import Error
from coordinator_logic.messages import Message, TxnOffsetCommitRequest, TxnOffsetCommitResponse
from streaming.gateway.groups.error_responses import error_response, failed_commit
from streaming.gateway.groups.registry import served_api
from streaming.gateway.security.authorization import Authorizer
from streaming.gateway.security.permissions import Operation
from streaming.gateway.transactions.completion import CompletionFailed, TransactionCompleter, log_outcome
from streaming.gateway.transactions.coordinators import (
    CoordinatorsUnreachable,
    TransactionalIdRefused,
    TransactionCoordinators,
    TransactionDescriptions,
    add_group,
    describe_transactions,
    warn_of_missing_right,
)
from streaming.gateway.transactions.participation import (
    Participation,
    TransactionDescription,
    TransactionPhase,
    new_participation,
    outcome,
    outcome_after_init,
)
from streaming.gateway.transactions.participation_log import ParticipationLog, ParticipationLogUnavailable
from streaming.gateway.wire.client_request import Caller, ClientRequest, Feature, ServedApi
from streaming.gateway.wire.forwarding import Forward, forward_upstream
from streaming.gateway.wire.futures import retrieve_failure

INIT_PRODUCER_ID_VERSIONS = range(7)
ADD_OFFSETS_TO_TXN_VERSIONS = range(5)
END_TXN_VERSIONS = range(6)

TRANSACTION_FEATURE = Feature("transaction.version", 0, 2)
"""The feature of the brokers' transaction coordinators. From level 2 on, producers use transactions V2 (KIP-890)."""

END_TXN_FIRST_VERSION_RAISING_THE_EPOCH = 5
"""From v5 on, the broker gives the producer a new epoch with each transaction (KIP-890)."""


RETRY = ErrorCode.coordinator_load_in_progress
"""The error while the transaction's state is not known: every producer waits and sends the same request again."""

ADDING_ERRORS = {
    # As a broker answers it to a producer.
    ErrorCode.producer_fenced: ErrorCode.invalid_producer_epoch,
    ErrorCode.coordinator_not_available: RETRY,
    ErrorCode.not_coordinator: RETRY,
}
"""The errors of TxnOffsetCommit by those of AddOffsetsToTxn, where they differ."""

ResultT = TypeVar("ResultT")


class TransactionHandlers:
    """The handlers of the transaction APIs.

    A request that reads or changes participations is authorized first: neither the log nor an error may depend on a
    caller without rights to the transactional id.

    ``txn_offset_commit`` is the group API that turns the request into a request event. ``shows_feature`` says whether
    clients see the brokers' ``transaction.version``: the requests of transactions V2 are served without it too, for the
    producers that have begun with V2 at another gateway.
    """

    def __init__(
        self,
        participation_log: ParticipationLog,
        completer: TransactionCompleter,
        coordinators: TransactionCoordinators,
        authorizer: Authorizer,
        txn_offset_commit: ServedApi,
        shows_feature: bool = True,
    ) -> None:
        self._participation_log = participation_log
        self._completer = completer
        self._coordinators = coordinators
        self._authorizer = authorizer
        self._txn_offset_commit = txn_offset_commit
        self._feature = TRANSACTION_FEATURE if shows_feature else None

    @property
    def apis(self) -> Mapping[int, ServedApi]:
        """The served APIs by key."""
        init_key, add_offsets_key = InitProducerIdRequest.__api_key__, AddOffsetsToTxnRequest.__api_key__
        served = [
            served_api("InitProducerId", init_key, INIT_PRODUCER_ID_VERSIONS, self.init_producer_id),
            served_api("AddOffsetsToTxn", add_offsets_key, ADD_OFFSETS_TO_TXN_VERSIONS, self.add_offsets_to_txn),
            served_api("EndTxn", EndTxnRequest.__api_key__, END_TXN_VERSIONS, self.end_txn),
            replace(self._txn_offset_commit, handle=self.txn_offset_commit, brokers_feature=self._feature),
        ]
        return {api.key: api for api in served}

    # ---- steps that a subclass can intercept ----------------------------------------------------------------------

    async def forward(self, payload: Any) -> Any:
        """Send a client's request to the broker, over the client's upstream connection."""
        return await forward_upstream(payload)

    async def complete(self, participations: list[Participation], committed: bool, caller: Caller) -> None:
        """Deliver an outcome to the groups, even if the client disconnects. Raises :class:`CompletionFailed`."""
        await _uncancelled(self._completer.complete(participations, committed, caller))

    # ---- requests -------------------------------------------------------------------------------------------------

    async def add_offsets_to_txn(self, request: ClientRequest) -> Entity:
        """Add a group to a transaction: at the broker first, then with a participation."""
        payload: Any = request.payload
        response = await self.forward(payload)
        if response.error_code is not ErrorCode.none:
            return response  # type: ignore[no-any-return]
        description = await _ongoing_transaction(forward_upstream, payload)
        if description is None:
            # The transaction ended after the broker's response. On a retry the broker reports why.
            return replace(response, error_code=ErrorCode.concurrent_transactions)  # type: ignore[no-any-return]
        participation = new_participation(payload.transactional_id, payload.group_id, description)
        try:
            if not any(_is_same(each, participation) for each in await self._participation_log.read()):
                await self._participation_log.write([participation])
        except ParticipationLogUnavailable:
            return replace(response, error_code=RETRY)  # type: ignore[no-any-return]
        return response  # type: ignore[no-any-return]

    async def txn_offset_commit(self, request: ClientRequest) -> Entity | Message:
        """Commit offsets in a transaction in which the group participates, under the participation's id."""
        refusal = await self._refusal(request.caller, request.payload)
        if refusal is not None:
            return _commit_errors(request, refusal)
        return await _uncancelled(self._commit_offsets(request))

    async def _refusal(self, caller: Caller, payload: Any) -> ErrorCode | None:
        """The error for a caller that may not commit offsets so; a broker checks in the same order."""
        if not await self._authorizer.allows_transaction(caller, payload.transactional_id):
            return ErrorCode.transactional_id_authorization_failed
        if not await self._authorizer.allows(caller, Operation.READ, payload.group_id):
            return ErrorCode.group_authorization_failed
        return None

    async def _commit_offsets(self, request: ClientRequest) -> Entity | Message:
        body: TxnOffsetCommitRequest = request.payload
        try:
            participation = await self._participation_of(request)
            if isinstance(participation, ErrorCode):
                return _commit_errors(request, participation)
            commit = structs.replace(body, producer_id=participation.id)
            response = await self._txn_offset_commit.handle(replace(request, payload=commit))
            phases = {each.id: each.phase for each in await self._participation_log.read()}
            phase = phases.get(participation.id, TransactionPhase.ABORTING)
            if phase is TransactionPhase.ONGOING:
                return response
            # The outcome may precede these offsets in the group's log. Because the participation is written again,
            # recovery finds the outcome and delivers it once more.
            await self._participation_log.write([participation.with_phase(phase)])
            return _commit_errors(request, _no_transaction(request.version))
        except ParticipationLogUnavailable:
            return _commit_errors(request, RETRY)

    async def _participation_of(self, request: ClientRequest) -> Participation | ErrorCode:
        """The ongoing participation under which to commit offsets, or a broker's error for lack of a transaction."""
        body: TxnOffsetCommitRequest = request.payload
        participation = _ongoing_participation(body, await self._participation_log.read())
        if participation is not None:
            return participation
        if request.version < TXN_OFFSET_COMMIT_FIRST_VERSION_ADDING_THE_GROUP:
            return await self._verification_error(body, request.version)
        return await self._added_group(body)

    async def _added_group(self, body: TxnOffsetCommitRequest) -> Participation | ErrorCode:
        """The participation of a group that is not in the producer's transaction yet: at the broker first.

        The client sends TxnOffsetCommit to its group's coordinator, so this asks over the gateway's own connections.
        """
        try:
            async with self._coordinators.connection(body.transactional_id) as forward:
                producer = body.transactional_id, body.producer_id, body.producer_epoch
                error = await add_group(forward, *producer, body.group_id)
                if error is not ErrorCode.none:
                    return ADDING_ERRORS.get(error, error)
                description = await _ongoing_transaction(forward, body)
                if description is None:
                    return ErrorCode.concurrent_transactions
                participation = new_participation(body.transactional_id, body.group_id, description)
                await self._participation_log.write([participation])
                return participation if await self._is_in_time(participation, forward, body) else RETRY
        except CoordinatorsUnreachable:
            return RETRY
        except TransactionalIdRefused:
            refused = ErrorCode.transactional_id_authorization_failed
            warn_of_missing_right(refused, body.transactional_id, body.group_id)
            return refused

    async def _is_in_time(self, participation: Participation, forward: Forward, body: TxnOffsetCommitRequest) -> bool:
        """Whether the transaction is ongoing after the participation was written; if not, erase it.

        EndTxn reads the participations once more after the broker has ended the transaction. One that it may not have
        read was written after that, and then the transaction is no longer ongoing.
        """
        is_ongoing = False
        try:
            is_ongoing = await _ongoing_transaction(forward, body) is not None
        finally:
            if not is_ongoing:
                # The repeated request would find it, and commit offsets that follow no end.
                await self._participation_log.erase([participation])
        return is_ongoing

    async def end_txn(self, request: ClientRequest) -> Entity:
        """End a transaction: write the intended outcome, forward the request, deliver the outcome, respond."""
        payload: Any = request.payload
        raises_epoch = payload.__version__ >= END_TXN_FIRST_VERSION_RAISING_THE_EPOCH
        if not await self._authorizer.allows_transaction(request.caller, payload.transactional_id):
            return _error(payload, ErrorCode.transactional_id_authorization_failed)
        try:
            participations = await self._participations_of_producer(payload)
            if participations:
                phase = TransactionPhase.ending(payload.committed)
                await self._participation_log.write(each.with_phase(phase) for each in participations)
            response = await self.forward(payload)
            if response.error_code is not ErrorCode.none:
                return response  # type: ignore[no-any-return]
            if raises_epoch:
                participations = await self._participations_of_producer(payload)
            if participations:
                await self.complete(participations, payload.committed, request.caller)
        except (ParticipationLogUnavailable, CompletionFailed):
            # The broker answers the repeated request in the same way.
            return _error(payload, RETRY)
        return response  # type: ignore[no-any-return]

    async def init_producer_id(self, request: ClientRequest) -> Entity:
        """Initialize a producer, after completing its last transaction."""
        payload: Any = request.payload
        transactional_id = payload.transactional_id
        if getattr(payload, "keep_prepared_txn", False):
            # A transaction that goes on with a new epoch would be taken for an aborted one. Brokers refuse it as well.
            return _error(payload, ErrorCode.unsupported_version, producer_epoch=i16(-1))
        if transactional_id is None:
            return await self.forward(payload)  # type: ignore[no-any-return]
        try:
            if await self._participations(transactional_id):
                await self._complete_ended(transactional_id, request.caller)
            response = await self.forward(payload)
            if response.error_code is ErrorCode.none:
                await self._complete_after_init(response, transactional_id, request.caller)
        except (ParticipationLogUnavailable, CompletionFailed):
            return _error(payload, RETRY, producer_epoch=i16(-1))
        return response  # type: ignore[no-any-return]

    async def _complete_ended(self, transactional_id: str, caller: Caller) -> None:
        """Complete what has ended already: the broker may forget the outcome with InitProducerId."""
        descriptions = await self._describe(transactional_id)
        if transactional_id not in descriptions:
            return
        for participation in await self._participations(transactional_id):
            committed = outcome(participation, descriptions[transactional_id])
            if committed is not None:
                log_outcome(participation, committed, "found before InitProducerId")
                await self.complete([participation], committed, caller)

    async def _complete_after_init(self, response: Any, transactional_id: str, caller: Caller) -> None:
        """Complete what was open when InitProducerId was forwarded: it had ended when the broker responded."""
        for participation in await self._participations(transactional_id):
            if not participation.belongs_to(transactional_id, response.producer_id, response.producer_epoch):
                committed = outcome_after_init(participation, response.producer_id, response.producer_epoch)
                log_outcome(participation, committed, "ended by InitProducerId")
                await self.complete([participation], committed, caller)

    async def _participations_of_producer(self, payload: Any) -> list[Participation]:
        return [each for each in await self._participation_log.read() if _is_of_producer(each, payload)]

    async def _participations(self, transactional_id: str) -> list[Participation]:
        return [each for each in await self._participation_log.read() if each.transactional_id == transactional_id]

    async def _describe(self, transactional_id: str) -> TransactionDescriptions:
        return await describe_transactions(forward_upstream, [transactional_id])

    async def _verification_error(self, payload: Any, version: int) -> ErrorCode:
        """The error that a broker answers for offsets of a transaction that it does not have.

        The client sends TxnOffsetCommit to its group's coordinator, so this asks over the gateway's own connections.
        """
        try:
            descriptions = await self._coordinators.describe([payload.transactional_id])
        except CoordinatorsUnreachable:
            return RETRY
        if payload.transactional_id not in descriptions:
            return RETRY
        description = descriptions[payload.transactional_id]
        if description is None or description.producer_id != payload.producer_id:
            return ErrorCode.invalid_producer_id_mapping
        if description.producer_epoch != payload.producer_epoch:
            return ErrorCode.invalid_producer_epoch
        return _no_transaction(version)


async def _ongoing_transaction(forward: Forward, payload: Any) -> TransactionDescription | None:
    """The producer's transaction according to the broker behind ``forward``; None if the broker has no such one."""
    description = (await describe_transactions(forward, [payload.transactional_id])).get(payload.transactional_id)
    return description if description is not None and _is_ongoing(description, payload) else None


def _is_ongoing(description: TransactionDescription, payload: Any) -> bool:
    described = description.state, description.producer_id, description.producer_epoch
    return described == ("Ongoing", payload.producer_id, payload.producer_epoch)


def _is_same(existing: Participation, new: Participation) -> bool:
    """Whether both are of the same group in the same transaction, which is still ongoing."""
    return existing == structs.replace(new, id=existing.id)


def _is_of_producer(participation: Participation, payload: Any) -> bool:
    return participation.belongs_to(payload.transactional_id, payload.producer_id, payload.producer_epoch)


def _ongoing_participation(payload: Any, participations: list[Participation]) -> Participation | None:
    """The participation under which to commit; the newest, since a repeated AddOffsetsToTxn may leave several."""
    matching = [
        each
        for each in participations
        if each.phase is TransactionPhase.ONGOING
        and each.group_id == payload.group_id
        and _is_of_producer(each, payload)
    ]
    return max(matching, key=lambda each: each.transaction_start_time_ms, default=None)


def _error(request: Any, error: ErrorCode, **others: Any) -> Entity:
    """A response in the request's version that says nothing but the error."""
    response: Any = load_response_schema(request.__api_key__, request.__version__)
    return response(throttle_time=timedelta(0), error_code=error, **others)  # type: ignore[no-any-return]


def _no_transaction(version: int) -> ErrorCode:
    """The error of TxnOffsetCommit for offsets of no open transaction. A producer that gets the older one ends."""
    knows_abortable = version >= TXN_OFFSET_COMMIT_FIRST_VERSION_WITH_TRANSACTION_ABORTABLE
    return ErrorCode.transaction_abortable if knows_abortable else ErrorCode.invalid_txn_state


def _commit_errors(request: ClientRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """A response to TxnOffsetCommit with one error for all partitions."""
    body: TxnOffsetCommitRequest = request.payload
    if error is RETRY:
        return error_response(TXN_OFFSET_COMMIT, body, request.version, Error.COORDINATOR_LOAD_IN_PROGRESS)
    return TxnOffsetCommitResponse([failed_commit(topic, error) for topic in body.topics])


async def _uncancelled(work: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run ``work`` to its end even if the client disconnects in the meantime."""
    task = asyncio.ensure_future(work)
    # Recovery completes the transaction of a client that has gone.
    task.add_done_callback(retrieve_failure)
    return await asyncio.shield(task)
