"""A consumer of the classic protocol that records its operations: joins, is assigned partitions, commits and leaves."""

from collections.abc import Mapping
from typing import Any

from coordinator_logic.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    GroupSubscription,
    RangeAssignor,
    TopicMetadata,
)
from coordinator_logic.embedded_protocols import (
    Assignment,
    Subscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    NO_GENERATION,
    HeartbeatRequest,
    JoinedMember,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
    MemberAssignment,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
)
from tests.recovery.checker.history import Function
from tests.recovery.recorded.member import RecordedMember
from tests.recovery.recorded.requests import Complete
from tests.recovery.recorded.surroundings import GroupPlan, Network


class RecordedConsumer(RecordedMember):
    """A consumer of the classic protocol."""

    def __init__(self, network: Network, plan: GroupPlan, name: str, instance: str | None = None) -> None:
        super().__init__(network, plan, name, instance)
        self._assignor: Assignor = CooperativeStickyAssignor() if plan.is_cooperative else RangeAssignor()
        self._is_joining = False
        self._may_commit = True
        self._world.after(self._world.about(400), self.join)
        self._world.after(self._plan.heartbeat_ms, self._beat)
        self._commit_later()

    @property
    def is_settled(self) -> bool:
        """Whether it is assigned, and does not join again."""
        return not self._is_joining and self._generation != NO_GENERATION

    @property
    def leaves_when_it_ends(self) -> bool:
        """Whether it is dynamic: a static member keeps its place when it ends."""
        return self.instance is None

    def leave(self) -> None:
        """Leave the group, and do nothing any more."""
        if not self._member_id:
            self.kill()
            return
        self._give_up(self._owned)
        body = LeaveGroupRequest(self._plan.group, members=[LeavingMember(self._member_id, self.instance)])
        details = {"member": self._member_id, "instance": self.instance}
        self._send_last(Function.LEAVE, body, details, _error_of_leaving)

    # ---- errors --------------------------------------------------------------------------------------------

    def _seen_in_error(self, body: Any, sent: Mapping[str, Any]) -> dict[str, Any]:
        return {"member": body.member_id or sent["member"]} if isinstance(body, JoinGroupResponse) else {}

    def _gave_up(self, f: Function) -> None:
        if f in (Function.JOIN, Function.SYNC):
            self.join()
        else:
            super()._gave_up(f)

    def _on_error(self, f: Function, error: Error, body: Any, sent: Mapping[str, Any]) -> None:
        if error is Error.MEMBER_ID_REQUIRED:
            self._member_id = body.member_id
            self.join()
        elif error is Error.UNKNOWN_MEMBER_ID and sent["member"] == self._member_id:
            self._lose(forget=True)
        elif error is Error.FENCED_INSTANCE_ID:
            self._lose(forget=False)
            self.kill()
        elif sent["generation"] != self._generation and f is not Function.JOIN:
            return
        elif error is Error.ILLEGAL_GENERATION:
            self._lose(forget=False)
        elif error is Error.REBALANCE_IN_PROGRESS and (not self._is_joining or f is Function.SYNC):
            self.join()
        elif error.retriable and f in (Function.JOIN, Function.SYNC):
            self._join_later()

    def _lose(self, *, forget: bool) -> None:
        self._give_up(self._owned)
        if forget:
            self._member_id = ""
        self._generation = NO_GENERATION
        self.join()

    # ---- membership ----------------------------------------------------------------------------------------

    def join(self) -> None:
        """Join or rejoin the group."""
        if self._postponed(self.join):
            return
        if not self._plan.is_cooperative:
            self._give_up(self._owned)
        self._is_joining = True
        self._attempt += 1
        attempt = self._attempt
        owned = [TopicPartition(self._plan.topic, partition) for partition in sorted(self._owned)]
        subscription = encode_subscription(Subscription([self._plan.topic], None, owned, self._generation))
        body = JoinGroupRequest(
            self._plan.group,
            self._plan.session_ms,
            "consumer",
            [Protocol(self._assignor.name, subscription)],
            self._plan.rebalance_ms,
            self._member_id,
            self.instance,
        )
        self._send(
            Function.JOIN,
            body,
            lambda joined, complete: self._joined(joined, complete, attempt),
            generation=NO_GENERATION,
            session_ms=self._plan.session_ms,
            rebalance_ms=self._plan.rebalance_ms,
            is_cooperative=self._plan.is_cooperative,
        )

    def _join_later(self) -> None:
        """Join after a pause, unless another attempt has begun by then."""
        attempt = self._attempt
        self._world.after(self._plan.heartbeat_ms, lambda: self.join() if attempt == self._attempt else None)

    def _joined(self, joined: JoinGroupResponse, complete: Complete, attempt: int) -> None:
        complete(
            member=joined.member_id,
            generation=joined.generation_id,
            leader=joined.leader,
            protocol=joined.protocol_name or "",
        )
        if attempt != self._attempt:
            return
        self._member_id, self._generation = joined.member_id, joined.generation_id
        self._commit_late_sometimes()
        # A consumer group, which has no leader, takes commits of any partition from here on, even from a member that it
        # has expelled and taken in again. Kafka's clients commit in a generation once they have its assignment.
        self._may_commit = joined.leader != ""
        assignments: list[MemberAssignment] = []
        if joined.leader == joined.member_id and not joined.skip_assignment:
            assignments = self._assign(joined.members)
        member, protocol = self._member_id, joined.protocol_name
        body = SyncGroupRequest(
            self._plan.group, self._generation, member, self.instance, "consumer", protocol, assignments
        )
        self._send(Function.SYNC, body, lambda synced, complete: self._synced(synced, complete, member, attempt))

    def _assign(self, members: list[JoinedMember]) -> list[MemberAssignment]:
        subscriptions = [
            GroupSubscription(m.member_id, m.group_instance_id, decode_subscription(m.metadata)) for m in members
        ]
        topics = {self._plan.topic: TopicMetadata(self._plan.partitions)}
        assigned = self._assignor.assign(topics, subscriptions)
        return [MemberAssignment(member, encode_assignment(Assignment(parts))) for member, parts in assigned.items()]

    def _synced(self, synced: SyncGroupResponse, complete: Complete, member: str, attempt: int) -> None:
        partitions = decode_assignment(synced.assignment).partitions if synced.assignment else []
        assigned = {partition for _, partition in partitions}
        complete(value=self._plan.positions_of(assigned))
        if attempt != self._attempt:
            # The client is joining again, and does not act on this answer.
            self._note_revoked(member, assigned - self._owned)
            return
        self._is_joining, self._may_commit = False, True
        revoked = self._owned - assigned
        self._own(assigned)
        if revoked:
            self._give_up(revoked)
            self.join()

    def _commit(self) -> None:
        if self._may_commit:
            super()._commit()

    def _beat(self) -> None:
        if self._postponed(self._beat):
            return
        self._world.after(self._plan.heartbeat_ms, self._beat)
        if self._generation != NO_GENERATION:
            body = HeartbeatRequest(self._plan.group, self._generation, self._member_id, self.instance)
            sent_ms = self._world.now

            def answered(_body: Any, complete: Complete) -> None:
                complete()
                self._accepted(sent_ms)

            self._send(Function.HEARTBEAT, body, answered)


def _error_of_leaving(body: Any) -> int:
    assert isinstance(body, LeaveGroupResponse)
    (left,) = body.members
    return left.error_code
