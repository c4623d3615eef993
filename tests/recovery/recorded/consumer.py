"""A consumer that records its operations: joins, is assigned partitions, commits, pauses, leaves and dies."""

from collections.abc import Callable
from functools import partial
from typing import Any

from coordinator_logic.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    GroupSubscription,
    RangeAssignor,
    TopicMetadata,
)
from coordinator_logic.consumer_protocol import (
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
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionToCommit,
    Protocol,
    SyncGroupRequest,
    SyncGroupResponse,
    TopicToCommit,
    TopicToFetch,
)
from tests.recovery.checker.history import Function, Position
from tests.recovery.recorded.surroundings import Answer, Call, GroupPlan, Network

Complete = Callable[..., None]
"""Records that an operation has taken effect; called with the fields of the completion."""

LATE_COMMIT_SHARE = 0.3
"""After how many of the rebalances a member commits in the generation before."""

OnAnswer = Callable[[Any, Complete], None]
Send = Callable[..., None]


class RecordedConsumer:
    """A consumer. A paused one does nothing, and finds its answers when it goes on.

    ``instance``: the instance id of a static member.
    """

    def __init__(self, network: Network, plan: GroupPlan, name: str, instance: str | None = None) -> None:
        self.name = name
        self.instance = instance
        self.is_dead = False
        self._network = network
        self._world = network.world
        self._plan = plan
        self._assignor: Assignor = CooperativeStickyAssignor() if plan.is_cooperative else RangeAssignor()
        self._member_id = ""
        self._generation = NO_GENERATION
        self._attempt = 0
        self._is_joining = False
        self._accepted_ms = -1
        self._owned: set[int] = set()
        self._positions: dict[int, int] = {}
        self._committed: tuple[int, list[Position]] | None = None
        self._paused_until = 0
        self._world.after(self._world.about(400), self.join)
        self._world.after(self._plan.heartbeat_ms, self._beat)
        self._world.after(self._world.about(self._plan.commit_ms), self._commit_sometimes)

    @property
    def is_settled(self) -> bool:
        """Whether it is assigned, and does not join again."""
        return not self._is_joining and self._generation != NO_GENERATION

    def has_been_accepted_since(self, ms: int) -> bool:
        """Whether a heartbeat that was sent at or after this time of the world has been accepted."""
        return self._accepted_ms >= ms

    # ---- faults --------------------------------------------------------------------------------------------

    def pause(self, ms: int) -> None:
        """Do nothing for a time, as in a long garbage collection."""
        self._world.fault(f"{self.name} pauses")
        self._paused_until = self._world.now + ms

    def kill(self) -> None:
        """Do nothing any more."""
        self.is_dead = True
        self._world.recorder.note(self.name, Function.STOPPED, self._plan.group)

    def leave(self) -> None:
        """Leave the group, and do nothing any more."""
        if not self._member_id:
            self.kill()
            return
        self._give_up(self._owned)
        self.is_dead = True
        body = LeaveGroupRequest(self._plan.group, members=[LeavingMember(self._member_id, self.instance)])
        details = {"member": self._member_id, "instance": self.instance}
        plan = self._plan
        call = self._network.send(
            self.name, plan.group, Function.LEAVE, body, plan.request_timeout_ms, details, version=None
        )

        def answered(response: Answer, answer: str) -> None:
            assert isinstance(response.body, LeaveGroupResponse)
            (left,) = response.body.members
            if left.error_code == Error.NONE:
                call.operation.ok(answer=answer)
            else:
                call.operation.fail(left.error_code, answer=answer)
            self.kill()

        def gave_up() -> None:
            call.operation.info()
            self.kill()

        call.answered, call.gave_up = answered, gave_up

    # ---- requests ------------------------------------------------------------------------------------------

    def _send(self, f: Function, body: Any, on_answer: OnAnswer, *, version: int | None = None, **details: Any) -> None:
        details = {"member": self._member_id, "generation": self._generation, "instance": self.instance} | details
        plan = self._plan
        timeout = plan.join_timeout_ms if f in (Function.JOIN, Function.SYNC) else plan.request_timeout_ms
        call = self._network.send(self.name, plan.group, f, body, timeout, details, version)

        def answered(response: Answer, answer: str) -> None:
            if self._postponed(lambda: answered(response, answer)):
                return
            seen = {"answer": answer, "appended": call.appended_ns}
            error = Error(response.error_code or getattr(response.body, "error_code", 0))
            if isinstance(response.body, JoinGroupResponse) and error is not Error.NONE:
                seen["member"] = response.body.member_id or details["member"]
            if error is not Error.NONE:
                call.operation.fail(error, **seen)
                self._on_error(f, call, error, response.body, details)
            else:
                on_answer(response.body, partial(call.operation.ok, **seen))

        call.answered = answered
        call.gave_up = lambda: self._gave_up(f, call)

    def _postponed(self, again: Callable[[], None]) -> bool:
        """Whether nothing may happen now: never again, or later."""
        if self.is_dead:
            return True
        if self._paused_until > self._world.now:
            self._world.after(self._paused_until - self._world.now + 1, again)
            return True
        return False

    def _gave_up(self, f: Function, call: Call) -> None:
        if self._postponed(lambda: self._gave_up(f, call)):
            return
        call.operation.info(appended=call.appended_ns)
        if f in (Function.JOIN, Function.SYNC):
            self.join()
        elif f is Function.FETCH:
            self._fetch()

    def _on_error(self, f: Function, call: Call, error: Error, body: Any, sent: dict[str, Any]) -> None:
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
        former, self._committed = self._committed, None
        self._member_id, self._generation = joined.member_id, joined.generation_id
        if former is not None and self._world.chance.random() < LATE_COMMIT_SHARE:
            self._commit_late(*former)
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
        self._is_joining = False
        revoked = self._owned - assigned
        self._owned |= assigned
        for partition in assigned - self._positions.keys():
            self._positions[partition] = -1
        self._fetch()
        if revoked:
            self._give_up(revoked)
            self.join()

    def _give_up(self, partitions: set[int]) -> None:
        if partitions:
            self._note_revoked(self._member_id, partitions)
            self._owned = self._owned - partitions
            self._positions = {p: offset for p, offset in self._positions.items() if p in self._owned}

    def _note_revoked(self, member: str, partitions: set[int]) -> None:
        value = self._plan.positions_of(partitions)
        self._world.recorder.note(self.name, Function.REVOKED, self._plan.group, member=member, value=value)

    def _beat(self) -> None:
        if self._postponed(self._beat):
            return
        self._world.after(self._plan.heartbeat_ms, self._beat)
        if self._generation != NO_GENERATION:
            body = HeartbeatRequest(self._plan.group, self._generation, self._member_id, self.instance)
            sent_ms = self._world.now
            self._send(Function.HEARTBEAT, body, lambda _, complete: self._accepted(complete, sent_ms))

    def _accepted(self, complete: Complete, sent_ms: int) -> None:
        complete()
        self._accepted_ms = max(self._accepted_ms, sent_ms)

    # ---- offsets -------------------------------------------------------------------------------------------

    def _fetch(self) -> None:
        wanted = {partition for partition, offset in self._positions.items() if offset < 0}
        if wanted:
            attempt = self._attempt
            fetch(self._send, self._plan, wanted, lambda positions: self._fetched(positions, attempt))

    def _fetched(self, positions: list[Position], attempt: int) -> None:
        if attempt != self._attempt:
            # Another member may have owned the partitions, and committed, in between.
            self._fetch()
            return
        for position in positions:
            if self._positions.get(position.partition) == -1:
                self._positions[position.partition] = max(position.offset, 0)

    def _commit_sometimes(self) -> None:
        if self._postponed(self._commit_sometimes):
            return
        self._world.after(self._world.about(self._plan.commit_ms), self._commit_sometimes)
        for partition, offset in self._positions.items():
            if offset >= 0:
                self._positions[partition] += self._world.chance.randint(0, 3)
        self._commit()

    def _commit(self) -> None:
        metadata = f"{self.name}-{self._world.now}" if self._plan.has_unique_metadata else ""
        topic = self._plan.topic
        value = [Position(topic, p, offset, metadata) for p, offset in self._positions.items() if offset >= 0]
        if value and self._generation != NO_GENERATION:
            self._committed = (self._generation, value)
            commit(self._send, self._plan, value, self._generation, self._member_id, self.instance)

    def _commit_late(self, generation: int, value: list[Position]) -> None:
        """Commit again in an earlier generation, as a thread of the application does that has missed its end."""
        if generation != self._generation:
            again = [Position(p.topic, p.partition, p.offset, f"{p.metadata}, late") for p in value]
            send = partial(self._send, generation=generation)
            commit(send, self._plan, again, generation, self._member_id, self.instance)


def fetch(send: Send, plan: GroupPlan, wanted: set[int], on_answer: Callable[[list[Position]], None]) -> None:
    """Fetch the committed offsets of partitions."""

    def answered(fetched: OffsetFetchResponse, complete: Complete) -> None:
        (topic,) = fetched.topics
        value = [
            Position(plan.topic, p.partition_index, p.committed_offset, p.metadata or "") for p in topic.partitions
        ]
        complete(value=value)
        on_answer(value)

    body = OffsetFetchRequest(plan.group, [TopicToFetch(plan.topic, sorted(wanted))])
    send(Function.FETCH, body, answered, value=plan.positions_of(wanted), version=7)


def commit(
    send: Send,
    plan: GroupPlan,
    value: list[Position],
    generation: int = NO_GENERATION,
    member_id: str = "",
    instance: str | None = None,
    f: Function = Function.COMMIT,
) -> None:
    """Commit offsets, or reset them."""
    partitions = [PartitionToCommit(p.partition, p.offset, committed_metadata=p.metadata) for p in value]
    body = OffsetCommitRequest(plan.group, [TopicToCommit(plan.topic, partitions)], generation, member_id, instance)
    send(f, body, lambda _, complete: complete(), value=value)
