"""Whose word counts before a sticky assignment is made, and who moved where while one is."""

from coordinator_logic.consumer_protocol import TopicPartition
from coordinator_logic.consumer_protocol.assignors.sticky.member_data import MemberData
from coordinator_logic.consumer_protocol.assignors.sticky.ownership import previous_owners, settle_ownership
from coordinator_logic.consumer_protocol.assignors.sticky.partition_movements import PartitionMovements

from .groups import cluster, partitions

T0, T1 = partitions("t-0 t-1")


def claim(owned: str, generation: int) -> MemberData:
    return MemberData(partitions(owned), generation)


def owners(**claims: MemberData) -> dict[TopicPartition, str]:
    return {tp: m for m, owned in settle_ownership(cluster("t:3"), claims).owned.items() for tp in owned}


class TestOwners:
    def test_are_the_members_with_the_newest_claim_in_whatever_order_they_speak(self) -> None:
        for first, second, third in ((1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)):
            claims = {f"m{g}": claim("t-0", generation=g) for g in (first, second, third)}
            assert owners(**claims) == {T0: "m3"}

    def test_do_not_exist_where_two_newest_claims_contradict_each_other(self) -> None:
        claims = {"a": claim("t-0 t-1", 2), "b": claim("t-0", 2), "c": claim("t-0", 1)}
        ownership = settle_ownership(cluster("t:3"), claims)
        assert ownership.owned == {"a": [T1], "b": [], "c": []}
        assert ownership.claimed_by_several == {T0}


class TestPreviousOwners:
    def test_are_members_of_older_generations_the_latest_of_them(self) -> None:
        claims = {"a": claim("t-0", 2), "b": claim("t-0 t-1", 3), "c": claim("t-1", 1), "d": claim("t-1", 4)}
        assert previous_owners(claims) == {T0: "b", T1: "b"}

    def test_include_members_that_do_not_say_of_which_generation_they_are(self) -> None:
        assert previous_owners({"a": claim("t-0", -1), "b": claim("", 1)}) == {T0: "a"}

    def test_do_not_exist_while_all_are_of_the_same_generation(self) -> None:
        assert previous_owners({"a": claim("t-0", 1), "b": claim("t-1", 1)}) == {}


class TestMovements:
    def test_a_partition_that_moved_twice_has_moved_from_its_origin_to_where_it_is(self) -> None:
        movements = PartitionMovements()
        movements.record(T0, "a", "b")
        movements.record(T0, "b", "c")
        assert movements.origin(T0, "c") == "a"
        assert movements.any_moved("t", "a", "c") == T0
        assert movements.any_moved("t", "a", "b") is None

    def test_a_partition_that_came_back_has_not_moved(self) -> None:
        movements = PartitionMovements()
        movements.record(T0, "a", "b")
        movements.record(T0, "b", "a")
        assert movements.origin(T0, "a") == "a"
        assert movements.any_moved("t", "a", "b") is None
        assert movements.any_moved("t", "a", "a") is None

    def test_topics_are_told_apart(self) -> None:
        movements = PartitionMovements()
        movements.record(T0, "a", "b")
        assert movements.any_moved("other", "a", "b") is None
