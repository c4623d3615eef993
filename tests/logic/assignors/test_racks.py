"""Rack awareness (KIP-881): members in a partition's racks take precedence, but never at the expense of balance."""

from collections.abc import Mapping

import pytest

from coordinator_logic.assignors import (
    CooperativeStickyAssignor,
    GroupSubscription,
    RangeAssignor,
    StickyAssignor,
    TopicMetadata,
)
from coordinator_logic.assignors.racks import racks_matter
from coordinator_logic.assignors.sticky import AbstractStickyAssignor
from coordinator_logic.embedded_protocols import TopicPartition

from .groups import Assigned, as_sets, assert_balanced, assigned, in_racks, member, member_owning, partitions

A, B, C = (frozenset(rack) for rack in "abc")

Topics = Mapping[str, TopicMetadata]


class TestRacksMatter:
    def test_if_a_consumer_shares_a_rack_with_some_partitions_only(self) -> None:
        assert racks_matter(["a"], [A, B])
        assert racks_matter(["a", "x"], [A, frozenset()])

    def test_not_if_every_partition_is_in_every_rack(self) -> None:
        assert not racks_matter(["a", "b"], [A | B, A | B])

    def test_not_if_no_replica_is_in_the_rack_of_a_consumer(self) -> None:
        assert not racks_matter(["c"], [A, B])
        assert not racks_matter([], [A, B])

    @pytest.mark.parametrize("racks", [[], [frozenset(), frozenset()]])
    def test_not_if_the_racks_of_replicas_are_unknown(self, racks: list[frozenset[str]]) -> None:
        assert not racks_matter(["a"], racks)


class TestRange:
    @staticmethod
    def assign(topics: Topics, *members: GroupSubscription) -> Assigned:
        return RangeAssignor().assign(topics, members)

    @staticmethod
    def subscribers(topics: Topics, *racks: str | None) -> list[GroupSubscription]:
        """Members m0, m1, ... in these racks, which subscribe to all topics."""
        return [member(f"m{i}", " ".join(topics), rack=rack) for i, rack in enumerate(racks)]

    def test_partitions_go_to_members_in_their_rack(self) -> None:
        topics = {"t1": in_racks(*"abcabc"), "t2": in_racks(*"abcabca"), "t3": in_racks(*"bc")}
        assert self.assign(topics, *self.subscribers(topics, "a", "b", "c")) == assigned(
            m0="t1-0 t1-3 t2-0 t2-3 t2-6", m1="t1-1 t1-4 t2-1 t2-4 t3-0", m2="t1-2 t1-5 t2-2 t2-5 t3-1"
        )

    def test_no_member_gets_more_than_its_quota_because_of_its_rack(self) -> None:
        topics = {"t": in_racks("a", "a", "a", "b")}
        assert self.assign(topics, *self.subscribers(topics, "b", "a")) == assigned(m0="t-2 t-3", m1="t-0 t-1")

    def test_the_remaining_partition_goes_to_the_member_in_its_rack_instead_of_the_first(self) -> None:
        topics = {"t": in_racks("b", "b", "a")}
        assert self.assign(topics, *self.subscribers(topics, "a", "b")) == assigned(m0="t-2", m1="t-0 t-1")

    def test_a_member_without_a_rack_counts_as_being_in_every_rack(self) -> None:
        topics = {"t": in_racks("b", "a", "b", "a")}
        assert self.assign(topics, *self.subscribers(topics, None, "b")) == assigned(m0="t-0 t-1", m1="t-2 t-3")

    def test_topics_stay_copartitioned(self) -> None:
        topics = {"t1": in_racks(*"abab"), "t2": in_racks(*"abab")}
        assert self.assign(topics, *self.subscribers(topics, "b", "a")) == assigned(
            m0="t1-1 t1-3 t2-1 t2-3", m1="t1-0 t1-2 t2-0 t2-2"
        )

    def test_topics_stay_copartitioned_if_their_replicas_are_in_different_racks(self) -> None:
        topics = {"t1": in_racks(*"abcab"), "t2": in_racks(*"bcabc"), "t3": in_racks(*"cabca")}
        members = self.subscribers(topics, "a", "b", "c")
        assert self.assign(topics, *members) == self.assign(topics, *self.subscribers(topics, None, None, None))

    def test_a_topic_with_replicas_in_all_racks_is_assigned_as_without_racks(self) -> None:
        topics = {"t1": in_racks(*["abc"] * 3), "t2": in_racks("b", "a")}
        assert self.assign(topics, *self.subscribers(topics, "a", "b")) == assigned(m0="t1-0 t1-1 t2-1", m1="t1-2 t2-0")

    def test_only_the_racks_of_a_topics_subscribers_count(self) -> None:
        topics = {"t": in_racks("b", "a"), "u": in_racks("b", "a")}
        members = member("m0", "t", rack="a"), member("m1", "t", rack="c"), member("m2", "u", rack="c")
        assert self.assign(topics, *members, member("m3", "u")) == assigned(m0="t-1", m1="t-0", m2="u-0", m3="u-1")


