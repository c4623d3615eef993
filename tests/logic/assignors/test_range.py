"""The range assignor: ranges of consecutive partitions of each topic."""

import pytest

from coordinator_logic.assignors import GroupSubscription, RangeAssignor

from .groups import Assigned, assigned, cluster, member, partitions


def assign(topics: str, *members: GroupSubscription) -> Assigned:
    return RangeAssignor().assign(cluster(topics), members)


def test_the_first_member_gets_the_remaining_partition_of_every_topic() -> None:
    assert assign("t1:3 t2:3", member("c1", "t1 t2"), member("c2", "t1 t2")) == assigned(
        c1="t1-0 t1-1 t2-0 t2-1", c2="t1-2 t2-2"
    )


def test_a_topic_is_assigned_to_its_subscribers_only() -> None:
    members = member("c1", "topic1"), member("c2", "topic1 topic2"), member("c3", "topic1")
    assert assign("topic1:3 topic2:2", *members) == assigned(
        c1="topic1-0", c2="topic1-1 topic2-0 topic2-1", c3="topic1-2"
    )


def test_the_last_members_get_nothing_if_there_are_more_members_than_partitions() -> None:
    assert assign("t1:1", member("c1", "t1"), member("c2", "t1")) == assigned(c1="t1-0", c2="")


def test_static_members_precede_dynamic_members() -> None:
    members = member("consumer-a", "t1 t2"), member("consumer-b", "t1 t2", instance_id="i1")
    assert assign("t1:3 t2:3", *members) == {
        "consumer-b": partitions("t1-0 t1-1 t2-0 t2-1"),
        "consumer-a": partitions("t1-2 t2-2"),
    }


def test_static_members_are_ordered_by_instance_id() -> None:
    statics = [member(f"c{i}", "t1 t2", instance_id=f"i{i}") for i in (3, 1, 2)]
    assert assign("t1:5 t2:4", member("c4", "t1 t2"), *statics) == assigned(
        c1="t1-0 t1-1 t2-0", c2="t1-2 t2-1", c3="t1-3 t2-2", c4="t1-4 t2-3"
    )


def test_a_static_member_keeps_its_partitions_when_it_restarts_with_a_new_member_id() -> None:
    others = member("m", "t1", instance_id="i1"), member("n", "t1", instance_id="i3")
    before = assign("t1:7", member("a-before", "t1", instance_id="i2"), *others)
    after = assign("t1:7", member("z-after", "t1", instance_id="i2"), *others)
    assert after["z-after"] == before["a-before"]


def test_each_topic_has_its_own_quota() -> None:
    members = [member(m, "t1 t2 t3") for m in "abc"]
    assert assign("t1:6 t2:7 t3:2", *members) == assigned(
        a="t1-0 t1-1 t2-0 t2-1 t2-2 t3-0", b="t1-2 t1-3 t2-3 t2-4 t3-1", c="t1-4 t1-5 t2-5 t2-6"
    )


def test_topics_with_the_same_subscribers_are_copartitioned() -> None:
    members = member("a", "t1 t2 t3"), member("b", "t1 t2 t3"), member("c", "t1 t3")
    assert assign("t1:5 t2:5 t3:5", *members) == assigned(
        a="t1-0 t1-1 t2-0 t2-1 t2-2 t3-0 t3-1",
        b="t1-2 t1-3 t2-3 t2-4 t3-2 t3-3",
        c="t1-4 t3-4",
    )


@pytest.mark.parametrize("topics", ["", "t1:0", "other:3"])
def test_a_topic_without_partitions_is_not_assigned(topics: str) -> None:
    assert assign(topics, member("c1", "t1")) == assigned(c1="")


def test_members_are_ordered_as_java_orders_strings() -> None:
    members = member("\uff41", "t1"), member("\U0001f600", "t1")
    assert assign("t1:1", *members) == {"\uff41": [], "\U0001f600": partitions("t1-0")}
