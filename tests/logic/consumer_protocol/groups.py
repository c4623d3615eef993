"""Groups of consumers for assignor tests: short notations, and a group that rebalances round by round."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from coordinator_logic.consumer_protocol import Assignment, Subscription, TopicPartition
from coordinator_logic.consumer_protocol.assignors import (
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    TopicMetadata,
    assignor_by_name,
)
from coordinator_logic.consumer_protocol.codec import NO_GENERATION

Assigned = dict[str, list[TopicPartition]]


def partitions(text: str) -> list[TopicPartition]:
    """``"t1-0 t2-1"`` as partitions."""
    split = (word.rsplit("-", 1) for word in text.split())
    return [TopicPartition(topic, int(number)) for topic, number in split]


def cluster(text: str) -> dict[str, TopicMetadata]:
    """``"t1:3 t2:2"`` as topics with as many partitions, of which no racks are known."""
    return {topic: TopicMetadata(int(count)) for topic, count in (word.split(":") for word in text.split())}


def in_racks(*replicas: str) -> TopicMetadata:
    """A topic whose partitions have their replicas in the racks named: ``in_racks("ab", "c")`` has two partitions."""
    return TopicMetadata(len(replicas), [frozenset(racks) for racks in replicas])


def member(member_id: str, topics: str, instance_id: str | None = None, rack: str | None = None) -> GroupSubscription:
    return GroupSubscription(member_id, instance_id, Subscription(topics.split(), rack_id=rack))


def member_owning(
    assignor_name: str, member_id: str, topics: str, owned: str = "", generation: int = 1, rack: str | None = None
) -> GroupSubscription:
    """A member that reports what it owns in the way that consumers with this assignor do."""
    held = partitions(owned)
    assignor = assignor_by_name(assignor_name)
    assignor.on_assignment(Assignment(held), generation)
    user_data = assignor.subscription_user_data()
    reported = held if RebalanceProtocol.COOPERATIVE in assignor.supported_protocols else []
    return GroupSubscription(
        member_id, None, Subscription(topics.split(), user_data, reported, generation if reported else -1, rack)
    )


def assigned(**by_member: str) -> Assigned:
    return {member_id: partitions(text) for member_id, text in by_member.items()}


def as_sets(assignment: Mapping[str, Iterable[TopicPartition]]) -> dict[str, frozenset[TopicPartition]]:
    return {member_id: frozenset(held) for member_id, held in assignment.items()}


def wanted_partitions(
    topics: Mapping[str, TopicMetadata], members: Iterable[GroupSubscription]
) -> list[TopicPartition]:
    wanted = sorted({topic for m in members for topic in m.subscription.topics if topic in topics})
    return [TopicPartition(topic, p) for topic in wanted for p in range(topics[topic].partitions)]


def assert_complete_and_valid(
    assignment: Assigned, topics: Mapping[str, TopicMetadata], members: Sequence[GroupSubscription]
) -> None:
    """Every member has an entry, every wanted partition exactly one owner, who subscribes to its topic."""
    assert set(assignment) == {m.member_id for m in members}
    handed_out = sorted(partition for held in assignment.values() for partition in held)
    assert handed_out == wanted_partitions(topics, members)
    for m in members:
        assert {tp.topic for tp in assignment[m.member_id]} <= set(m.subscription.topics)


def assert_balanced(assignment: Assigned, members: Iterable[GroupSubscription]) -> None:
    """Nobody could take a partition from somebody with at least two more than they have themselves."""
    for m in members:
        for other, held in assignment.items():
            could_take = [tp for tp in held if tp.topic in m.subscription.topics]
            assert not could_take or len(held) <= len(assignment[m.member_id]) + 1, (m.member_id, other)


def assert_no_swaps(before: Mapping[str, Iterable[TopicPartition]], after: Assigned) -> None:
    """No two members gave each other partitions of the same topic."""
    owner_before = {tp: m for m, held in before.items() for tp in held}
    moves = {
        (tp.topic, owner_before[tp], m) for m, held in after.items() for tp in held if owner_before.get(tp, m) != m
    }
    assert not [move for move in moves if (move[0], move[2], move[1]) in moves]


@dataclass
class DrivenGroup:
    """A group whose members use one assignor and behave as Kafka's consumers do around a rebalance."""

    assignor_name: str
    topics: dict[str, TopicMetadata]
    wanted: dict[str, list[str]] = field(default_factory=dict)
    racks: dict[str, str | None] = field(default_factory=dict)
    held: Assigned = field(default_factory=dict)
    held_since: dict[str, int] = field(default_factory=dict)
    generation: int = 0
    _assignors: dict[str, Assignor] = field(default_factory=dict)

    def join(self, member_id: str, topics: list[str], rack: str | None = None) -> None:
        self.wanted[member_id] = topics
        self.racks[member_id] = rack
        self.held[member_id] = []
        self.held_since[member_id] = -1
        self._assignors[member_id] = assignor_by_name(self.assignor_name)

    def receive(self, member_id: str, held: list[TopicPartition], generation: int) -> None:
        """The member is given partitions, by the leader of that generation."""
        self.held[member_id] = held
        self.held_since[member_id] = generation
        self._assignors[member_id].on_assignment(Assignment(held), generation)

    def leave(self, member_id: str) -> None:
        for by_member in (self.wanted, self.racks, self.held, self.held_since, self._assignors):
            del by_member[member_id]

    def subscriptions(self) -> list[GroupSubscription]:
        return [GroupSubscription(m, None, self._subscription(m)) for m in self.wanted]

    def rebalance(self) -> Assigned:
        """One JoinGroup and SyncGroup of everybody; what the leader sent."""
        leader = self._assignors[next(iter(self.wanted))]
        assignment = leader.assign(self.topics, self.subscriptions())
        self.generation += 1
        for member_id, held in assignment.items():
            self.receive(member_id, held, self.generation)
        return assignment

    def rebalance_until_settled(self, most_rounds: int) -> Assigned:
        """Rebalances as often as members ask for it because something of theirs was taken away."""
        for _ in range(most_rounds):
            before = dict(self.held)
            assignment = self.rebalance()
            if all(set(before[m]) <= set(assignment[m]) for m in assignment):
                return assignment
        raise AssertionError(f"members still lose partitions after {most_rounds} rounds")

    def _subscription(self, member_id: str) -> Subscription:
        assignor = self._assignors[member_id]
        keeps_its_partitions = RebalanceProtocol.COOPERATIVE in assignor.supported_protocols
        return Subscription(
            self.wanted[member_id],
            assignor.subscription_user_data(),
            self.held[member_id] if keeps_its_partitions else [],
            self.held_since[member_id] if keeps_its_partitions else NO_GENERATION,
            self.racks[member_id],
        )
