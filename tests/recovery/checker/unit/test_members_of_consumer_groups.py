"""Ownership, epochs, sessions, commits and settling of members of consumer groups, in hand-made histories."""

from coordinator_logic.errors import Error
from tests.recovery.checker.history import Function, Kind
from tests.recovery.checker.operations import Rule
from tests.recovery.checker.unit.told import (
    Did,
    beat,
    broken,
    commit,
    did,
    first_beat,
    noted,
    refused,
)

# ---- a partition has one owner ---------------------------------------------------------------------------------

ALIVE = [beat("a", 2, begin, begin + 10) for begin in range(1_000, 8_000, 1_000)]


def moves(*between: Did, at: int = 5_000) -> set[Rule]:
    """Partition 0 moves from a, which keeps its heartbeats, to b."""
    return broken(first_beat("a", 2, 0, 10, 0, 1), *ALIVE, *between, first_beat("b", 3, at, at + 10, 0))


def test_a_partition_moves_after_its_owner_has_confirmed_that_it_revoked_it() -> None:
    confirmed = beat("a", 2, 4_500, 4_510, owned=(1,), assigned=(1,))
    assert moves(confirmed) == set()
    assert moves() == {Rule.ONE_OWNER}
    still_has_it = beat("a", 2, 4_500, 4_510, owned=(0, 1), assigned=(1,))
    assert moves(still_has_it) == {Rule.ONE_OWNER}


def test_a_partition_moves_after_its_owner_gave_it_up_was_stopped_or_left() -> None:
    assert moves(noted(Function.REVOKED, "a", 4_500, 0)) == set()
    stopped = [first_beat("a", 2, 0, 10, 0), noted(Function.STOPPED, "a", 500)]
    assert broken(*stopped, first_beat("b", 3, 1_000, 1_010, 0)) == set()
    left = [first_beat("a", 2, 0, 10, 0), beat("a", -1, 500, 510)]
    assert broken(*left, first_beat("b", 3, 1_000, 1_010, 0)) == set()


def test_a_partition_of_a_silent_member_moves_after_its_session() -> None:
    assert broken(first_beat("a", 2, 0, 10, 0), first_beat("b", 3, 5_000, 5_010, 0)) == {Rule.ONE_OWNER}
    assert broken(first_beat("a", 2, 0, 10, 0), first_beat("b", 3, 7_000, 7_010, 0)) == set()


def test_a_target_gives_a_partition_to_one_member_even_long_after_the_first_has_gone() -> None:
    assert broken(first_beat("a", 2, 0, 10, 0), first_beat("b", 2, 20_000, 20_010, 0)) == {Rule.ONE_OWNER}


def test_an_answer_assigns_nothing_once_the_member_has_said_what_it_owns() -> None:
    """The client ignores it: the coordinator may have given the partitions away because of the list."""
    late = beat("a", 2, 20, 2_000, assigned=(0,))
    said = beat("a", 3, 30, 40, sent=2, owned=(), assigned=())
    joined = first_beat("a", 2, 0, 10)
    assert broken(joined, late, said, first_beat("b", 3, 1_000, 1_010, 0)) == set()
    assert broken(joined, late, first_beat("b", 3, 1_000, 1_010, 0)) == {Rule.ONE_OWNER}


def test_a_static_member_that_returns_takes_its_partitions_over() -> None:
    left = [first_beat("a", 2, 0, 10, 0, instance="i"), beat("a", -2, 500, 510, instance="i")]
    assert broken(*left, first_beat("a2", 2, 1_000, 1_010, 0, instance="i")) == set()


# ---- epochs ----------------------------------------------------------------------------------------------------


def test_the_epochs_of_a_member_never_go_back_and_those_of_others_may_be_older() -> None:
    joined = [first_beat("a", 2, 0, 10), first_beat("b", 3, 20, 30)]
    assert broken(*joined, beat("a", 2, 100, 110)) == set()
    assert broken(*joined, beat("a", 3, 100, 110, sent=2), beat("a", 2, 200, 210)) == {Rule.GENERATIONS_GO_AHEAD}


def fenced(epoch: int, begin: int) -> Did:
    return beat("a", epoch, begin, begin + 10, error=Error.FENCED_MEMBER_EPOCH)


def test_a_member_is_not_fenced_in_its_own_epoch() -> None:
    joined = [first_beat("a", 2, 0, 10), beat("a", 3, 1_000, 1_010, sent=2)]
    assert broken(*joined, fenced(3, 2_000)) == {Rule.LIVE_MEMBERS_STAY}
    assert broken(*joined, fenced(2, 2_000)) == set()


# ---- sessions --------------------------------------------------------------------------------------------------

