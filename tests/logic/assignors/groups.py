"""Helpers of the assignor tests: short notations for groups, assertions, and a group that rebalances in rounds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from coordinator_logic.assignors import (
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    TopicMetadata,
    assignor_by_name,
)
from coordinator_logic.embedded_protocols import Assignment, Subscription, TopicPartition
from coordinator_logic.embedded_protocols.codec import NO_GENERATION

Assigned = dict[str, list[TopicPartition]]


def partitions(text: str) -> list[TopicPartition]:
    """Parse partitions: ``"t1-0 t2-1"``."""
    split = (word.rsplit("-", 1) for word in text.split())
    return [TopicPartition(topic, int(number)) for topic, number in split]


def cluster(text: str) -> dict[str, TopicMetadata]:
    """Parse topics with their numbers of partitions, without racks: ``"t1:3 t2:2"``."""
    return {topic: TopicMetadata(int(count)) for topic, count in (word.split(":") for word in text.split())}


def in_racks(*replicas: str) -> TopicMetadata:
    """A topic with one argument for each partition, which names the racks of its replicas by one letter each."""
    return TopicMetadata(len(replicas), [frozenset(racks) for racks in replicas])


def member(member_id: str, topics: str, instance_id: str | None = None, rack: str | None = None) -> GroupSubscription:
    return GroupSubscription(member_id, instance_id, Subscription(topics.split(), rack_id=rack))


def member_owning(
    assignor_name: str, member_id: str, topics: str, owned: str = "", generation: int = 1, rack: str | None = None
) -> GroupSubscription:
    """A member that reports its owned partitions as consumers with this assignor do."""
    owned_partitions = partitions(owned)
    assignor = assignor_by_name(assignor_name)
    assignor.on_assignment(Assignment(owned_partitions), generation)
    user_data = assignor.subscription_user_data()
    reported = owned_partitions if RebalanceProtocol.COOPERATIVE in assignor.supported_protocols else []
    return GroupSubscription(
        member_id, None, Subscription(topics.split(), user_data, reported, generation if reported else -1, rack)
    )


def assigned(**by_member: str) -> Assigned:
    return {member_id: partitions(text) for member_id, text in by_member.items()}


def as_sets(assignment: Mapping[str, Iterable[TopicPartition]]) -> dict[str, frozenset[TopicPartition]]:
    return {member_id: frozenset(owned) for member_id, owned in assignment.items()}


def subscribed_partitions(
    topics: Mapping[str, TopicMetadata], members: Iterable[GroupSubscription]
) -> list[TopicPartition]:
    subscribed = sorted({topic for m in members for topic in m.subscription.topics if topic in topics})
    return [TopicPartition(topic, p) for topic in subscribed for p in range(topics[topic].partitions)]


def assert_complete_and_valid(
    assignment: Assigned, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]
) -> None:
    """Every member has an entry; every subscribed partition has exactly one owner, which subscribes to its topic."""
    assert set(assignment) == {m.member_id for m in members}
    assigned_once = sorted(partition for owned in assignment.values() for partition in owned)
    assert assigned_once == subscribed_partitions(topics, members)
    for m in members:
        assert {tp.topic for tp in assignment[m.member_id]} <= set(m.subscription.topics)


def assert_balanced(assignment: Assigned, members: Iterable[GroupSubscription]) -> None:
    """No partition can move to a subscriber with at least two partitions fewer than its owner."""
    for m in members:
        for other, owned in assignment.items():
            could_take = [tp for tp in owned if tp.topic in m.subscription.topics]
            assert not could_take or len(owned) <= len(assignment[m.member_id]) + 1, (m.member_id, other)


def assert_no_swaps(before: Mapping[str, Iterable[TopicPartition]], after: Assigned) -> None:
    """No two members exchanged partitions of the same topic."""
    owner_before = {tp: m for m, owned in before.items() for tp in owned}
    moves = {
        (tp.topic, owner_before[tp], m) for m, owned in after.items() for tp in owned if owner_before.get(tp, m) != m
    }
    assert not [move for move in moves if (move[0], move[2], move[1]) in moves]


@dataclass
class DrivenGroup:
    """A group whose members use one assignor and behave like Kafka's consumers during rebalances."""

    assignor_name: str
    topics: dict[str, TopicMetadata]
    subscribed: dict[str, list[str]] = field(default_factory=dict)
    racks: dict[str, str | None] = field(default_factory=dict)
    owned: Assigned = field(default_factory=dict)
    owned_since: dict[str, int] = field(default_factory=dict)
    generation: int = 0
    _assignors: dict[str, Assignor] = field(default_factory=dict)

    def join(self, member_id: str, topics: list[str], rack: str | None = None) -> None:
        self.subscribed[member_id] = topics
        self.racks[member_id] = rack
        self.owned[member_id] = []
        self.owned_since[member_id] = -1
        self._assignors[member_id] = assignor_by_name(self.assignor_name)

    def receive(self, member_id: str, owned: list[TopicPartition], generation: int) -> None:
        """Assign partitions to the member, in that generation."""
        self.owned[member_id] = owned
        self.owned_since[member_id] = generation
        self._assignors[member_id].on_assignment(Assignment(owned), generation)

    def leave(self, member_id: str) -> None:
        for by_member in (self.subscribed, self.racks, self.owned, self.owned_since, self._assignors):
            del by_member[member_id]

    def subscriptions(self) -> list[GroupSubscription]:
        return [GroupSubscription(m, None, self._subscription(m)) for m in self.subscribed]

    def rebalance(self) -> Assigned:
        """Rebalance once, with JoinGroup and SyncGroup of all members; return the leader's assignment."""
        leader = self._assignors[next(iter(self.subscribed))]
        assignment = leader.assign(self.topics, self.subscriptions())
        self.generation += 1
        for member_id, owned in assignment.items():
            self.receive(member_id, owned, self.generation)
        return assignment

    def rebalance_until_settled(self, most_rounds: int) -> Assigned:
        """Rebalance until no member loses a partition, as cooperative members rejoin after they have revoked one."""
        for _ in range(most_rounds):
            before = dict(self.owned)
            assignment = self.rebalance()
            if all(set(before[m]) <= set(assignment[m]) for m in assignment):
                return assignment
        raise AssertionError(f"members still lose partitions after {most_rounds} rounds")

    def _subscription(self, member_id: str) -> Subscription:
        assignor = self._assignors[member_id]
        keeps_its_partitions = RebalanceProtocol.COOPERATIVE in assignor.supported_protocols
        return Subscription(
            self.subscribed[member_id],
            assignor.subscription_user_data(),
            self.owned[member_id] if keeps_its_partitions else [],
            self.owned_since[member_id] if keeps_its_partitions else NO_GENERATION,
            self.racks[member_id],
        )
