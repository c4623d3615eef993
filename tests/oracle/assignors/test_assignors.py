"""The four assignors compared with Kafka's on random groups.

Kafka's sticky assignors process members in the order of a HashMap. If this is the order of member ids, as for
``HASH_ORDERED_IDS``, the assignments are equal; for other ids they are equally balanced and sticky. The random groups
lead to two differences (``test_differences`` has the others):

- Instead of moving a partition opposite to an earlier move of the same topic, Kafka's sticky assignors revert the
  earlier move only, which need not reduce the load of the overloaded member. Ours revert both, see
  :func:`reverted_moves`.
- With different subscriptions, Kafka's cooperative-sticky assigns a partition that two members claim to one of them at
  once. Ours does not assign it until both have revoked it, as Kafka does with equal subscriptions.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from random import Random
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.assignors import TopicMetadata, assignor_by_name
from coordinator_logic.assignors.sticky import AbstractStickyAssignor, general
from coordinator_logic.assignors.sticky.general import PartitionMovements
from coordinator_logic.embedded_protocols import TopicPartition, encode_subscription
from tests.logic.assignors.groups import DrivenGroup, assert_complete_and_valid, assert_no_swaps

from .cases import (
    EXAMPLES,
    HASH_ORDERED_IDS,
    OTHER_IDS,
    RACKS,
    SEED,
    Case,
    Shape,
    cases,
    on_random_examples,
    random_case,
)
from .kafka_classes import Assigned, KafkaClasses

STICKY = ("sticky", "cooperative-sticky")


@pytest.mark.parametrize("ids", [HASH_ORDERED_IDS, OTHER_IDS], ids=["hash-ordered ids", "other ids"])
@pytest.mark.parametrize("name", ["range", "roundrobin"])
@on_random_examples()
@given(data=st.data())
def test_stateless_assignors_have_equal_results(
    kafka: KafkaClasses, name: str, ids: tuple[str, ...], data: st.DataObject
) -> None:
    case = data.draw(cases(name, ids))
    assert ordered(assign(case)) == ordered(kafka.assign(name, case.topics, case.encoded_members))


@pytest.mark.parametrize("name", STICKY)
@on_random_examples()
@given(data=st.data())
def test_sticky_assignors_have_equal_results_for_the_same_order_of_members(
    kafka: KafkaClasses, name: str, data: st.DataObject
) -> None:
    case = data.draw(cases(name, HASH_ORDERED_IDS))
    with reverted_moves() as reverted:
        ours = assign(case)
    theirs = kafka.assign(name, case.topics, case.encoded_members)
    if reverted:
        assert_at_least_as_good(case, ours, theirs)
    elif name == "cooperative-sticky" and not case.subscriptions_are_equal:
        assert ordered(without(case.conflicting, ours)) == ordered(without(case.conflicting, theirs))
    else:
        assert ordered(ours) == ordered(theirs)


@pytest.mark.parametrize("name", STICKY)
@on_random_examples()
@given(data=st.data())
def test_sticky_assignments_are_at_least_as_good_for_any_order_of_members(
    kafka: KafkaClasses, name: str, data: st.DataObject
) -> None:
    case = data.draw(cases(name, OTHER_IDS))
    assert_at_least_as_good(case, assign(case), kafka.assign(name, case.topics, case.encoded_members))


@pytest.mark.parametrize("name", STICKY)
def test_sticky_assignments_are_at_least_as_good_where_moves_are_reverted(kafka: KafkaClasses, name: str) -> None:
    # One of two hundred unbalanced groups leads to such moves.
    chance, found = Random(SEED), 0
    for _ in range(max(2_000, 10 * EXAMPLES)):
        case = random_case(name, HASH_ORDERED_IDS, unbalanced_shape(chance))
        with reverted_moves() as reverted:
            ours = assign(case)
        if reverted:
            found += 1
            assert_at_least_as_good(case, ours, kafka.assign(name, case.topics, case.encoded_members))
    assert found


@pytest.mark.parametrize("name", STICKY)
@on_random_examples(max(1, EXAMPLES // 5))
@given(randomness=st.integers(0, 2**64 - 1))
def test_a_changing_group_gets_equal_assignments_in_each_rebalance(
    kafka: KafkaClasses, name: str, randomness: int
) -> None:
    chance = Random(randomness)
    topics = {f"t{i}": topic(chance) for i in range(3)}
    group = DrivenGroup(name, topics)
    for member_id in chance.sample(HASH_ORDERED_IDS, 5):
        join(group, member_id, chance)
    for _ in range(4):
        members = group.subscriptions()
        encoded = [(m.member_id, m.group_instance_id, encode_subscription(m.subscription)) for m in members]
        theirs = kafka.assign(name, topics, encoded)
        with reverted_moves() as reverted:
            ours = group.rebalance()
        assert reverted or ordered(ours) == ordered(theirs)
        change(group, chance)


def change(group: DrivenGroup, chance: Random) -> None:
    """Make a change: a member leaves, joins or resubscribes, or a topic grows; or change nothing."""
    new_members = [member_id for member_id in HASH_ORDERED_IDS if member_id not in group.subscribed]
    existing_member = chance.choice(sorted(group.subscribed))
    match chance.choice(["leave", "join", "resubscribe", "grow", "nothing"]):
        case "leave" if len(group.subscribed) > 1:
            group.leave(existing_member)
        case "join":
            join(group, chance.choice(new_members), chance)
        case "resubscribe":
            group.subscribed[existing_member] = random_topics(group, chance)
        case "grow":
            group.topics["t0"] = topic(chance, at_least=group.topics["t0"].partitions)
        case _:
            pass


def join(group: DrivenGroup, member_id: str, chance: Random) -> None:
    group.join(member_id, random_topics(group, chance), chance.choice([None, *RACKS]))


def random_topics(group: DrivenGroup, chance: Random) -> list[str]:
    """Choose the topics of a member: mostly all of them, so that subscriptions are equal in some groups only."""
    return chance.sample(list(group.topics), chance.choice([1, 2, 3, 3, 3, 3, 3, 3]))


def topic(chance: Random, at_least: int = 0) -> TopicMetadata:
    count = at_least + chance.randint(0, 5)
    return TopicMetadata(count, [frozenset(chance.sample(RACKS, chance.choice([0, 1, 3, 3, 3]))) for _ in range(count)])


def unbalanced_shape(chance: Random) -> Shape:
    """Choose the parameters of a group with different subscriptions, in which few members own most partitions."""
    return Shape(
        topics=chance.randint(1, 3),
        most_partitions=chance.randint(4, 12),
        equal_topics=False,
        members=chance.randint(4, 9),
        equal_subscriptions=False,
        racks="nowhere",
        version=3,
        owned_share=chance.choice([0.9, 1.0]),
        imbalance=chance.randint(3, 5),
        generations=(5,),
        conflicting_share=0.0,
        chance=Random(chance.random()),
    )


# --------------------------------------------------------------------------------------------------------------
# What is compared


def assign(case: Case) -> Assigned:
    return assignor_by_name(case.assignor_name).assign(case.topics, case.members)


def assert_at_least_as_good(case: Case, ours: Assigned, theirs: Assigned) -> None:
    """Check that our assignment is complete, at least as balanced and as sticky as Kafka's, and without exchanges."""
    if case.assignor_name == "sticky":
        assert_complete_and_valid(ours, case.topics, case.members)
        assert balance_score(ours) <= balance_score(theirs)
    if not case.racks_are_known and not case.conflicting:
        assert kept(case, ours) >= kept(case, theirs)
        assert_no_swaps(owned(case), ours)
        # cooperative-sticky does not assign moving partitions.
        assert sum(map(len, ours.values())) >= sum(map(len, theirs.values()))


