"""The four assignors beside Kafka's own, on random groups.

Kafka's sticky assignors visit members in the order of a HashMap. Where that is the order of member ids, as it is for
``NEIGHBOURS``, the assignments are the same, partition by partition; for other ids they are as balanced and as sticky.
Two differences are met on the way (``test_differences`` has the others):

- Kafka's sticky assignors send a partition home instead of making an opposite move of the same topic, and leave it at
  that, which need not relieve who has too many; here both partitions go home. See :func:`movements_watched`.
- With different subscriptions, Kafka's cooperative-sticky gives a partition that two members claim to one of them
  at once; here it is withheld until both have dropped it, as Kafka does with equal subscriptions too.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from random import Random
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.consumer_protocol import TopicPartition, encode_subscription
from coordinator_logic.consumer_protocol.assignors import TopicMetadata, assignor_by_name
from coordinator_logic.consumer_protocol.assignors.sticky import AbstractStickyAssignor, general
from coordinator_logic.consumer_protocol.assignors.sticky.partition_movements import PartitionMovements
from tests.logic.consumer_protocol.groups import DrivenGroup, assert_complete_and_valid, assert_no_swaps

from .cases import EXAMPLES, NEIGHBOURS, RACKS, SEED, STRANGERS, Case, Shape, cases, made, on_random_examples
from .kafka_classes import Assigned, KafkaClasses

STICKY = ("sticky", "cooperative-sticky")


@pytest.mark.parametrize("ids", [NEIGHBOURS, STRANGERS], ids=["neighbours", "strangers"])
@pytest.mark.parametrize("name", ["range", "roundrobin"])
@on_random_examples()
@given(data=st.data())
def test_stateless_assignors_assign_the_same(
    kafka: KafkaClasses, name: str, ids: tuple[str, ...], data: st.DataObject
) -> None:
    case = data.draw(cases(name, ids))
    assert ordered(assign(case)) == ordered(kafka.assign(name, case.topics, case.encoded_members))


@pytest.mark.parametrize("name", STICKY)
@on_random_examples()
@given(data=st.data())
def test_sticky_assignors_assign_the_same_when_they_visit_members_in_the_same_order(
    kafka: KafkaClasses, name: str, data: st.DataObject
) -> None:
    case = data.draw(cases(name, NEIGHBOURS))
    with movements_watched() as sent_home:
        ours = assign(case)
    theirs = kafka.assign(name, case.topics, case.encoded_members)
    if sent_home:
        assert_as_good(case, ours, theirs)
    elif name == "cooperative-sticky" and not case.subscriptions_are_equal:
        assert ordered(without(case.contested, ours)) == ordered(without(case.contested, theirs))
    else:
        assert ordered(ours) == ordered(theirs)


@pytest.mark.parametrize("name", STICKY)
@on_random_examples()
@given(data=st.data())
def test_sticky_assignments_are_as_good_in_whatever_order_members_are_visited(
    kafka: KafkaClasses, name: str, data: st.DataObject
) -> None:
    case = data.draw(cases(name, STRANGERS))
    assert_as_good(case, assign(case), kafka.assign(name, case.topics, case.encoded_members))


@pytest.mark.parametrize("name", STICKY)
def test_sticky_assignments_are_as_good_where_moves_would_cross(kafka: KafkaClasses, name: str) -> None:
    # One lopsided group in two hundred is of this kind.
    chance, found = Random(SEED), 0
    for _ in range(max(2_000, 10 * EXAMPLES)):
        case = made(name, NEIGHBOURS, lopsided(chance))
        with movements_watched() as sent_home:
            ours = assign(case)
        if sent_home:
            found += 1
            assert_as_good(case, ours, kafka.assign(name, case.topics, case.encoded_members))
    assert found


@pytest.mark.parametrize("name", STICKY)
@on_random_examples(max(1, EXAMPLES // 5))
@given(randomness=st.integers(0, 2**64 - 1))
def test_a_group_that_changes_gets_the_same_from_rebalance_to_rebalance(
    kafka: KafkaClasses, name: str, randomness: int
) -> None:
    chance = Random(randomness)
    topics = {f"t{i}": topic(chance) for i in range(3)}
    group = DrivenGroup(name, topics)
    for member_id in chance.sample(NEIGHBOURS, 5):
        join(group, member_id, chance)
    for _ in range(4):
        members = group.subscriptions()
        encoded = [(m.member_id, m.group_instance_id, encode_subscription(m.subscription)) for m in members]
        theirs = kafka.assign(name, topics, encoded)
        with movements_watched() as sent_home:
            ours = group.rebalance()
        assert sent_home or ordered(ours) == ordered(theirs)
        change(group, chance)


def change(group: DrivenGroup, chance: Random) -> None:
    """Somebody leaves, joins or subscribes to something else, or a topic grows; or nothing has changed."""
    newcomers = [member_id for member_id in NEIGHBOURS if member_id not in group.wanted]
    somebody = chance.choice(sorted(group.wanted))
    match chance.choice(["leave", "join", "resubscribe", "grow", "nothing"]):
        case "leave" if len(group.wanted) > 1:
            group.leave(somebody)
        case "join":
            join(group, chance.choice(newcomers), chance)
        case "resubscribe":
            group.wanted[somebody] = wanted(group, chance)
        case "grow":
            group.topics["t0"] = topic(chance, at_least=group.topics["t0"].partitions)
        case _:
            pass


def join(group: DrivenGroup, member_id: str, chance: Random) -> None:
    group.join(member_id, wanted(group, chance), chance.choice([None, *RACKS]))


def wanted(group: DrivenGroup, chance: Random) -> list[str]:
    """Mostly everything, so that subscriptions are equal in some groups and not in others."""
    return chance.sample(list(group.topics), chance.choice([1, 2, 3, 3, 3, 3, 3, 3]))


def topic(chance: Random, at_least: int = 0) -> TopicMetadata:
    count = at_least + chance.randint(0, 5)
    return TopicMetadata(count, [frozenset(chance.sample(RACKS, chance.choice([0, 1, 3, 3, 3]))) for _ in range(count)])


def lopsided(chance: Random) -> Shape:
    """Groups with different subscriptions, in which a few members own nearly everything."""
    return Shape(
        topics=chance.randint(1, 3),
        most_partitions=chance.randint(4, 12),
        equal_topics=False,
        members=chance.randint(4, 9),
        equal_subscriptions=False,
        racks="nowhere",
        version=3,
        owned_share=chance.choice([0.9, 1.0]),
        skew=chance.randint(3, 5),
        generations=(5,),
        contested_share=0.0,
        chance=Random(chance.random()),
    )


# --------------------------------------------------------------------------------------------------------------
# What is compared


def assign(case: Case) -> Assigned:
    return assignor_by_name(case.assignor_name).assign(case.topics, case.members)


def assert_as_good(case: Case, ours: Assigned, theirs: Assigned) -> None:
    """Complete, no less balanced, nothing moved that Kafka leaves where it is, and no two members swap anything."""
    if case.assignor_name == "sticky":
        assert_complete_and_valid(ours, case.topics, case.members)
        assert imbalance(ours) <= imbalance(theirs)
    if not case.racks_are_known and not case.contested:
        assert kept(case, ours) >= kept(case, theirs)
        assert_no_swaps(owned(case), ours)
        # What moves is withheld by cooperative-sticky.
        assert sum(map(len, ours.values())) >= sum(map(len, theirs.values()))


def ordered(assignment: Assigned) -> Assigned:
    """In which order a member is given its partitions means nothing."""
    return {member_id: sorted(partitions) for member_id, partitions in assignment.items()}


def without(left_out: Iterable[TopicPartition], assignment: Assigned) -> Assigned:
    return {member_id: [tp for tp in given if tp not in left_out] for member_id, given in assignment.items()}


def owned(case: Case) -> Assigned:
    """What members say they own."""
    assignor = assignor_by_name(case.assignor_name)
    assert isinstance(assignor, AbstractStickyAssignor)
    return {member.member_id: assignor.member_data(member.subscription).partitions for member in case.members}


def kept(case: Case, assignment: Assigned) -> int:
    """How many partitions stay where they are."""
    return sum(len(set(partitions) & set(assignment[member_id])) for member_id, partitions in owned(case).items())


def imbalance(assignment: Assigned) -> int:
    """Kafka's balance score: the differences between all pairs of members, added up."""
    sizes = [len(partitions) for partitions in assignment.values()]
    return sum(abs(a - b) for a in sizes for b in sizes) // 2


@contextmanager
def movements_watched() -> Iterator[list[TopicPartition]]:
    """Lists the partitions that are sent home because another one of the topic is to move the opposite way."""
    sent_home = []

    class Watched(PartitionMovements):
        def any_moved(self, topic: str, source: str, destination: str) -> TopicPartition | None:
            moved = super().any_moved(topic, source, destination)
            if moved is not None:
                sent_home.append(moved)
            return moved

    with mock.patch.object(general, "PartitionMovements", Watched):
        yield sent_home
