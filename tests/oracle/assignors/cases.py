"""Random groups for assignors: topics with or without racks, members with subscriptions and claims to partitions."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import seed, settings
from hypothesis import strategies as st

from coordinator_logic.assignors import GroupSubscription, TopicMetadata
from coordinator_logic.assignors.base import topic_partitions
from coordinator_logic.assignors.sticky.claims import encode_generation, encode_owned_partitions
from coordinator_logic.embedded_protocols import Subscription, TopicPartition, decode_subscription, encode_subscription
from coordinator_logic.embedded_protocols.primitives import java_order

EXAMPLES = int(os.environ.get("ORACLE_EXAMPLES", "300"))
"""The number of random groups or messages in each test."""
SEED = int(os.environ.get("ORACLE_SEED", "0"))

HASH_ORDERED_IDS = tuple("abcdefghijklmno")
"""Member ids that a Java HashMap iterates over in alphabetical order, because their hash codes are consecutive."""
OTHER_IDS = ("consumer-1-af", "consumer-10-b", "consumer-2-c", "aa", "é", "\uff41-x", "\U0001f600-y", "B", "-", "zz z")
"""Member ids that a HashMap iterates over in another order."""

RACKS = ("r1", "r2", "r3")
RACK_PLACEMENTS = ("nowhere", "everywhere", "somewhere")
"""The racks of a topic's partitions: unknown, all of them, or a random choice."""
MISSING_TOPIC = "missing"
"""A topic without metadata to which members subscribe."""

Test = Callable[..., None]


def on_random_examples(examples: int = EXAMPLES) -> Callable[[Test], Test]:
    """Run a test on random examples, which are the same for the same seed."""

    def decorated(test: Test) -> Test:
        return seed(SEED)(settings(max_examples=examples, deadline=None, database=None)(test))

    return decorated


@dataclass(frozen=True)
class Case:
    """The input of an assignor in one rebalance."""

    assignor_name: str
    topics: dict[str, TopicMetadata]
    encoded_members: list[tuple[str, str | None, bytes]]
    """Member id, instance id and encoded subscription."""
    conflicting: frozenset[TopicPartition] = frozenset()
    """Partitions that two members claim."""

    @property
    def members(self) -> list[GroupSubscription]:
        return [GroupSubscription(m, i, decode_subscription(encoded)) for m, i, encoded in self.encoded_members]

    @property
    def racks_are_known(self) -> bool:
        """Whether some consumers and some replicas have racks."""
        return any(member.subscription.rack_id for member in self.members) and any(
            topic.racks for topic in self.topics.values()
        )

    @property
    def subscriptions_are_equal(self) -> bool:
        return len({frozenset(member.subscription.topics) for member in self.members}) == 1


@dataclass(frozen=True)
class Shape:
    """The parameters of a random group."""

    topics: int
    most_partitions: int
    equal_topics: bool
    """Whether all topics have the same number of partitions, so that range co-partitions them."""
    members: int
    equal_subscriptions: bool
    racks: str
    version: int
    owned_share: float
    """The share of partitions with an owner."""
    imbalance: int
    """The higher, the less evenly owned partitions are distributed."""
    generations: tuple[int, ...]
    conflicting_share: float
    chance: Random = field(repr=False)


def random_shape(chance: Random) -> Shape:
    """Choose the parameters of a small group."""
    return Shape(
        topics=chance.randint(1, 5),
        most_partitions=chance.randint(0, 12),
        equal_topics=chance.random() < 0.5,
        members=chance.randint(1, 10),
        equal_subscriptions=chance.random() < 0.5,
        racks=chance.choice([*RACK_PLACEMENTS, "somewhere", "somewhere", "mixed"]),
        version=chance.choice([3] * 9 + [2, 1, 0]),
        owned_share=chance.choice([0.0, 0.5, 0.9, 1.0]),
        imbalance=chance.randint(0, 5),
        generations=chance.choice([(5,), (5, 5, 4), (5, 4, -1)]),
        conflicting_share=chance.choice([0.0, 0.0, 0.1]),
        chance=chance,
    )


