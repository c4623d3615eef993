"""Cooperative rebalancing: one rebalance revokes a partition, the next one assigns it to another member."""

from coordinator_logic.assignors import CooperativeStickyAssignor, GroupSubscription
from coordinator_logic.embedded_protocols import Subscription, decode_subscription, encode_subscription

from .groups import Assigned, DrivenGroup, assigned, cluster, member_owning, partitions


def assign(topics: str, generation: int = 1, **owned: str) -> Assigned:
    """Assign once. Every member subscribes to all topics and owns the named partitions."""
    names = " ".join(cluster(topics))
    members = [member_owning("cooperative-sticky", m, names, text, generation) for m, text in owned.items()]
    return CooperativeStickyAssignor().assign(cluster(topics), members)


def test_a_new_member_gets_a_revoked_partition_in_the_next_rebalance() -> None:
    first_round = assign("t1:2 t2:2", c1="t1-0 t2-0", c2="t1-1 t2-1", c3="")
    assert first_round["c3"] == []
    assert sorted(len(owned) for owned in first_round.values()) == [0, 1, 2]

    group = DrivenGroup("cooperative-sticky", cluster("t1:2 t2:2"))
    for member_id, owned in assigned(c1="t1-0 t2-0", c2="t1-1 t2-1", c3="").items():
        group.join(member_id, ["t1", "t2"])
        group.receive(member_id, owned, generation=1)
    assert group.rebalance() == first_round
    assert sorted(len(owned) for owned in group.rebalance().values()) == [1, 1, 2]


def test_moving_half_of_the_partitions_takes_two_rebalances() -> None:
    assert assign("t:4", c1="t-0 t-1 t-2 t-3", c2="") == assigned(c1="t-0 t-1", c2="")
    assert assign("t:4", c1="t-0 t-1", c2="") == assigned(c1="t-0 t-1", c2="t-2 t-3")


def test_a_partition_that_two_members_claim_is_not_assigned_until_both_have_revoked_it() -> None:
    assert assign("t:3", c1="t-0 t-1", c2="t-0 t-2", c3="") == assigned(c1="t-1", c2="t-2", c3="")


def test_a_partition_without_an_owner_is_assigned_at_once() -> None:
    assert assign("t:4", c1="t-0 t-1", c2="t-0 t-2", c3="") == assigned(c1="t-1 t-3", c2="t-2", c3="")


def test_a_moving_partition_is_not_assigned_with_different_subscriptions_either() -> None:
    c1 = member_owning("cooperative-sticky", "c1", "t", "t-0 t-1 t-2 t-3")
    c2 = member_owning("cooperative-sticky", "c2", "t u")
    assert CooperativeStickyAssignor().assign(cluster("t:4 u:1"), [c1, c2]) == assigned(c1="t-1 t-2 t-3", c2="u-0")


def test_a_stale_claim_does_not_transfer_a_partition_from_its_current_owner() -> None:
    # The balanced assignment gives t-0 back to c2, but c1 owns it now.
    c1 = member_owning("cooperative-sticky", "c1", "t", "t-0 t-1 t-2", generation=2)
    c2 = member_owning("cooperative-sticky", "c2", "t u", "t-0", generation=1)
    assert CooperativeStickyAssignor().assign(cluster("t:3"), [c1, c2]) == assigned(c1="t-1 t-2", c2="")


def test_the_generation_comes_from_the_user_data_before_version_2() -> None:
    def version_1(owned: str) -> Subscription:
        generation = CooperativeStickyAssignor().subscription_user_data()
        return decode_subscription(
            encode_subscription(Subscription(["topic1"], generation, partitions(owned)), version=1)
        )

    c1, c2 = version_1("topic1-0"), version_1("topic1-1")
    c3 = Subscription(["topic1"])
    members = [GroupSubscription(f"c{i}", None, s) for i, s in enumerate((c1, c2, c3), start=1)]
    assert CooperativeStickyAssignor().assign(cluster("topic1:3"), members) == assigned(
        c1="topic1-0", c2="topic1-1", c3="topic1-2"
    )


def test_of_two_version_1_claims_the_one_with_the_higher_generation_in_the_user_data_wins() -> None:
    def version_1(generation: int) -> Subscription:
        owned = partitions("t-0")
        return Subscription(["t"], generation.to_bytes(4, "big"), owned)

    members = [GroupSubscription(m, None, version_1(g)) for m, g in (("c1", 3), ("c2", 4))]
    assert CooperativeStickyAssignor().assign(cluster("t:2"), members) == assigned(c1="t-1", c2="t-0")


def test_a_member_with_a_version_0_subscription_owns_nothing() -> None:
    subscription = member_owning("cooperative-sticky", "c1", "t", "t-1").subscription
    c1 = GroupSubscription("c1", None, decode_subscription(encode_subscription(subscription, version=0)))
    c2 = member_owning("cooperative-sticky", "c2", "t")
    assert CooperativeStickyAssignor().assign(cluster("t:2"), [c1, c2]) == assigned(c1="t-0", c2="t-1")
