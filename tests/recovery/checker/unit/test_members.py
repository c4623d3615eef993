"""Ownership, generations, sessions, answers and settling, in hand-made histories that are accepted and rejected."""

from coordinator_logic.errors import Error
from tests.recovery.checker.history import ONLY_BROKER, Function, Kind
from tests.recovery.checker.operations import Rule
from tests.recovery.checker.unit.told import (
    Did,
    at,
    broken,
    did,
    heartbeat,
    join,
    noted,
    sync,
)

UNKNOWN = Error.UNKNOWN_MEMBER_ID


# ---- a partition has one owner ---------------------------------------------------------------------------------


def test_two_members_of_a_generation_do_not_own_a_partition() -> None:
    joined = [join("a", 1, 0, 10), join("b", 1, 0, 11)]
    assert broken(*joined, sync("a", 1, 20, 30, 0), sync("b", 1, 20, 31, 1)) == set()
    assert Rule.ONE_OWNER in broken(*joined, sync("a", 1, 20, 30, 0), sync("b", 1, 20, 31, 0, 1))


def test_a_generation_gives_a_partition_to_one_member_even_long_after_the_first_has_gone() -> None:
    moved = [sync("a", 1, 20, 30, 0), noted(Function.REVOKED, "a", 40, 0), sync("b", 1, 20_000, 20_010, 0)]
    assert broken(join("a", 1, 0, 10), join("b", 1, 0, 11), *moved) == {Rule.ONE_OWNER}


def cooperative(*between: Did) -> set[Rule]:
    """Partition 0 moves from a to b across generations."""
    first = [join("a", 1, 0, 10, is_cooperative=True), sync("a", 1, 20, 30, 0)]
    second = [join("b", 2, 1_000, 2_000, is_cooperative=True), sync("b", 2, 2_010, 2_020, 0)]
    return broken(*first, *between, *second)


def test_a_partition_moves_after_its_owner_has_given_it_up() -> None:
    assert cooperative(noted(Function.REVOKED, "a", 1_500, 0)) == set()
    assert cooperative(noted(Function.REVOKED, "a", 2_500, 0)) == {Rule.ONE_OWNER}


def test_a_partition_moves_after_its_owner_was_stopped_or_left() -> None:
    assert cooperative(noted(Function.STOPPED, "a", 1_500)) == set()
    assert cooperative(did(Function.LEAVE, 1_500, 1_510, member="a", client="a")) == set()


def test_a_cooperative_member_keeps_its_partitions_during_a_rebalance_and_an_eager_one_does_not() -> None:
    told = heartbeat("a", 1, 1_100, 1_110, Error.REBALANCE_IN_PROGRESS)
    assert cooperative(told) == {Rule.ONE_OWNER}
    eager = [join("a", 1, 0, 10), sync("a", 1, 20, 30, 0), told, join("b", 2, 1_000, 2_000, leader="b")]
    assert broken(*eager, sync("b", 2, 2_010, 2_020, 0)) == set()


def test_a_partition_of_a_silent_member_moves_after_its_session() -> None:
    silent = [join("a", 1, 0, 10), sync("a", 1, 20, 30, 0)]
    assert broken(*silent, join("b", 2, 100, 8_000, leader="b"), sync("b", 2, 8_010, 8_020, 0)) == set()
    soon = [join("b", 2, 100, 3_000, leader="b"), sync("b", 2, 3_010, 3_020, 0)]
    assert broken(*silent, *soon) == {Rule.ONE_OWNER}
    alive = [heartbeat("a", 1, begin, begin + 10) for begin in range(1_000, 8_000, 1_000)]
    late = [join("b", 2, 100, 8_000, leader="b"), sync("b", 2, 8_010, 8_020, 0)]
    assert broken(*silent, *alive, *late) == {Rule.ONE_OWNER}


def test_a_static_member_takes_over_its_partitions() -> None:
    before = [join("a", 1, 0, 10, instance="i"), sync("a", 1, 20, 30, 0, instance="i")]
    after = [join("a2", 1, 100, 110, instance="i"), sync("a2", 1, 120, 130, 0, instance="i")]
    assert broken(*before, *after) == set()


# ---- generations -----------------------------------------------------------------------------------------------


