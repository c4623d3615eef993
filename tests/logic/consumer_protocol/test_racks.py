"""Racks (KIP-881): what is near comes first, and never at the expense of balance."""

from collections.abc import Mapping

import pytest

from coordinator_logic.consumer_protocol import TopicPartition
from coordinator_logic.consumer_protocol.assignors import (
    CooperativeStickyAssignor,
    GroupSubscription,
    RangeAssignor,
    StickyAssignor,
    TopicMetadata,
)
from coordinator_logic.consumer_protocol.assignors.racks import racks_matter
from coordinator_logic.consumer_protocol.assignors.sticky import AbstractStickyAssignor

from .groups import Assigned, as_sets, assert_balanced, assigned, in_racks, member, member_owning, partitions

A, B, C = (frozenset(rack) for rack in "abc")

Topics = Mapping[str, TopicMetadata]


class TestRacksMatter:
    def test_when_some_partitions_are_nearer_than_others(self) -> None:
        assert racks_matter(["a"], [A, B])
        assert racks_matter(["a", "x"], [A, frozenset()])

    def test_not_when_every_partition_is_in_every_rack(self) -> None:
        assert not racks_matter(["a", "b"], [A | B, A | B])

    def test_not_when_no_replica_is_where_a_consumer_is(self) -> None:
        assert not racks_matter(["c"], [A, B])
        assert not racks_matter([], [A, B])

    @pytest.mark.parametrize("racks", [[], [frozenset(), frozenset()]])
    def test_not_when_the_racks_of_replicas_are_not_known(self, racks: list[frozenset[str]]) -> None:
        assert not racks_matter(["a"], racks)


class TestRange:
    @staticmethod
    def assign(topics: Topics, *members: GroupSubscription) -> Assigned:
        return RangeAssignor().assign(topics, members)

    @staticmethod
    def everybody(topics: Topics, *racks: str | None) -> list[GroupSubscription]:
        """Members m0, m1, ... in these racks, who want all topics."""
        return [member(f"m{i}", " ".join(topics), rack=rack) for i, rack in enumerate(racks)]

    def test_partitions_go_to_members_in_their_rack(self) -> None:
        topics = {"t1": in_racks(*"abcabc"), "t2": in_racks(*"abcabca"), "t3": in_racks(*"bc")}
        assert self.assign(topics, *self.everybody(topics, "a", "b", "c")) == assigned(
            m0="t1-0 t1-3 t2-0 t2-3 t2-6", m1="t1-1 t1-4 t2-1 t2-4 t3-0", m2="t1-2 t1-5 t2-2 t2-5 t3-1"
        )

    def test_nobody_gets_more_than_its_share_for_being_near(self) -> None:
        topics = {"t": in_racks("a", "a", "a", "b")}
        assert self.assign(topics, *self.everybody(topics, "b", "a")) == assigned(m0="t-2 t-3", m1="t-0 t-1")

    def test_the_odd_partition_goes_to_who_is_near_rather_than_first(self) -> None:
        topics = {"t": in_racks("b", "b", "a")}
        assert self.assign(topics, *self.everybody(topics, "a", "b")) == assigned(m0="t-2", m1="t-0 t-1")

    def test_a_member_without_a_rack_is_near_to_everything(self) -> None:
        topics = {"t": in_racks("b", "a", "b", "a")}
        assert self.assign(topics, *self.everybody(topics, None, "b")) == assigned(m0="t-0 t-1", m1="t-2 t-3")

    def test_topics_stay_copartitioned(self) -> None:
        topics = {"t1": in_racks(*"abab"), "t2": in_racks(*"abab")}
        assert self.assign(topics, *self.everybody(topics, "b", "a")) == assigned(
            m0="t1-1 t1-3 t2-1 t2-3", m1="t1-0 t1-2 t2-0 t2-2"
        )

    def test_topics_stay_copartitioned_when_their_replicas_are_not_in_the_same_racks(self) -> None:
        topics = {"t1": in_racks(*"abcab"), "t2": in_racks(*"bcabc"), "t3": in_racks(*"cabca")}
        far = self.everybody(topics, "a", "b", "c")
        assert self.assign(topics, *far) == self.assign(topics, *self.everybody(topics, None, None, None))

    def test_a_topic_that_is_everywhere_is_divided_as_without_racks(self) -> None:
        topics = {"t1": in_racks(*["abc"] * 3), "t2": in_racks("b", "a")}
        assert self.assign(topics, *self.everybody(topics, "a", "b")) == assigned(m0="t1-0 t1-1 t2-1", m1="t1-2 t2-0")

    def test_only_racks_of_a_topics_own_subscribers_count(self) -> None:
        topics = {"t": in_racks("b", "a"), "u": in_racks("b", "a")}
        members = member("m0", "t", rack="a"), member("m1", "t", rack="c"), member("m2", "u", rack="c")
        assert self.assign(topics, *members, member("m3", "u")) == assigned(m0="t-1", m1="t-0", m2="u-0", m3="u-1")


