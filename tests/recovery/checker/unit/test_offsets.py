"""Committed offsets, in hand-made histories that are accepted and rejected."""

from coordinator_logic.committed_offsets import CommittedOffset
from coordinator_logic.group import Group
from tests.recovery.checker.history import Function, Kind
from tests.recovery.checker.operations import Rule
from tests.recovery.checker.unit.told import GROUP, at, broken, commit, did, fetch, refused, reset, violations


def state(offset: int) -> dict[str, Group | None]:
    """A group with this offset at the end."""
    return {GROUP: Group(GROUP, "0-0", offsets={"orders": {0: CommittedOffset(offset, None, "", 0, None, 1)}})}


# ---- an acknowledged commit is readable until it is overwritten ------------------------------------------------


def test_an_acknowledged_commit_is_read() -> None:
    assert broken(commit(5, 0, 10), fetch(5, 20, 30), commit(7, 40, 50), fetch(7, 60, 70)) == set()


def test_an_acknowledged_commit_that_is_not_read_is_lost() -> None:
    assert Rule.LINEARIZABLE_OFFSETS in broken(commit(5, 0, 10), commit(7, 20, 30), fetch(5, 40, 50))


def test_an_acknowledged_commit_that_is_not_in_the_state_at_the_end_is_lost() -> None:
    assert broken(commit(5, 0, 10), commit(7, 20, 30), state=state(7)) == set()
    assert broken(commit(5, 0, 10), commit(7, 20, 30), state=state(5)) == {Rule.LINEARIZABLE_OFFSETS}
    assert broken(commit(5, 0, 10), state={GROUP: None}) == {Rule.LINEARIZABLE_OFFSETS}


def test_a_commit_that_nobody_answered_may_be_read_or_not() -> None:
    unknown = commit(7, 20, 30, Kind.INFO)
    assert broken(commit(5, 0, 10), unknown, fetch(5, 40, 50)) == set()
    assert broken(commit(5, 0, 10), unknown, fetch(7, 40, 50)) == set()
    assert broken(commit(5, 0, 10), unknown, fetch(5, 40, 50), fetch(7, 60, 70)) == set()


def test_a_commit_that_was_read_does_not_vanish_even_if_nobody_answered_it() -> None:
    unknown = commit(7, 20, None)
    assert Rule.LINEARIZABLE_OFFSETS in broken(commit(5, 0, 10), unknown, fetch(7, 40, 50), fetch(5, 60, 70))


def test_reads_during_a_commit_may_see_either_offset() -> None:
    assert broken(commit(5, 0, 10), commit(7, 20, 90), fetch(5, 30, 40), fetch(7, 50, 60)) == set()


def test_partitions_do_not_depend_on_each_other() -> None:
    other = did(Function.COMMIT, 20, 30, value=at(7, partition=1))
    assert broken(commit(5, 0, 10), other, fetch(5, 40, 50)) == set()


def test_a_commit_that_is_repeated_is_told_apart_by_its_metadata() -> None:
    def committed(metadata: str, begin: int) -> object:
        return did(Function.COMMIT, begin, begin + 10, value=at(5, metadata))

    read = did(Function.FETCH, 40, 50, Kind.OK, {"value": at(5, "first")}, value=at(-1))
    lost = [committed("first", 0), committed("second", 20), read]
    assert Rule.LINEARIZABLE_OFFSETS in broken(*lost)  # type: ignore[arg-type]


# ---- what is read was committed --------------------------------------------------------------------------------


def test_what_was_never_committed_is_not_read() -> None:
    assert broken(commit(5, 0, 10), fetch(6, 20, 30)) == {Rule.READS_WHAT_WAS_COMMITTED}


def test_a_commit_that_was_refused_is_not_read() -> None:
    (violation,) = violations(commit(5, 0, 10), refused(6, 20, 30), fetch(6, 40, 50))
    assert violation.rule is Rule.READS_WHAT_WAS_COMMITTED
    assert violation.lines == (3, 4, 5, 6)
    assert str(violation) == (
        "billing: not true: what is read was committed: orders-0: a client read offset 6, but its commit was refused "
        "with ILLEGAL_GENERATION (lines 3, 4, 5, 6)"
    )


def test_a_position_that_an_acknowledged_commit_left_out_is_not_read() -> None:
    partial = did(Function.COMMIT, 0, 10, Kind.OK, {"value": at(5)}, value=[*at(5), *at(6, partition=1)])
    read = did(Function.FETCH, 20, 30, Kind.OK, {"value": at(6, partition=1)}, value=at(-1, partition=1))
    assert broken(partial, read) == {Rule.READS_WHAT_WAS_COMMITTED}


# ---- an offset goes back only by a reset -----------------------------------------------------------------------


def test_an_offset_goes_back_by_a_reset() -> None:
    assert broken(commit(9, 0, 10), fetch(9, 20, 30), reset(2, 40, 50), fetch(2, 60, 70)) == set()
    assert broken(commit(9, 0, 10), fetch(9, 20, 30), reset(-1, 40, 50), fetch(-1, 60, 70)) == set()
    assert broken(commit(9, 0, 10), fetch(9, 20, 30), reset(2, 40, None), fetch(2, 60, 70)) == set()


def test_an_offset_does_not_go_back_by_a_late_commit() -> None:
    """Nobody knew whether the first commit took effect. It is linearizable that it does so late, and wrong."""
    late = commit(3, 0, 10, Kind.INFO)
    assert broken(late, commit(9, 20, 30), fetch(9, 40, 50), fetch(3, 60, 70)) == {Rule.OFFSETS_GO_AHEAD}


def test_a_reset_explains_only_what_was_read_around_it() -> None:
    late = commit(3, 0, 10, Kind.INFO)
    before = [late, reset(0, 12, 14), commit(9, 20, 30), fetch(9, 40, 50), fetch(3, 60, 70)]
    assert broken(*before) == {Rule.OFFSETS_GO_AHEAD}


def test_a_reset_of_unknown_outcome_explains_nothing_if_nobody_read_it() -> None:
    late = commit(3, 0, 10, Kind.INFO)
    unread = [late, reset(0, 12, 14, Kind.INFO), commit(9, 20, 30), fetch(9, 40, 50), fetch(3, 60, 70)]
    assert broken(*unread) == {Rule.OFFSETS_GO_AHEAD}
    assert broken(commit(9, 20, 30), fetch(9, 40, 50), reset(2, 45, 55, Kind.INFO), fetch(2, 60, 70)) == set()


# ---- commits of old generations --------------------------------------------------------------------------------


def test_a_commit_of_an_old_generation_does_not_follow_one_of_a_newer() -> None:
    old = commit(9, 0, 10, Kind.INFO, generation=1)
    new = commit(5, 20, 30, generation=2)
    assert broken(old, new, fetch(9, 40, 50), fetch(5, 60, 70)) == {Rule.OFFSETS_GO_AHEAD, Rule.LINEARIZABLE_OFFSETS}
    assert broken(old, new, fetch(5, 40, 50), fetch(9, 60, 70)) == {Rule.FENCED_COMMITS}


def test_a_commit_without_a_generation_may_follow_one_of_a_member() -> None:
    assert broken(commit(5, 0, 10, generation=2), fetch(5, 20, 30), commit(9, 40, 50), fetch(9, 60, 70)) == set()
