"""Members of a consumer group and the coordinator's logic, in virtual time: requests and answers arrive when told to.

The members' state machine is the client's, the coordinator is the logic itself. Nothing else is simulated but the log
between them, and an application that gives partitions up and adds them when it polls.
"""

from collections import deque
from typing import NamedTuple

from coordinator_logic.errors import Error
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from streaming.client.errors import CoordinatorError, RequestTimedOut, coordinator_error
from streaming.client.membership.consumer_groups.heartbeat_fields import TopicIdPartition
from streaming.client.membership.consumer_groups.membership import ConsumerMembership, MembershipPhase, Sent
from streaming.client.membership.consumer_groups.types import TopicSubscription
from streaming.client.membership.types import MemberConfig
from tests.logic.groups.consumer.driver import DrivenConsumers, description
from tests.support.parts import consumer_part

TOPIC = "orders"
MAX_POLL_SECONDS = 30.0


class InLog(NamedTuple):
    """A heartbeat that was sent; ``sent`` is None for one that leaves."""

    member: "SimulatedMember"
    sent: Sent | None
    request: ConsumerGroupHeartbeatRequest


class SimulatedMember:
    """A member, its application, and the answers that have yet to reach it, or have got lost (``lost``)."""

    def __init__(self, group: "SimulatedGroup", member_id: str, instance_id: str | None = None) -> None:
        self.group = group
        config = MemberConfig(
            group_id=group.driven.group_id, group_instance_id=instance_id, rebalance_timeout_ms=30_000
        )
        self.state = ConsumerMembership(member_id, config, MAX_POLL_SECONDS)
        self.member_id = member_id
        self.calls: list[tuple[str, list[int]]] = []
        self.answers: deque[tuple[Sent, ConsumerGroupHeartbeatResponse]] = deque()
        self.unanswered: deque[Sent] = deque()
        self.lost: set[Sent] = set()
        self.failures: list[CoordinatorError] = []
        self.subscription: TopicSubscription | None = None

    @property
    def owned(self) -> list[int]:
        """The numbers of the partitions that the application has."""
        return sorted(each.partition for each in self.state.owned)

    def poll(self) -> None:
        """Do what the client does in a poll of the application."""
        self.state.record_poll(self.group.now)
        if self.state.phase is MembershipPhase.LOST:
            if self.state.owned:
                self._call("lost", self.state.owned)
            try:
                self.state.finish_loss()
            except CoordinatorError as failure:
                self.failures.append(failure)
                return
        self.state.subscribe(self.subscription or self.group.subscription, self.group.now)
        while (change := self.state.next_change()) is not None:
            if change.revoked:
                self._call("revoked", change.revoked)
                self.state.confirm_revoked(change.revoked, self.group.now)
            else:
                self._call("assigned", self.state.confirm_assigned(change.added))

    def beat(self) -> ConsumerGroupHeartbeatRequest | None:
        """Send what the heartbeat thread would send now."""
        leaving = self.state.expire_poll(self.group.now)
        if leaving is not None:
            self.group.log.append(InLog(self, None, leaving))
            return leaving
        heartbeat = self.state.next_heartbeat(self.group.now)
        if heartbeat is None:
            return None
        sent, request = heartbeat
        self.unanswered.append(sent)
        self.group.log.append(InLog(self, sent, request))
        return request

    def exchange(self) -> Error | None:
        """Poll, let the heartbeat that is due and its answer arrive, and poll again; returns the answer's error."""
        self.poll()
        self.beat()
        self.group.read()
        error = self.receive()
        self.poll()
        return error

    def leave(self) -> None:
        """Leave the group."""
        if self.state.owned:
            self._call("revoked", self.state.owned)
        leaving = self.state.leave()
        if leaving is not None:
            self.group.log.append(InLog(self, None, leaving))

    def receive(self) -> Error | None:
        """Let the oldest answer arrive; returns its error, None if there is no answer."""
        if not self.answers:
            return None
        sent, answer = self.answers.popleft()
        self.unanswered.remove(sent)
        error = Error(answer.error_code)
        if error is Error.NONE:
            self.state.apply_answer(sent, answer, self.group.now)
        else:
            self.state.apply_error(sent, coordinator_error(error, "simulated"), self.group.now)
        return error

    def time_out(self) -> None:
        """Let the oldest unanswered heartbeat fail at the client; the coordinator may have seen it, or may see it."""
        if not self.unanswered:
            return
        sent = self.unanswered.popleft()
        self.lost.add(sent)
        self.answers = deque(each for each in self.answers if each[0] != sent)
        self.state.apply_error(sent, RequestTimedOut("simulated"), self.group.now)

    def _call(self, name: str, partitions: frozenset[TopicIdPartition]) -> None:
        self.calls.append((name, sorted(each.partition for each in partitions)))
        self.group.check()