def test_generations_never_go_back() -> None:
    joins = [join("a", 1, 0, 10), join("a", 2, 100, 110)]
    assert broken(*joins, heartbeat("b", 1, 90, 120)) == set()
    assert broken(*joins, heartbeat("b", 1, 111, 120)) == {Rule.GENERATIONS_GO_AHEAD}


def test_a_generation_has_one_leader_and_one_protocol() -> None:
    assert broken(join("a", 1, 0, 10), join("b", 1, 0, 11)) == set()
    assert broken(join("a", 1, 0, 10), join("b", 1, 0, 11, leader="b")) == {Rule.ONE_GENERATION}
    assert broken(join("a", 1, 0, 10), join("b", 1, 0, 11, protocol="sticky")) == {Rule.ONE_GENERATION}


def test_a_member_has_one_assignment_in_a_generation() -> None:
    assert broken(join("a", 1, 0, 10), sync("a", 1, 20, 30, 0), sync("a", 1, 40, 50, 0)) == set()
    assert broken(join("a", 1, 0, 10), sync("a", 1, 20, 30, 0), sync("a", 1, 40, 50, 1)) == {Rule.ONE_GENERATION}


# ---- a member that keeps its heartbeats is not expelled --------------------------------------------------------

LIVED = [join("a", 1, 0, 10), sync("a", 1, 20, 30, 0), heartbeat("a", 1, 1_000, 1_010)]


def test_a_member_is_not_expelled_between_heartbeats() -> None:
    assert broken(*LIVED, heartbeat("a", 1, 2_000, 2_010, UNKNOWN)) == {Rule.LIVE_MEMBERS_STAY}


def test_a_silent_member_is_expelled() -> None:
    assert broken(*LIVED, heartbeat("a", 1, 8_000, 8_010, UNKNOWN)) == set()


def test_a_member_that_left_is_unknown() -> None:
    left = did(Function.LEAVE, 1_500, 1_510, member="a", client="operator")
    assert broken(*LIVED, left, heartbeat("a", 1, 2_000, 2_010, UNKNOWN)) == set()


def test_heartbeats_that_were_appended_keep_the_session_while_the_coordinator_is_away() -> None:
    def unanswered(begin: int, appended: int) -> Did:
        sent = {"member": "a", "client": "a", "generation": 1}
        return did(Function.HEARTBEAT, begin, begin + 500, Kind.INFO, {"appended": appended * 1_000_000}, **sent)

    joined = [join("a", 1, 0, 10, rebalance_ms=60_000), *LIVED[1:]]
    away = [unanswered(begin, begin + 5) for begin in range(2_000, 12_000, 1_000)]
    lost = [unanswered(begin, 0) for begin in range(2_000, 12_000, 1_000)]
    assert broken(*joined, *away, heartbeat("a", 1, 12_000, 12_010, UNKNOWN)) == {Rule.LIVE_MEMBERS_STAY}
    assert broken(*joined, *lost, heartbeat("a", 1, 12_000, 12_010, UNKNOWN)) == set()


def test_a_member_that_does_not_rejoin_in_time_is_removed() -> None:
    told = [heartbeat("a", 1, begin, begin + 10, Error.REBALANCE_IN_PROGRESS) for begin in range(2_000, 8_000, 1_000)]
    assert broken(*LIVED, *told, heartbeat("a", 1, 8_000, 8_010, UNKNOWN)) == set()
    assert broken(*LIVED, *told[:2], heartbeat("a", 1, 4_000, 4_010, UNKNOWN)) == {Rule.LIVE_MEMBERS_STAY}


def test_a_client_that_is_late_to_see_its_join_answered_may_be_expelled() -> None:
    slept = [join("a", 1, 0, 9_000, rebalance_ms=60_000), heartbeat("a", 1, 9_010, 9_020, UNKNOWN)]
    assert broken(*slept) == set()
    awake = [noted(Function.ASSIGNED, "a", begin) for begin in range(1_000, 9_000, 1_000)]
    assert broken(*slept, *awake) == {Rule.LIVE_MEMBERS_STAY}


