"""The exchange that brings a member into a generation: JoinGroup, then SyncGroup.

The polling thread advances it as far as the time of each call allows. The client's reader thread records the answers as
they arrive, so that heartbeats start with the generation even while the application is busy with earlier records.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic

from coordinator_logic import apis
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    MemberAssignment,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
)
from streaming.client.answers import Answer, ResponseT
from streaming.client.coordinator_client import JOIN_TIMEOUT_MARGIN_MS, CoordinatorClient
from streaming.client.errors import CoordinatorError, FencedInstanceId, coordinator_error
from streaming.client.membership.common import wait_in_poll
from streaming.client.membership.membership_state import Generation, Membership
from streaming.client.membership.types import MemberCallbacks, MemberConfig, MemberEventKind
from streaming.contract.output.text import counted

LONGEST_REASON = 255
"""Kafka's clients truncate reasons to this length (KIP-800)."""


class _Exchange(Generic[ResponseT]):
    """A JoinGroup or SyncGroup that was sent. ``answered`` is set under the membership's lock."""

    def __init__(self, generation: Generation) -> None:
        self.generation = generation
        self.answered: Future[Answer[ResponseT]] | None = None


class Joining:
    """Brings a member into a generation, and calls the callbacks. Belongs to the polling thread."""

    def __init__(
        self,
        client: CoordinatorClient,
        callbacks: MemberCallbacks,
        config: MemberConfig,
        membership: Membership,
        observe: Callable[[MemberEventKind, Generation, str], None],
        record_poll: Callable[[], None],
    ) -> None:
        self._client = client
        self._callbacks = callbacks
        self._config = config
        self._membership = membership
        self._observe = observe
        self._record_poll = record_poll
        self._join: _Exchange[JoinGroupResponse] | None = None
        self._sync: _Exchange[SyncGroupResponse] | None = None
        self._revoked = False
        self._has_assignment = False
        self._failures = 0
        self._retry_at = 0.0
        self._answer_timeout_ms = max(client.request_timeout_ms, config.rebalance_timeout_ms + JOIN_TIMEOUT_MARGIN_MS)

    def advance(self, deadline: float) -> bool:
        """Continue until the member has its assignment (True) or until ``deadline`` of the monotonic clock (False)."""
        while True:
            if self._membership.failed:
                self.give_up_assignment()
                self._membership.raise_if_failed()
            if self._join is not None:
                if not self._wait_for(self._join, deadline):
                    return False
                self._process_join_answer(self._join)
            elif self._sync is not None:
                if not self._wait_for(self._sync, deadline):
                    return False
                self._process_sync_answer(self._sync)
            elif not self._membership.rejoin_needed:
                return True
            elif self._wait_for_backoff(deadline):
                self._revoke_before_join()
                self._send_join()
            else:
                return False

    def give_up_assignment(self) -> None:
        """Call ``on_revoked`` before the member leaves, or ``on_lost`` if it is no longer a member."""
        with self._membership.changed:
            self._join = self._sync = None
        had_assignment, self._has_assignment = self._has_assignment, False
        self._revoked = False
        if had_assignment and (self._membership.failed or not self._membership.generation.is_member):
            self._callbacks.on_lost()
        elif had_assignment:
            self._callbacks.on_revoked(leaving=True)

    # ----------------------------------------------------------------------------------------------------------
    # JoinGroup

    def _revoke_before_join(self) -> None:
        """Call ``on_revoked`` before a rebalance, once however often the join is retried."""
        if self._has_assignment and not self._revoked and self._membership.generation.is_member:
            self._revoked = True
            self._callbacks.on_revoked(leaving=False)

    def _send_join(self) -> None:
        generation, reason = self._membership.begin_join()
        try:
            # From here on only the answer can change the member's identity.
            if self._has_assignment and not generation.is_member:
                self._has_assignment = False
                self._callbacks.on_lost()
            self._revoked = True
            self._request_join(generation, reason)
        except BaseException:
            self._join = None
            self._membership.abandon_join(reason)
            raise

    def _request_join(self, generation: Generation, reason: str) -> None:
        request = JoinGroupRequest(
            self._config.group_id,
            self._config.session_timeout_ms,
            self._config.protocol_type,
            [Protocol(name, metadata) for name, metadata in self._callbacks.protocols()],
            self._config.rebalance_timeout_ms,
            generation.member_id,
            self._config.group_instance_id,
            reason[:LONGEST_REASON] or None,
        )
        self._join = exchange = _Exchange[JoinGroupResponse](generation)

        def on_answer(answered: Future[Answer[JoinGroupResponse]]) -> None:
            joined = _successful(answered)
            with self._membership.changed:
                if self._join is not exchange:
                    return  # the member has left since, and may have sent another JoinGroup
                if joined is not None:
                    exchange.generation = Generation(joined.generation_id, joined.member_id, joined.protocol_name)
                    self._membership.joined(exchange.generation)
                exchange.answered = answered
                self._membership.changed.notify_all()

        self._observe(MemberEventKind.JOINING, generation, reason)
        sent = self._client.ask(apis.JOIN_GROUP, self._config.group_id, request, timeout_ms=self._answer_timeout_ms)
        sent.add_done_callback(on_answer)

    def _process_join_answer(self, exchange: _Exchange[JoinGroupResponse]) -> None:
        self._join = None
        assert exchange.answered is not None
        response = _successful(exchange.answered)
        if response is None:
            self._handle_failure(exchange.answered, "JoinGroup")
        elif exchange.generation == self._membership.generation:
            is_leader = response.leader == response.member_id
            self._observe(MemberEventKind.JOINED, exchange.generation, "as the leader" if is_leader else "")
            try:
                assignments = self._assign(response) if is_leader else []
                self._sync = self._request_sync(exchange.generation, assignments)
            except BaseException:
                self._membership.abandon_join("the leader could not assign")
                raise

    def _assign(self, joined: JoinGroupResponse) -> list[MemberAssignment]:
        self._callbacks.on_elected(joined.members)
        if joined.skip_assignment:
            return []
        assigned = self._callbacks.assign(joined.protocol_name or "", joined.members)
        return [MemberAssignment(member_id, assignment) for member_id, assignment in assigned.items()]

    # ----------------------------------------------------------------------------------------------------------
    # SyncGroup

    def _request_sync(
        self, generation: Generation, assignments: list[MemberAssignment]
    ) -> _Exchange[SyncGroupResponse]:
        request = SyncGroupRequest(
            self._config.group_id,
            generation.generation_id,
            generation.member_id,
            self._config.group_instance_id,
            self._config.protocol_type,
            generation.protocol_name,
            assignments,
        )
        exchange = _Exchange[SyncGroupResponse](generation)

        def on_answer(answered: Future[Answer[SyncGroupResponse]]) -> None:
            with self._membership.changed:
                if _successful(answered) is not None:
                    self._membership.synced(generation)
                exchange.answered = answered
                self._membership.changed.notify_all()

        sent = self._client.ask(apis.SYNC_GROUP, self._config.group_id, request, timeout_ms=self._answer_timeout_ms)
        sent.add_done_callback(on_answer)
        return exchange

    def _process_sync_answer(self, exchange: _Exchange[SyncGroupResponse]) -> None:
        self._sync = None
        if exchange.generation != self._membership.generation:
            return  # the answer to a heartbeat has already ended this generation for the member
        assert exchange.answered is not None
        response = _successful(exchange.answered)
        if response is None:
            self._handle_failure(exchange.answered, "SyncGroup")
            return
        self._failures = 0
        self._revoked = False
        self._has_assignment = True
        self._observe(MemberEventKind.ASSIGNED, exchange.generation, f"{counted(len(response.assignment), 'byte')}")
        self._callbacks.on_assigned(exchange.generation, response.assignment)

    # ----------------------------------------------------------------------------------------------------------
    # Failures and waiting

    def _handle_failure(self, answered: Future[Answer[ResponseT]], api: str) -> None:
        """Request a rejoin, after a backoff if the error is retriable; raise if a retry cannot succeed."""
        failure = _failure(answered)
        current = self._membership.generation
        keep: Generation | None = None
        reason = f"rebalance failed due to {failure.error.name} from {api}"
        match failure.error:
            case Error.MEMBER_ID_REQUIRED:
                assert isinstance(failure.body, JoinGroupResponse)
                keep = Generation(member_id=failure.body.member_id)
                reason = f"need to re-join with the given member-id: {keep.member_id}"
            case Error.UNKNOWN_MEMBER_ID:
                keep = Generation()
            case Error.ILLEGAL_GENERATION:
                keep = Generation(member_id=current.member_id)
            case Error.REBALANCE_IN_PROGRESS:
                pass
            case Error.FENCED_INSTANCE_ID:
                self._membership.fail(FencedInstanceId(failure.message))
                self._observe(MemberEventKind.FENCED, current, failure.message)
                return
            case _ if failure.retriable:
                self._back_off()
            case _:
                self._membership.abandon_join(reason)
                raise failure
        self._membership.abandon_join(reason, keep=keep)

    def _back_off(self) -> None:
        backoff_ms = min(self._config.retry_backoff_ms * 2**self._failures, self._config.retry_backoff_max_ms)
        self._failures += 1
        self._retry_at = time.monotonic() + backoff_ms / 1000

    def _wait_for_backoff(self, deadline: float) -> bool:
        """Wait for the end of the backoff; False if ``deadline`` comes first."""
        moment = min(self._retry_at, deadline)
        with self._membership.changed:
            self._membership.changed.wait_for(
                lambda: self._membership.failed, timeout=max(0.0, moment - time.monotonic())
            )
        return time.monotonic() >= self._retry_at

    def _wait_for(self, exchange: _Exchange[ResponseT], deadline: float) -> bool:
        """Wait until the exchange is answered or obsolete; False if ``deadline`` comes first."""

        def is_over() -> bool:
            is_obsolete = exchange is self._sync and exchange.generation != self._membership.generation
            return exchange.answered is not None or is_obsolete or self._membership.failed

        return wait_in_poll(self._membership.changed, is_over, deadline, self._record_poll)


def _successful(answered: Future[Answer[ResponseT]]) -> ResponseT | None:
    """The body of an answer without an error; None for any other."""
    if answered.exception() is not None or answered.result().error_code != Error.NONE:
        return None
    return answered.result().body


def _failure(answered: Future[Answer[ResponseT]]) -> CoordinatorError:
    """The error of an unsuccessful answer."""
    try:
        answered.result().unwrap()
    except CoordinatorError as failure:
        return failure
    return coordinator_error(Error.UNKNOWN_SERVER_ERROR, "a successful answer was treated as a failure")
