"""The round-robin assignor: one partition for each member in turn."""

from coordinator_logic.assignors import GroupSubscription, RoundRobinAssignor

from .groups import Assigned, assigned, cluster, member, partitions


def assign(topics: str, *members: GroupSubscription) -> Assigned:
    return RoundRobinAssignor().assign(cluster(topics), members)


def test_the_next_topic_continues_with_the_next_member() -> None:
    assert assign("t1:3 t2:3", member("c1", "t1 t2"), member("c2", "t1 t2")) == assigned(
        c1="t1-0 t1-2 t2-1", c2="t1-1 t2-0 t2-2"
    )


def test_members_that_do_not_subscribe_to_the_topic_are_skipped() -> None:
    members = member("c1", "topic1"), member("c2", "topic1 topic2"), member("c3", "topic1")
    assert assign("topic1:3 topic2:2", *members) == assigned(
        c1="topic1-0", c2="topic1-1 topic2-0 topic2-1", c3="topic1-2"
    )


def test_a_member_can_get_nothing_with_different_subscriptions() -> None:
    every, some = "1 2 3 4 5", "1 3 5"
    members = member("c1", every), member("c2", some), member("c3", some), member("c4", every)
    assert assign("1:2 2:1 3:2 4:1 5:2", *members) == assigned(c1="1-0 3-0 5-0", c2="1-1 3-1 5-1", c3="", c4="2-0 4-0")


def test_static_members_are_ordered_by_instance_id() -> None:
    members = member("consumer-a", "t1 t2", "i2"), member("consumer-b", "t1 t2", "i1")
    assert assign("t1:3 t2:3", *members) == {
        "consumer-b": partitions("t1-0 t1-2 t2-1"),
        "consumer-a": partitions("t1-1 t2-0 t2-2"),
    }


def test_topics_without_partitions_or_subscribers_are_not_assigned() -> None:
    assert assign("t1:0 t2:1 other:5", member("c1", "t1 t2 t3"), member("c2", "")) == assigned(c1="t2-0", c2="")