def test_a_join_that_is_repeated_does_not_restart_the_session() -> None:
    """It is answered from the generation that had begun, as in Kafka, and the session counts from the first answer."""
    lost = did(Function.JOIN, 0, 5_000, Kind.INFO, member="a", client="a")
    assert broken(lost, join("a", 1, 5_900, 6_000), heartbeat("a", 1, 6_100, 6_110, UNKNOWN)) == set()
    assert broken(join("a", 1, 5_900, 6_000), heartbeat("a", 1, 6_100, 6_110, UNKNOWN)) == {Rule.LIVE_MEMBERS_STAY}


def static(generation: int, begin: int, end: int, error: Error = Error.NONE) -> Did:
    return heartbeat("a", generation, begin, end, error, instance="i")


def test_a_static_member_is_not_expelled_either_unless_its_place_was_taken() -> None:
    lived = [join("a", 1, 0, 10, instance="i"), sync("a", 1, 20, 30, 0, instance="i"), static(1, 1_000, 1_010)]
    unknown = static(1, 2_000, 2_010, UNKNOWN)
    assert broken(*lived, unknown) == {Rule.LIVE_MEMBERS_STAY}
    taken = join("b", 1, 1_100, 1_110, instance="i")
    assert broken(*lived, taken, unknown) == set()
    nobody_knows = did(Function.JOIN, 1_100, 1_900, Kind.INFO, client="b", instance="i")
    assert broken(*lived, nobody_knows, unknown) == set()
    earlier = join("b", 1, -20, -10, instance="i")
    assert broken(earlier, *lived, unknown) == {Rule.LIVE_MEMBERS_STAY}
    again = join("a2", 2, 2_020, 2_030, instance="i")
    assert broken(*lived, unknown, again) == {Rule.LIVE_MEMBERS_STAY}


def away(begin: int, end: int, which: str = ONLY_BROKER) -> Did:
    """A fault of a broker."""
    return did(Function.FAULT, begin, end, Kind.OK, {"note": f"SIGTERM for {which}"}, client="nemesis", group="")


def test_after_an_outage_of_the_brokers_every_member_has_a_full_session() -> None:
    lived = [join("a", 1, 0, 10, rebalance_ms=120_000), *LIVED[1:]]
    soon, late = (heartbeat("a", 1, begin, begin + 500, UNKNOWN) for begin in (61_000, 66_000))
    assert broken(*lived, away(2_000, 62_000), soon) == {Rule.LIVE_MEMBERS_STAY}
    assert broken(*lived, away(2_000, 62_000), late) == set()
    assert broken(*lived, away(2_000, 62_000, "one of 3 brokers"), soon) == set()
    assert broken(*lived, away(30_000, 62_000), soon) == set(), "it was silent before the outage"
    assert broken(*lived, soon) == set()


# ---- answers ---------------------------------------------------------------------------------------------------


def test_an_answer_repeats_byte_for_byte() -> None:
    def answered(begin: int, answer: str) -> Did:
        return did(Function.ANSWER, begin, begin + 1, correlation_id="c-1", answer=answer)

    assert broken(answered(0, "aa"), answered(10, "aa")) == set()
    assert broken(answered(0, "aa"), answered(10, "bb")) == {Rule.SAME_ANSWER}


def test_answers_of_a_job_are_not_taken_after_those_of_its_successor() -> None:
    def taken(begin: int, epoch: int) -> Did:
        return did(Function.ANSWER, begin, begin + 1, group="", job_epoch=epoch)

    assert broken(taken(0, 1), taken(10, 2), taken(20, 4)) == set()
    assert broken(taken(0, 1), taken(10, 2), taken(20, 1)) == {Rule.NEWEST_JOB}


def test_an_answer_is_that_of_the_request() -> None:
    member = did(Function.HEARTBEAT, 0, 10, Kind.OK, {"member": "b"}, member="a")
    request = did(Function.HEARTBEAT, 0, 10, Kind.OK, {"correlation_id": "c-2"}, correlation_id="c-1")
    partition = did(Function.FETCH, 0, 10, Kind.OK, {"value": at(-1, partition=1)}, value=at(-1))
    for foreign in (member, request, partition):
        assert broken(foreign) == {Rule.OWN_ANSWER}


# ---- stable again ----------------------------------------------------------------------------------------------


def settled_at(moment: int, *others: Did) -> set[Rule]:
    """A member is told to rejoin after 1 s, and is assigned again at the moment."""
    told = heartbeat("a", 1, 1_000, 1_010, Error.REBALANCE_IN_PROGRESS)
    again = [join("a", 2, 1_020, moment - 10), sync("a", 2, moment - 5, moment, 0)]
    return broken(*LIVED[:2], told, *again, *others, stable_within_ms=10_000)