UNKNOWN = Error.UNKNOWN_MEMBER_ID
LIVED = [first_beat("a", 2, 0, 10), beat("a", 2, 1_000, 1_010)]


def unknown(begin: int, instance: str | None = None) -> Did:
    return beat("a", 2, begin, begin + 10, error=UNKNOWN, instance=instance)


def test_a_member_that_keeps_its_heartbeats_is_not_removed() -> None:
    assert broken(*LIVED, unknown(2_000)) == {Rule.LIVE_MEMBERS_STAY}
    assert broken(*LIVED, refused(1, 2_000, 2_010, UNKNOWN, member="a", client="a", generation=2)) == {
        Rule.LIVE_MEMBERS_STAY
    }
    assert broken(*LIVED, unknown(8_000)) == set(), "it was silent for longer than its session"
    assert broken(*LIVED, beat("a", -1, 1_500, 1_510), unknown(2_000)) == set(), "it left"


def test_a_commit_keeps_no_session() -> None:
    commits = [
        commit(1, begin, begin + 10, member="a", client="a", generation=2) for begin in range(2_000, 8_000, 1_000)
    ]
    assert broken(*LIVED, *commits, unknown(8_000)) == set()


def test_a_heartbeat_that_was_appended_in_the_members_epoch_keeps_the_session() -> None:
    def unanswered(epoch: int, appended: int) -> Did:
        sent = {"member": "a", "client": "a", "generation": epoch, "session_ms": 6_000}
        got = {"appended": appended * 1_000_000}
        return did(Function.CONSUMER_HEARTBEAT, 5_000, 5_500, Kind.INFO, got, **sent)

    assert broken(*LIVED, unanswered(2, 5_005), unknown(8_000)) == {Rule.LIVE_MEMBERS_STAY}
    assert broken(*LIVED, unanswered(2, 0), unknown(8_000)) == set()
    assert broken(*LIVED, unanswered(1, 5_005), unknown(8_000)) == set()


def test_a_static_member_may_be_removed_by_another_one_that_takes_its_place() -> None:
    lived = [first_beat("a", 2, 0, 10, instance="i"), beat("a", 2, 1_000, 1_010, instance="i")]
    other = first_beat("b", 2, 1_500, 1_510, instance="i")
    assert broken(*lived, unknown(2_000, instance="i")) == {Rule.LIVE_MEMBERS_STAY}
    assert broken(*lived, other, unknown(2_000, instance="i")) == set()


# ---- commits ---------------------------------------------------------------------------------------------------


def test_a_commit_in_an_earlier_epoch_is_accepted_while_the_member_has_the_partition() -> None:
    joined = [first_beat("a", 2, 0, 10, 0), beat("a", 3, 100, 110, sent=2, assigned=(0,))]
    stale = refused(5, 200, 210, Error.STALE_MEMBER_EPOCH, member="a", client="a", generation=2)
    assert broken(*joined, stale) == {Rule.COMMITS_BY_EPOCH}
    assert broken(joined[0], beat("a", 3, 100, 110, sent=2, owned=(), assigned=()), stale) == set()
    later = [first_beat("a", 2, 0, 10), beat("a", 3, 100, 110, sent=2, assigned=(0,))]
    assert broken(*later, stale) == set(), "it did not have the partition in that epoch"


# ---- stable again ----------------------------------------------------------------------------------------------


def test_a_member_that_is_never_let_in_is_not_settled() -> None:
    refusals = [
        beat("a", 0, begin, begin + 10, owned=(), error=Error.UNRELEASED_INSTANCE_ID, instance="i")
        for begin in range(0, 15_000, 1_000)
    ]
    assert broken(*refusals, stable_within_ms=10_000) == {Rule.STABLE_AGAIN}
    assert broken(*refusals, first_beat("a", 2, 9_500, 9_510), stable_within_ms=10_000) == set()


def test_a_member_that_loses_its_place_again_and_again_is_not_settled() -> None:
    lost = [fenced(1, begin) for begin in range(1_000, 15_000, 1_000)]
    assert Rule.STABLE_AGAIN in broken(*LIVED[:1], *lost, stable_within_ms=10_000)


def test_heartbeats_that_nobody_answers_are_not_settled() -> None:
    silent = [
        did(Function.CONSUMER_HEARTBEAT, begin, begin + 500, Kind.INFO, member="a", client="a", generation=2)
        for begin in range(2_000, 16_000, 1_000)
    ]
    assert broken(*LIVED, *silent, stable_within_ms=10_000) == {Rule.STABLE_AGAIN}
    assert broken(*LIVED, *silent[:8], stable_within_ms=10_000) == set()