@pytest.fixture(params=[StickyAssignor, CooperativeStickyAssignor], ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> type[AbstractStickyAssignor]:
    chosen: type[AbstractStickyAssignor] = request.param
    return chosen


class TestSticky:
    """Both sticky assignors, without revocation. ``owned`` maps member and rack to owned partitions."""

    @staticmethod
    def outcome(
        kind: type[AbstractStickyAssignor], topics: Topics, subscribed: str, **owned: str
    ) -> tuple[dict[str, frozenset[TopicPartition]], dict[str, str]]:
        """The assignment and the transfers. Member ids end with the rack: ``m0a`` is in rack ``a``."""
        members = [member_owning(kind.name, m, subscribed, text, rack=m[2:] or None) for m, text in owned.items()]
        assignment, transferring = kind().assign_partitions(topics, members)
        return as_sets(assignment), {str(tp): m for tp, m in transferring.items()}

    def test_a_new_group_gets_partitions_in_its_racks(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"abcabc")}
        assert self.outcome(kind, topics, "t", m0c="", m1b="", m2a="") == (
            as_sets(assigned(m0c="t-2 t-5", m1b="t-1 t-4", m2a="t-0 t-3")),
            {},
        )

    def test_a_partition_moves_to_a_member_in_its_rack(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"abab")}
        assert self.outcome(kind, topics, "t", m0a="t-0 t-1", m1b="t-2 t-3") == (
            as_sets(assigned(m0a="t-0 t-2", m1b="t-1 t-3")),
            {"t-1": "m1b", "t-2": "m0a"},
        )

    def test_a_partition_without_a_member_with_capacity_in_its_racks_goes_to_another_member(
        self, kind: type[AbstractStickyAssignor]
    ) -> None:
        topics = {"t": in_racks(*"aaac")}
        assert self.outcome(kind, topics, "t", m0a="", m1b="") == (
            as_sets(assigned(m0a="t-0 t-1", m1b="t-2 t-3")),
            {},
        )

    def test_partitions_with_the_fewest_members_in_their_racks_are_assigned_first(
        self, kind: type[AbstractStickyAssignor]
    ) -> None:
        # In the order of numbers, m0a would get the only partitions in the rack of m1b.
        topics = {"t": in_racks("ab", "ab", "a", "a")}
        assert self.outcome(kind, topics, "t", m0a="", m1b="")[0] == as_sets(assigned(m0a="t-2 t-3", m1b="t-0 t-1"))

    def test_the_remaining_partition_goes_to_the_member_in_its_rack(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"abb")}
        assert self.outcome(kind, topics, "t", m0a="", m1b="")[0] == as_sets(assigned(m0a="t-0", m1b="t-1 t-2"))

    def test_the_number_of_members_above_the_minimum_quota_is_limited(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"abab")}
        assert self.outcome(kind, topics, "t", m0a="", m1b="", m2c="")[0] == as_sets(
            assigned(m0a="t-0 t-2", m1b="t-1", m2c="t-3")
        )

    def test_members_of_a_rack_get_partitions_in_turn(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"aaaabb")}
        assert self.outcome(kind, topics, "t", m0a="", m1a="", m2b="")[0] == as_sets(
            assigned(m0a="t-0 t-2", m1a="t-1 t-3", m2b="t-4 t-5")
        )

    def test_no_partition_moves_if_racks_do_not_matter(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks("ab", "ab", "ab")}
        assert self.outcome(kind, topics, "t", m0a="t-2", m1c="t-0 t-1") == (
            as_sets(assigned(m0a="t-2", m1c="t-0 t-1")),
            {},
        )

    def test_a_member_without_a_rack_keeps_its_partitions(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"abb")}
        assert self.outcome(kind, topics, "t", m0="t-1 t-0", m1b="t-2") == (
            as_sets(assigned(m0="t-0 t-1", m1b="t-2")),
            {},
        )


class TestStickyWithDifferentSubscriptions:
    def test_a_partition_moves_to_a_subscriber_in_its_rack(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"abab"), "u": in_racks("c")}
        members = [
            member_owning(kind.name, "m0", "t", "t-0 t-1", rack="a"),
            member_owning(kind.name, "m1", "t", "t-2 t-3", rack="b"),
            member_owning(kind.name, "m2", "u", rack="b"),
        ]
        assignment, transferring = kind().assign_partitions(topics, members)
        assert as_sets(assignment) == as_sets(assigned(m0="t-0 t-2", m1="t-1 t-3", m2="u-0"))
        assert {str(tp) for tp in transferring} == {"t-1", "t-2"}

    def test_partitions_without_a_subscriber_in_their_racks_go_to_the_least_loaded_member_last(
        self, kind: type[AbstractStickyAssignor]
    ) -> None:
        topics = {"t": in_racks(*"cab"), "u": in_racks("b")}
        members = [member_owning(kind.name, "m0", "t", rack="a"), member_owning(kind.name, "m1", "t u", rack="b")]
        assert as_sets(kind().assign_partitions(topics, members).assignment) == as_sets(
            assigned(m0="t-0 t-1", m1="t-2 u-0")
        )

    def test_balance_takes_precedence_over_racks(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"aaab"), "u": in_racks()}
        members = [
            member_owning(kind.name, "m0", "t", "t-0 t-1 t-2", rack="a"),
            member_owning(kind.name, "m1", "t u", rack="b"),
        ]
        assignment = kind().assign_partitions(topics, members).assignment
        assert_balanced(assignment, members)
        assert partitions("t-3")[0] in assignment["m1"]