@pytest.fixture(params=[StickyAssignor, CooperativeStickyAssignor], ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> type[AbstractStickyAssignor]:
    chosen: type[AbstractStickyAssignor] = request.param
    return chosen


class TestSticky:
    """Both sticky assignors, as if eager; ``owned`` maps a member and its rack to what it owns."""

    @staticmethod
    def outcome(
        kind: type[AbstractStickyAssignor], topics: Topics, wanted: str, **owned: str
    ) -> tuple[dict[str, frozenset[TopicPartition]], dict[str, str]]:
        """Assignment and transfers of members that are named by number and rack, as in ``m0a``."""
        members = [member_owning(kind.name, m, wanted, held, rack=m[2:] or None) for m, held in owned.items()]
        assignment, transferring = kind().assign_partitions(topics, members)
        return as_sets(assignment), {str(tp): m for tp, m in transferring.items()}

    def test_a_fresh_group_gets_what_is_near(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"abcabc")}
        assert self.outcome(kind, topics, "t", m0c="", m1b="", m2a="") == (
            as_sets(assigned(m0c="t-2 t-5", m1b="t-1 t-4", m2a="t-0 t-3")),
            {},
        )

    def test_a_partition_moves_to_where_it_is_near(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"abab")}
        assert self.outcome(kind, topics, "t", m0a="t-0 t-1", m1b="t-2 t-3") == (
            as_sets(assigned(m0a="t-0 t-2", m1b="t-1 t-3")),
            {"t-1": "m1b", "t-2": "m0a"},
        )

    def test_a_partition_that_is_near_to_nobody_who_has_room_goes_to_anybody(
        self, kind: type[AbstractStickyAssignor]
    ) -> None:
        topics = {"t": in_racks(*"aaac")}
        assert self.outcome(kind, topics, "t", m0a="", m1b="") == (
            as_sets(assigned(m0a="t-0 t-1", m1b="t-2 t-3")),
            {},
        )

    def test_what_few_are_near_to_is_given_out_first(self, kind: type[AbstractStickyAssignor]) -> None:
        # By number, m0a would be full of what m1b could have had.
        topics = {"t": in_racks("ab", "ab", "a", "a")}
        assert self.outcome(kind, topics, "t", m0a="", m1b="")[0] == as_sets(assigned(m0a="t-2 t-3", m1b="t-0 t-1"))

    def test_the_one_more_goes_to_who_is_near(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"abb")}
        assert self.outcome(kind, topics, "t", m0a="", m1b="")[0] == as_sets(assigned(m0a="t-0", m1b="t-1 t-2"))

    def test_no_more_members_than_balance_allows_get_one_more(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"abab")}
        assert self.outcome(kind, topics, "t", m0a="", m1b="", m2c="")[0] == as_sets(
            assigned(m0a="t-0 t-2", m1b="t-1", m2c="t-3")
        )

    def test_members_of_a_rack_take_turns(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"aaaabb")}
        assert self.outcome(kind, topics, "t", m0a="", m1a="", m2b="")[0] == as_sets(
            assigned(m0a="t-0 t-2", m1a="t-1 t-3", m2b="t-4 t-5")
        )

    def test_nothing_moves_for_racks_that_do_not_matter(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks("ab", "ab", "ab")}
        assert self.outcome(kind, topics, "t", m0a="t-2", m1c="t-0 t-1") == (
            as_sets(assigned(m0a="t-2", m1c="t-0 t-1")),
            {},
        )

    def test_a_member_without_a_rack_keeps_what_it_has(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"abb")}
        assert self.outcome(kind, topics, "t", m0="t-1 t-0", m1b="t-2") == (
            as_sets(assigned(m0="t-0 t-1", m1b="t-2")),
            {},
        )


class TestStickyWithDifferentSubscriptions:
    def test_what_is_far_goes_to_who_is_near_and_wants_it(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"abab"), "u": in_racks("c")}
        members = [
            member_owning(kind.name, "m0", "t", "t-0 t-1", rack="a"),
            member_owning(kind.name, "m1", "t", "t-2 t-3", rack="b"),
            member_owning(kind.name, "m2", "u", rack="b"),
        ]
        assignment, transferring = kind().assign_partitions(topics, members)
        assert as_sets(assignment) == as_sets(assigned(m0="t-0 t-2", m1="t-1 t-3", m2="u-0"))
        assert {str(tp) for tp in transferring} == {"t-1", "t-2"}

    def test_what_is_near_to_nobody_goes_to_who_has_least_in_the_end(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"cab"), "u": in_racks("b")}
        members = [member_owning(kind.name, "m0", "t", rack="a"), member_owning(kind.name, "m1", "t u", rack="b")]
        assert as_sets(kind().assign_partitions(topics, members).assignment) == as_sets(
            assigned(m0="t-0 t-1", m1="t-2 u-0")
        )

    def test_balance_outranks_racks(self, kind: type[AbstractStickyAssignor]) -> None:
        topics = {"t": in_racks(*"aaab"), "u": in_racks()}
        members = [
            member_owning(kind.name, "m0", "t", "t-0 t-1 t-2", rack="a"),
            member_owning(kind.name, "m1", "t u", rack="b"),
        ]
        assignment = kind().assign_partitions(topics, members).assignment
        assert_balanced(assignment, members)
        assert partitions("t-3")[0] in assignment["m1"]
