"""A consumer group with its clients, the bounds of a search, and which states of the search are equal."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from coordinator_logic import snapshot
from coordinator_logic.config import LOGIC_VERSION, CoordinatorConfig, MigrationPolicy
from coordinator_logic.group import Group
from coordinator_logic.groups.consumer.data import ConsumerGroup, ResolvedPattern
from coordinator_logic.groups.consumer.members import AssignedPartitions, ConsumerMember
from coordinator_logic.messages import TopicDescription
from tests.support.parts import consumer_group, consumer_part

GROUP_ID = "small-group"
NOW = 1_000_000_000
"""The time of every state (ms since the epoch): what has happened before counts as just now, or as long ago."""

LONG_MS = 100_000
FENCED = -9
YEARS_MS = 10 * 365 * 24 * 3_600_000

Partition = tuple[str, int]
"""A topic id and a partition number."""


def topic_id(name: str) -> str:
    """The id of a topic."""
    return f"{name:_<22}"


@dataclass(frozen=True)
class Scope:
    """The bounds of one search.

    Args:
        instances: The instance id of each client; None for a dynamic one.
        subscriptions: The lists of names that clients subscribe to; the first one when they join.
        pattern: The pattern that clients subscribe to in place of names when they join.
        classic: How many of the clients, the last ones, speak the classic protocol. Then the group is never downgraded:
            a classic group is not part of this search.
        topics: The number of partitions of each topic at the start.
        later: The topics that appear, or have grown, at some time.
        loses: Whether responses can be lost; the response after a lost one arrives.
        keeps_quiet: Whether a client can send a heartbeat that does not say what it owns.
        leaves: Whether clients can leave, rather than only disappear.
        has_history: Whether states with other previous epochs and assignment epochs are other states. If not, the first
            one that is found represents all.
        assignment_interval_ms: ``group.consumer.assignment.interval.ms``.
    """

    instances: tuple[str | None, ...]
    subscriptions: tuple[tuple[str, ...], ...] = (("t",),)
    pattern: str | None = None
    classic: int = 0
    topics: tuple[tuple[str, int], ...] = (("t", 2),)
    later: tuple[tuple[str, int], ...] = ()
    loses: bool = False
    keeps_quiet: bool = True
    leaves: bool = True
    has_history: bool = True
    assignment_interval_ms: int = 0
    config: CoordinatorConfig = field(init=False)

    def __post_init__(self) -> None:
        config = CoordinatorConfig(
            group_consumer_assignment_interval_ms=self.assignment_interval_ms,
            group_consumer_migration_policy=MigrationPolicy.UPGRADE if self.classic else MigrationPolicy.BIDIRECTIONAL,
            expiry_allowance_ms=0,
            offset_metadata_max_bytes=0,
            offsets_retention_check_interval_ms=YEARS_MS,
            logic_version=LOGIC_VERSION,
        )
        object.__setattr__(self, "config", config)

    @property
    def passes_time(self) -> bool:
        """Whether something depends on how long ago something else happened, beside sessions and revocations."""
        return self.assignment_interval_ms > 0 or self.pattern is not None


class Stage(Enum):
    """What a client of the classic protocol must do next."""

    SETTLED = "send heartbeats"
    MUST_JOIN = "join again"
    MUST_SYNC = "sync"


class Client(NamedTuple):
    """A consumer: its epoch (None: it is in no group), what it owns, and what the last response told it to own.

    ``has_lost`` says that it has not received the last response. The ``stage`` is that of a client of the classic
    protocol, whose epoch is its generation. Such a client ``has_old_partitions`` if it was fenced and joined again as a
    new member: as in Kafka, it learns of that only with its next assignment.
    """

    member_id: str
    instance_id: str | None = None
    epoch: int | None = None
    owned: frozenset[Partition] = frozenset()
    received: frozenset[Partition] = frozenset()
    has_lost: bool = False
    is_classic: bool = False
    stage: Stage = Stage.SETTLED
    has_old_partitions: bool = False

    def out(self, member_id: str | None = None) -> "Client":
        """The client when it has given up everything, perhaps as a new process with another member id."""
        return Client(member_id or self.member_id, self.instance_id, is_classic=self.is_classic)


class World(NamedTuple):
    """The encoded group (None: it does not exist), its clients, and whether the later topics exist."""

    group: bytes | None
    clients: tuple[Client, ...]
    is_later: bool = False

    def decoded(self) -> Group | None:
        """A copy of the group."""
        return None if self.group is None else snapshot.decode(self.group)

    def with_client(self, index: int, client: Client) -> "World":
        """The world with another state of a client."""
        return self._replace(clients=(*self.clients[:index], client, *self.clients[index + 1 :]))

    def catalogue(self, scope: Scope) -> list[TopicDescription]:
        """The topics that exist."""
        counts = dict(scope.topics) | (dict(scope.later) if self.is_later else {})
        return [TopicDescription(name, topic_id(name), count) for name, count in counts.items()]


Play = Callable[[World], World]
NamedPlay = tuple[str, Play]
"""A move: its name, and what it makes of a world."""


def places(held: AssignedPartitions) -> frozenset[Partition]:
    """The partitions that a member has."""
    return frozenset((each, partition) for each, partitions in held.items() for partition in partitions)


def settled(group: Group | None) -> bytes | None:
    """Encode a group made as old as every state is: its timers were armed at NOW, where its clock is."""
    if group is None:
        return None
    group.clock = NOW
    for key, timer in group.timers.items():
        group.timers[key] = type(timer)(timer.kind, NOW, timer.timeout_ms, timer.member_id, timer.generation)
    consumer = consumer_group(group)
    if consumer is not None:
        consumer.target_at = NOW if consumer.target_at >= NOW else min(consumer.target_at, NOW - LONG_MS)
        for pattern, resolved in consumer.patterns.items():
            at = NOW if resolved.resolved_at >= NOW else NOW - LONG_MS
            consumer.patterns[pattern] = ResolvedPattern(resolved.topics, at)
    return snapshot.encode(group)


def aged(group: Group) -> bytes:
    """Encode a group whose target and patterns are old."""
    consumer = consumer_group(group)
    assert consumer is not None
    consumer.target_at = min(consumer.target_at, NOW - LONG_MS)
    for pattern, resolved in consumer.patterns.items():
        consumer.patterns[pattern] = ResolvedPattern(resolved.topics, NOW - LONG_MS)
    return snapshot.encode(group)


# ---- equal states ----------------------------------------------------------------------------------------------


def key(world: World, group: Group | None, scope: Scope) -> Hashable:
    """What decides the future of a world. Epochs are only compared, so their order is kept, and not their values."""
    if group is None or consumer_part(group) is None:
        return (group is None, world.clients, world.is_later)
    consumer = consumer_group(group)
    rank = _ranks(consumer, world.clients, scope)
    return (
        rank[consumer.epoch],
        rank[consumer.target_epoch],
        consumer.target_at >= NOW,
        tuple(_member(member, rank, scope) for member in consumer.members.values()),
        tuple(sorted((member_id, _listed(target)) for member_id, target in consumer.targets.items())),
        tuple(sorted((name, topic.partitions) for name, topic in consumer.topics.items())),
        tuple(sorted((name, each.topics, each.resolved_at >= NOW) for name, each in consumer.patterns.items())),
        consumer.refresh_requested and consumer.current_metadata_hash() != consumer.metadata_hash,
        (consumer.has_new_topics, consumer.has_unresolved_patterns),
        frozenset(group.timers),
        tuple(_client(client, consumer, rank) for client in world.clients),
        world.is_later,
    )


def _ranks(consumer: ConsumerGroup, clients: tuple[Client, ...], scope: Scope) -> dict[int, int]:
    epochs = {consumer.epoch, consumer.target_epoch}
    for member in consumer.members.values():
        epochs.add(member.epoch)
        if not scope.has_history:
            continue
        epochs.add(member.previous_epoch)
        for held in (member.assigned, member.pending_revocation):
            epochs.update(epoch for partitions in held.values() for epoch in partitions.values())
    epochs |= {client.epoch for client in clients if client.epoch is not None}
    positive = sorted(epoch for epoch in epochs if epoch > 0)
    return {epoch: epoch for epoch in epochs if epoch <= 0} | {epoch: i + 1 for i, epoch in enumerate(positive)}


def _member(member: ConsumerMember, rank: dict[int, int], scope: Scope) -> Hashable:
    return (
        member.member_id,
        rank[member.epoch],
        scope.has_history and rank[member.previous_epoch],
        member.state,
        _held(member.assigned, rank, scope),
        _held(member.pending_revocation, rank, scope),
        member.subscribed_topic_names,
        member.subscribed_topic_regex,
        member.classic is not None,
    )


def _held(held: AssignedPartitions, rank: dict[int, int], scope: Scope) -> Hashable:
    if not scope.has_history:
        return places(held)
    return frozenset((each, number, rank[epoch]) for each, numbers in held.items() for number, epoch in numbers.items())


def _listed(target: dict[str, list[int]]) -> Hashable:
    return tuple(sorted((each, tuple(numbers)) for each, numbers in target.items()))


def _client(client: Client, consumer: ConsumerGroup, rank: dict[int, int]) -> Hashable:
    if client.epoch is None:
        return client.member_id
    if client.member_id not in consumer.members:
        return (client.member_id, FENCED, client.owned == client.received, client.has_lost, client.stage)
    following = (client.has_lost, client.stage, client.has_old_partitions)
    return (client.member_id, rank[client.epoch], client.owned, client.received, *following)
