"""Random groups for an assignor: topics with or without racks, members that want some of them and claim to own some."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from hypothesis import seed, settings
from hypothesis import strategies as st

from coordinator_logic.consumer_protocol import Subscription, TopicPartition, decode_subscription, encode_subscription
from coordinator_logic.consumer_protocol.assignors import GroupSubscription, TopicMetadata
from coordinator_logic.consumer_protocol.assignors.base import topic_partitions
from coordinator_logic.consumer_protocol.assignors.sticky.member_data import encode_generation, encode_owned_partitions
from coordinator_logic.consumer_protocol.topic_partition import java_order

EXAMPLES = int(os.environ.get("ORACLE_EXAMPLES", "300"))
"""How many groups, or messages, each test looks at."""
SEED = int(os.environ.get("ORACLE_SEED", "0"))

NEIGHBOURS = tuple("abcdefghijklmno")
"""Member ids that a Java HashMap keeps in alphabetical order: their hash codes are neighbours, as its buckets are."""
STRANGERS = ("consumer-1-af", "consumer-10-b", "consumer-2-c", "aa", "é", "\uff41-x", "\U0001f600-y", "B", "-", "zz z")
"""Member ids that it keeps in an order of its own."""

RACKS = ("r1", "r2", "r3")
WHERE = ("nowhere", "everywhere", "somewhere")
"""In which racks the partitions of a topic are; nowhere when racks are not known."""
GONE = "gone"
"""A topic that members subscribe to and that does not exist."""

Test = Callable[..., None]


def on_random_examples(examples: int = EXAMPLES) -> Callable[[Test], Test]:
    """As many examples as asked for, and the same ones for the same seed."""

    def decorated(test: Test) -> Test:
        return seed(SEED)(settings(max_examples=examples, deadline=None, database=None)(test))

    return decorated


@dataclass(frozen=True)
class Case:
    """One rebalance as its leader sees it."""

    assignor_name: str
    topics: dict[str, TopicMetadata]
    encoded_members: list[tuple[str, str | None, bytes]]
    """Member id, instance id, and the subscription as bytes."""
    contested: frozenset[TopicPartition] = frozenset()
    """Partitions that two members claim."""

    @property
    def members(self) -> list[GroupSubscription]:
        return [GroupSubscription(m, i, decode_subscription(encoded)) for m, i, encoded in self.encoded_members]

    @property
    def racks_are_known(self) -> bool:
        """Of some consumers and some replicas."""
        return any(member.subscription.rack_id for member in self.members) and any(
            topic.racks for topic in self.topics.values()
        )

    @property
    def subscriptions_are_equal(self) -> bool:
        return len({frozenset(member.subscription.topics) for member in self.members}) == 1


@dataclass(frozen=True)
class Shape:
    """What kind of group it is."""

    topics: int
    most_partitions: int
    equal_topics: bool
    """All topics have as many partitions, so that range divides them alike."""
    members: int
    equal_subscriptions: bool
    racks: str
    version: int
    owned_share: float
    """Of all partitions, how many are owned by somebody."""
    skew: int
    """The higher, the less evenly they are owned."""
    generations: tuple[int, ...]
    contested_share: float
    chance: Random = field(repr=False)


def shape(chance: Random) -> Shape:
    """Of groups that are small enough to be looked at."""
    return Shape(
        topics=chance.randint(1, 5),
        most_partitions=chance.randint(0, 12),
        equal_topics=chance.random() < 0.5,
        members=chance.randint(1, 10),
        equal_subscriptions=chance.random() < 0.5,
        racks=chance.choice([*WHERE, "somewhere", "somewhere", "mixed"]),
        version=chance.choice([3] * 9 + [2, 1, 0]),
        owned_share=chance.choice([0.0, 0.5, 0.9, 1.0]),
        skew=chance.randint(0, 5),
        generations=chance.choice([(5,), (5, 5, 4), (5, 4, -1)]),
        contested_share=chance.choice([0.0, 0.0, 0.1]),
        chance=chance,
    )


def cases(assignor_name: str, ids: Sequence[str]) -> st.SearchStrategy[Case]:
    """Members that use one assignor, and report what they own in its way and in one version of the protocol.

    Left out are claims that Kafka's assignors take amiss, as ``test_differences`` shows: a partition twice, or one that
    does not exist; what a member of an older generation no longer wants; no topics at all for the first member.
    """
    # Hypothesis chooses no more than a number: left to choose shapes, it prefers small groups, and repeats itself.
    return st.integers(0, 2**64 - 1).map(lambda randomness: made(assignor_name, ids, shape(Random(randomness))))


def made(assignor_name: str, ids: Sequence[str], shape: Shape) -> Case:
    """A group of that shape."""
    chance = shape.chance
    topics = _topics(shape)
    member_ids = sorted(chance.sample(ids, min(len(ids), shape.members)), key=java_order)
    wanted = _wanted(shape, [*topics, GONE], member_ids)
    generations = {m: chance.choice(shape.generations) for m in member_ids}
    claimants = _claimants(shape, topics, wanted, generations)
    members = []
    for m in member_ids:
        owned = [partition for partition, members_of_it in claimants.items() if m in members_of_it]
        rack = chance.choice([None, "elsewhere", *RACKS, *RACKS])
        encoded = encode_subscription(_reporting(assignor_name, owned, generations[m], wanted[m], rack), shape.version)
        # Reversed, so that the order of instance ids is not that of member ids.
        members.append((m, f"{m}-i"[::-1] if chance.random() < 0.3 else None, encoded))
    contested = frozenset(partition for partition, members_of_it in claimants.items() if len(members_of_it) > 1)
    return Case(assignor_name, topics, members, contested)


def _topics(shape: Shape) -> dict[str, TopicMetadata]:
    chance = shape.chance
    common_count = chance.randint(0, shape.most_partitions)
    topics = {}
    for i in range(shape.topics):
        count = common_count if shape.equal_topics else chance.randint(0, shape.most_partitions)
        where = chance.choice(WHERE) if shape.racks == "mixed" else shape.racks
        topics[f"t{i}"] = TopicMetadata(
            count, [_racks(where, chance) for _ in range(count if where != "nowhere" else 0)]
        )
    return topics


def _racks(where: str, chance: Random) -> frozenset[str]:
    """Of the replicas of a partition."""
    return frozenset(RACKS if where == "everywhere" else chance.sample(RACKS, chance.randint(0, len(RACKS))))


def _wanted(shape: Shape, names: list[str], member_ids: list[str]) -> dict[str, list[str]]:
    chance = shape.chance
    common = chance.sample(names, chance.choice([0, 1, *[len(names)] * 4]))
    return {
        m: common if shape.equal_subscriptions else chance.sample(names, chance.randint(1 if i == 0 else 0, len(names)))
        for i, m in enumerate(member_ids)
    }


def _claimants(
    shape: Shape, topics: dict[str, TopicMetadata], wanted: dict[str, list[str]], generations: dict[str, int]
) -> dict[TopicPartition, set[str]]:
    chance, newest = shape.chance, max(generations.values())
    weights = {m: chance.random() ** shape.skew for m in wanted}
    # Before version 2 Kafka's assignors compare generations that they have from different places.
    contested_share = shape.contested_share if shape.version >= 2 else 0.0
    claimants = {}
    for partition in topic_partitions(topics):
        candidates = [m for m in wanted if generations[m] == newest or partition.topic in wanted[m]]
        claims = (chance.random() < shape.owned_share) + (chance.random() < contested_share)
        drawn = chance.choices(candidates, [weights[m] for m in candidates], k=claims) if candidates else []
        claimants[partition] = set(drawn)
    return claimants


def _reporting(
    assignor_name: str, owned: list[TopicPartition], generation: int, topics: list[str], rack: str | None
) -> Subscription:
    if assignor_name == "sticky":
        user_data = encode_owned_partitions(owned, generation)
        # The layout without a generation is that of consumers of before 2.3.
        return Subscription(topics, user_data if generation >= 0 else user_data[:-4], [], generation, rack)
    if assignor_name == "cooperative-sticky":
        return Subscription(topics, encode_generation(generation), owned, generation, rack)
    return Subscription(topics, None, owned, generation, rack)
