"""Resolution of claims to partitions, and tracking of moves, in the sticky assignors."""

from coordinator_logic.assignors.sticky.claims import MemberData, previous_owners, resolve_ownership
from coordinator_logic.assignors.sticky.general import PartitionMovements
from coordinator_logic.embedded_protocols import TopicPartition

from .groups import cluster, partitions

T0, T1 = partitions("t-0 t-1")


def claim(owned: str, generation: int) -> MemberData:
    return MemberData(partitions(owned), generation)


def owners(**claims: MemberData) -> dict[TopicPartition, str]:
    return {tp: m for m, owned in resolve_ownership(cluster("t:3"), claims).owned.items() for tp in owned}


class TestOwners:
    def test_are_the_members_with_the_highest_generation_in_any_order_of_members(self) -> None:
        for first, second, third in ((1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)):
            claims = {f"m{g}": claim("t-0", generation=g) for g in (first, second, third)}
            assert owners(**claims) == {T0: "m3"}

    def test_do_not_exist_if_several_members_claim_the_partition_in_the_highest_generation(self) -> None:
        claims = {"a": claim("t-0 t-1", 2), "b": claim("t-0", 2), "c": claim("t-0", 1)}
        ownership = resolve_ownership(cluster("t:3"), claims)
        assert ownership.owned == {"a": [T1], "b": [], "c": []}
        assert ownership.claimed_by_several == {T0}


class TestPreviousOwners:
    def test_are_the_members_with_the_highest_generation_before_the_newest(self) -> None:
        claims = {"a": claim("t-0", 2), "b": claim("t-0 t-1", 3), "c": claim("t-1", 1), "d": claim("t-1", 4)}
        assert previous_owners(claims) == {T0: "b", T1: "b"}

    def test_include_members_without_a_generation(self) -> None:
        assert previous_owners({"a": claim("t-0", -1), "b": claim("", 1)}) == {T0: "a"}

    def test_do_not_exist_if_all_members_have_the_same_generation(self) -> None:
        assert previous_owners({"a": claim("t-0", 1), "b": claim("t-1", 1)}) == {}


class TestMovements:
    def test_two_moves_of_a_partition_count_as_one_from_its_origin(self) -> None:
        movements = PartitionMovements()
        movements.record(T0, "a", "b")
        movements.record(T0, "b", "c")
        assert movements.origin(T0, "c") == "a"
        assert movements.any_moved("t", "a", "c") == T0
        assert movements.any_moved("t", "a", "b") is None

    def test_a_partition_back_at_its_origin_has_not_moved(self) -> None:
        movements = PartitionMovements()
        movements.record(T0, "a", "b")
        movements.record(T0, "b", "a")
        assert movements.origin(T0, "a") == "a"
        assert movements.any_moved("t", "a", "b") is None
        assert movements.any_moved("t", "a", "a") is None

    def test_moves_of_other_topics_are_not_returned(self) -> None:
        movements = PartitionMovements()
        movements.record(T0, "a", "b")
        assert movements.any_moved("other", "a", "b") is None