class SimulatedGroup:
    """The coordinator's group, the log of requests, and the members."""

    def __init__(self, partitions: int = 6, **config: int) -> None:
        self.driven = DrivenConsumers(**config)
        self.started = self.driven.now
        self.log: deque[InLog] = deque()
        self.members: list[SimulatedMember] = []
        self.grow(partitions)

    @property
    def now(self) -> float:
        """Seconds since the start, as a monotonic clock."""
        return (self.driven.now - self.started) / 1000

    def grow(self, partitions: int) -> None:
        """Give the topic this many partitions, which members see with their next poll."""
        self.partitions = partitions
        self.subscription = TopicSubscription.of([TOPIC], topics=[description(TOPIC, partitions)])

    def new(self, member_id: str, instance_id: str | None = None) -> SimulatedMember:
        """Add a member; its first poll joins."""
        self.members.append(SimulatedMember(self, member_id, instance_id))
        return self.members[-1]

    def kill(self, member: SimulatedMember) -> None:
        """End a member without any further request."""
        self.members.remove(member)

    def sleep(self, seconds: float) -> None:
        """Let time pass at the coordinator, too."""
        self.driven.sleep(round(seconds * 1000))

    def read(self) -> ConsumerGroupHeartbeatResponse | None:
        """Let the coordinator take the oldest request of the log; returns its answer."""
        if not self.log:
            return None
        member, sent, request = self.log.popleft()
        answer: ConsumerGroupHeartbeatResponse = self.driven.send("ConsumerGroupHeartbeat", request).body
        if sent is not None and sent not in member.lost:
            member.answers.append((sent, answer))
        return answer

    def run(self, seconds: float = 0.0) -> None:
        """Let everybody poll, and every request and answer arrive at once, until nothing happens; then in steps."""
        end = self.now + seconds
        while True:
            self._exchange()
            if self.now >= end:
                return
            self.sleep(min(0.5, end - self.now))

    def _exchange(self) -> None:
        is_busy = True
        while is_busy:
            is_busy = False
            for member in self.members:
                member.poll()
                is_busy |= member.beat() is not None
            while self.log:
                self.read()
                self.check()
            for member in self.members:
                while member.receive() is not None:
                    is_busy = True
                member.poll()

    def check(self) -> None:
        """No partition has two owners that the coordinator knows as members."""
        known = self.driven.consumer.members if self.driven.exists and consumer_part(self.driven.group) else {}
        owners: dict[TopicIdPartition, str] = {}
        for member in self.members:
            if member.member_id in known:
                for partition in member.state.owned:
                    other = owners.setdefault(partition, member.member_id)
                    assert other == member.member_id, f"{partition} belongs to {other} and {member.member_id}"

    def is_settled(self) -> bool:
        """Whether the members own all partitions, in shares that differ by at most one."""
        owned = [member.owned for member in self.members]
        sizes = [len(each) for each in owned]
        everything = sorted(number for each in owned for number in each)
        return everything == list(range(self.partitions)) and max(sizes) - min(sizes) <= 1