def cases(assignor_name: str, ids: Sequence[str]) -> st.SearchStrategy[Case]:
    """Members that use one assignor and report their owned partitions as it does, in one version of the protocol.

    Excluded are claims that Kafka's assignors do not tolerate (see ``test_differences``): a partition listed twice, a
    partition that does not exist, an unsubscribed partition of an older generation, a first member without topics.
    """
    # Hypothesis draws only a random number: if it draws shapes, it prefers small groups and repeats them.
    return st.integers(0, 2**64 - 1).map(
        lambda randomness: random_case(assignor_name, ids, random_shape(Random(randomness)))
    )


def random_case(assignor_name: str, ids: Sequence[str], shape: Shape) -> Case:
    """Generate a group with these parameters."""
    chance = shape.chance
    topics = _topics(shape)
    member_ids = sorted(chance.sample(ids, min(len(ids), shape.members)), key=java_order)
    subscribed = _subscribed_topics(shape, [*topics, MISSING_TOPIC], member_ids)
    generations = {m: chance.choice(shape.generations) for m in member_ids}
    claimants = _claimants(shape, topics, subscribed, generations)
    members = []
    for m in member_ids:
        owned = [partition for partition, claiming in claimants.items() if m in claiming]
        rack = chance.choice([None, "elsewhere", *RACKS, *RACKS])
        encoded = encode_subscription(
            _subscription(assignor_name, owned, generations[m], subscribed[m], rack), shape.version
        )
        # Reversed, so that instance ids and member ids have different orders.
        members.append((m, f"{m}-i"[::-1] if chance.random() < 0.3 else None, encoded))
    conflicting = frozenset(partition for partition, claiming in claimants.items() if len(claiming) > 1)
    return Case(assignor_name, topics, members, conflicting)


def _topics(shape: Shape) -> dict[str, TopicMetadata]:
    chance = shape.chance
    common_count = chance.randint(0, shape.most_partitions)
    topics = {}
    for i in range(shape.topics):
        count = common_count if shape.equal_topics else chance.randint(0, shape.most_partitions)
        where = chance.choice(RACK_PLACEMENTS) if shape.racks == "mixed" else shape.racks
        topics[f"t{i}"] = TopicMetadata(
            count, [_racks(where, chance) for _ in range(count if where != "nowhere" else 0)]
        )
    return topics


def _racks(where: str, chance: Random) -> frozenset[str]:
    """Choose the racks of a partition's replicas."""
    return frozenset(RACKS if where == "everywhere" else chance.sample(RACKS, chance.randint(0, len(RACKS))))


def _subscribed_topics(shape: Shape, names: list[str], member_ids: list[str]) -> dict[str, list[str]]:
    chance = shape.chance
    common = chance.sample(names, chance.choice([0, 1, *[len(names)] * 4]))
    return {
        m: common if shape.equal_subscriptions else chance.sample(names, chance.randint(1 if i == 0 else 0, len(names)))
        for i, m in enumerate(member_ids)
    }


def _claimants(
    shape: Shape, topics: dict[str, TopicMetadata], subscribed: dict[str, list[str]], generations: dict[str, int]
) -> dict[TopicPartition, set[str]]:
    chance, newest = shape.chance, max(generations.values())
    weights = {m: chance.random() ** shape.imbalance for m in subscribed}
    # Before version 2, Kafka's assignors compare generations from different sources.
    conflicting_share = shape.conflicting_share if shape.version >= 2 else 0.0
    claimants = {}
    for partition in topic_partitions(topics):
        candidates = [m for m in subscribed if generations[m] == newest or partition.topic in subscribed[m]]
        claims = (chance.random() < shape.owned_share) + (chance.random() < conflicting_share)
        drawn = chance.choices(candidates, [weights[m] for m in candidates], k=claims) if candidates else []
        claimants[partition] = set(drawn)
    return claimants


def _subscription(
    assignor_name: str, owned: list[TopicPartition], generation: int, topics: list[str], rack: str | None
) -> Subscription:
    if assignor_name == "sticky":
        user_data = encode_owned_partitions(owned, generation)
        # Consumers before Kafka 2.3 send no generation.
        return Subscription(topics, user_data if generation >= 0 else user_data[:-4], [], generation, rack)
    if assignor_name == "cooperative-sticky":
        return Subscription(topics, encode_generation(generation), owned, generation, rack)
    return Subscription(topics, None, owned, generation, rack)