def ordered(assignment: Assigned) -> Assigned:
    """Sort the partitions of each member, whose order has no meaning."""
    return {member_id: sorted(partitions) for member_id, partitions in assignment.items()}


def without(excluded: Iterable[TopicPartition], assignment: Assigned) -> Assigned:
    return {member_id: [tp for tp in partitions if tp not in excluded] for member_id, partitions in assignment.items()}


def owned(case: Case) -> Assigned:
    """Return the partitions that members claim."""
    assignor = assignor_by_name(case.assignor_name)
    assert isinstance(assignor, AbstractStickyAssignor)
    return {member.member_id: assignor.member_data(member.subscription).partitions for member in case.members}


def kept(case: Case, assignment: Assigned) -> int:
    """Return the number of partitions that stay with their owners."""
    return sum(len(set(partitions) & set(assignment[member_id])) for member_id, partitions in owned(case).items())


def balance_score(assignment: Assigned) -> int:
    """Return Kafka's balance score: the sum of the differences between all pairs of members."""
    sizes = [len(partitions) for partitions in assignment.values()]
    return sum(abs(a - b) for a in sizes for b in sizes) // 2


@contextmanager
def reverted_moves() -> Iterator[list[TopicPartition]]:
    """Collect partitions whose moves are reverted because another one of the topic would move in the opposite way."""
    reverted = []

    class RecordingMovements(PartitionMovements):
        def any_moved(self, topic: str, source: str, destination: str) -> TopicPartition | None:
            moved = super().any_moved(topic, source, destination)
            if moved is not None:
                reverted.append(moved)
            return moved

    with mock.patch.object(general, "PartitionMovements", RecordingMovements):
        yield reverted
