"""Intended differences between the sticky assignors and Kafka's: the result of Kafka's assignor, and ours.

Correct consumers do not make such claims, but a consumer that was absent for long or that has a defect may.
"""

from coordinator_logic.assignors import CooperativeStickyAssignor, GroupSubscription
from coordinator_logic.embedded_protocols import encode_subscription
from tests.logic.assignors.groups import Assigned, assigned, cluster, member_owning

from .kafka_classes import JavaException, KafkaClasses

COOPERATIVE = CooperativeStickyAssignor.name


def claim(member_id: str, topics: str, owned: str = "", generation: int = 2) -> GroupSubscription:
    return member_owning(COOPERATIVE, member_id, topics, owned, generation)


def ours(topics: str, *members: GroupSubscription) -> Assigned:
    return CooperativeStickyAssignor().assign(cluster(topics), members)


def theirs(kafka: KafkaClasses, topics: str, *members: GroupSubscription) -> Assigned | str:
    """Return Kafka's assignment, or the name of the exception that its assignor throws."""
    encoded = [(m.member_id, m.group_instance_id, encode_subscription(m.subscription)) for m in members]
    try:
        return kafka.assign(COOPERATIVE, cluster(topics), encoded)
    except JavaException as error:
        return str(error)


def test_a_claim_of_a_higher_generation_than_two_conflicting_ones_is_valid(kafka: KafkaClasses) -> None:
    group = claim("a", "t", "t-0", 1), claim("b", "t", "t-0", 1), claim("c", "t", "t-0", 2)
    assert theirs(kafka, "t:3", *group) == assigned(a="", b="t-1", c="t-2")
    assert ours("t:3", *group) == assigned(a="t-1", b="t-2", c="t-0")


def test_a_partition_that_one_member_lists_twice_is_one_claim(kafka: KafkaClasses) -> None:
    group = claim("a", "t", "t-1 t-1"), claim("b", "t")
    assert theirs(kafka, "t:2", *group) == assigned(a="t-0", b="")
    assert ours("t:2", *group) == assigned(a="t-1", b="t-0")


def test_a_claim_to_a_partition_that_does_not_exist_is_ignored(kafka: KafkaClasses) -> None:
    group = claim("a", "t", "t-7"), claim("b", "t", "t-0")
    assert theirs(kafka, "t:2", *group) == "IllegalStateException"
    assert ours("t:2", *group) == assigned(a="t-1", b="t-0")


def test_a_first_member_without_topics_gets_nothing(kafka: KafkaClasses) -> None:
    group = claim("a", ""), claim("b", "t")
    assert theirs(kafka, "t:2", *group) == assigned(a="t-0", b="t-1")
    assert ours("t:2", *group) == assigned(a="", b="t-0 t-1")


def test_a_former_owner_gets_no_unsubscribed_partition_back(kafka: KafkaClasses) -> None:
    group = claim("b", "t", "t-0 t-1 t-2 t-3"), claim("c", "u", "t-0 u-0", 1), claim("d", "t u")
    assert theirs(kafka, "t:4 u:1", *group) == assigned(b="t-2 t-3", c="u-0 t-0", d="")
    assert ours("t:4 u:1", *group) == assigned(b="t-2 t-3", c="u-0", d="")


def test_a_former_owner_without_common_topics_causes_no_error(kafka: KafkaClasses) -> None:
    group = claim("b", "t", "t-0 t-1 t-2 t-3"), claim("c", "u", "t-0 u-0", 1), claim("d", "t")
    assert theirs(kafka, "t:4 u:1", *group) == "NullPointerException"
    assert ours("t:4 u:1", *group) == assigned(b="t-2 t-3", c="u-0", d="")


def test_a_stale_claim_does_not_transfer_a_partition_from_its_current_owner(kafka: KafkaClasses) -> None:
    group = claim("a", "t", "t-0 t-1 t-2", 2), claim("b", "t u", "t-0", 1)
    assert theirs(kafka, "t:3", *group) == assigned(a="t-1 t-2", b="t-0")
    assert ours("t:3", *group) == assigned(a="t-1 t-2", b="")


def test_a_partition_that_two_members_claim_is_not_assigned_until_both_have_revoked_it(kafka: KafkaClasses) -> None:
    group = claim("a", "t", "t-0"), claim("b", "t u", "t-0 t-1")
    assert theirs(kafka, "t:2 u:1", *group) == assigned(a="t-0", b="t-1 u-0")
    assert ours("t:2 u:1", *group) == assigned(a="", b="t-1 u-0")