def test_a_member_is_assigned_again_within_the_bound() -> None:
    assert settled_at(9_000) == set()
    assert settled_at(12_000) == {Rule.STABLE_AGAIN}


def test_the_bound_counts_from_the_last_disturbance() -> None:
    fault = did(Function.FAULT, 8_000, 8_001, client="nemesis", group="")
    other = did(Function.JOIN, 8_000, 8_010, Kind.FAIL, {"error": Error.MEMBER_ID_REQUIRED, "member": "b"}, client="b")
    assert settled_at(15_000, fault) == set()
    assert settled_at(15_000, other) == set()


def test_a_join_that_is_never_answered_is_not_settled() -> None:
    waiting = did(Function.JOIN, 0, None, member="", client="a")
    later = noted(Function.ANSWER, "b", 20_000)
    assert broken(waiting, later, stable_within_ms=10_000) == {Rule.STABLE_AGAIN}
    assert broken(waiting, noted(Function.STOPPED, "a", 500), later, stable_within_ms=10_000) == set()


def silent(count: int, kind: Kind = Kind.INFO, error: Error = Error.NONE) -> list[Did]:
    """Heartbeats without an answer that says anything, one a second."""
    sent = {"member": "a", "client": "a", "generation": 1}
    return [
        did(Function.HEARTBEAT, begin, begin + 500, kind, {"error": error}, **sent)
        for begin in range(1_000, 1_000 * (count + 1), 1_000)
    ]


def test_heartbeats_that_nobody_answers_are_not_settled() -> None:
    assert broken(*LIVED[:2], *silent(9), stable_within_ms=10_000) == set()
    assert broken(*LIVED[:2], *silent(15), stable_within_ms=10_000) == {Rule.STABLE_AGAIN}
    answered = heartbeat("a", 1, 8_100, 8_110)
    assert broken(*LIVED[:2], *silent(15), answered, stable_within_ms=10_000) == set()
    fault = did(Function.FAULT, 8_000, 8_001, client="nemesis", group="")
    assert broken(*LIVED[:2], *silent(15), fault, stable_within_ms=10_000) == set()


def test_heartbeats_that_are_always_to_be_sent_again_are_not_settled() -> None:
    refusals = silent(15, Kind.FAIL, Error.COORDINATOR_NOT_AVAILABLE)
    assert broken(*LIVED[:2], *refusals, stable_within_ms=10_000) == {Rule.STABLE_AGAIN}
    assert broken(*LIVED[:2], *refusals[:9], stable_within_ms=10_000) == set()


def test_a_join_that_was_to_be_sent_again_is_not_settled() -> None:
    refusal = did(Function.JOIN, 0, 10, Kind.FAIL, {"error": Error.COORDINATOR_NOT_AVAILABLE}, client="a")
    later = noted(Function.ANSWER, "b", 20_000)
    assert broken(refusal, later, stable_within_ms=10_000) == {Rule.STABLE_AGAIN}
    assert broken(refusal, noted(Function.STOPPED, "a", 500), later, stable_within_ms=10_000) == set()


def test_joins_that_are_repeated_without_an_answer_do_not_excuse_each_other() -> None:
    joins = [
        did(Function.JOIN, begin, begin + 3_000, Kind.INFO, client=client)
        for begin in range(0, 30_000, 3_000)
        for client in ("a", "b")
    ]
    assert broken(*joins, stable_within_ms=10_000) == {Rule.STABLE_AGAIN}
    assert broken(*joins[:6], stable_within_ms=10_000) == set()


# ---- the history -----------------------------------------------------------------------------------------------


def test_a_process_has_one_operation_at_a_time_and_none_after_an_unknown_outcome() -> None:
    assert broken(heartbeat("a", 1, 0, 10, process=1), heartbeat("a", 1, 5, 20, process=1)) == {Rule.WELL_FORMED}
    crashed = did(Function.HEARTBEAT, 0, 10, Kind.INFO, process=1)
    assert broken(crashed, heartbeat("a", 1, 20, 30, process=1)) == {Rule.WELL_FORMED}
