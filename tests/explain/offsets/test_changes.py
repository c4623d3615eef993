"""The history of offsets: who moved them, in which generation, from where."""

from itertools import pairwise

from hypothesis import given

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.records import RequestCause
from streaming.explain.offsets.changes import OffsetChange, changes_of, last_reset, matters_for_offsets
from streaming.explain.offsets.history_rows import change_row, difference_rows
from streaming.explain.offsets.plan import Position
from tests.logic.driver import GROUP_ID, Driven, Joined, joined
from tests.logic.strategies import STORIES, Move, Story
from tests.support.properties import examples

FIRST, SECOND = ("topic", 0), ("topic", 1)


def history(driven: Driven) -> list[OffsetChange]:
    """The changes in a group's journal."""
    return list(changes_of(filter(matters_for_offsets, driven.journal)))


def moves(driven: Driven) -> list[tuple[int | None, int | None, int | None]]:
    """Generation, offset before and offset after of each change."""
    rows = [change_row(change) for change in history(driven)]
    return [(row.generation, row.before, row.after) for row in rows]


def test_a_commit_shows_its_member_its_generation_and_what_was_there_before(driven: Driven) -> None:
    driven.commit(offsets={FIRST: 3})
    (member,) = driven.stable_group(1)
    driven.commit(member, {FIRST: 7})
    simple, of_member = (change_row(change) for change in history(driven))
    assert (simple.before, simple.after, simple.generation, simple.member_id) == (None, 3, 0, None)
    assert (of_member.before, of_member.after, of_member.generation) == (3, 7, 1)
    assert (of_member.member_id, of_member.client_host) == (member.member_id, "/127.0.0.1")
    assert (of_member.cause, of_member.claimed) == ("OffsetCommit", True)


def test_a_reset_is_shown_with_its_reason_and_in_the_generation_that_it_ends(driven: Driven) -> None:
    (member,) = driven.stable_group(1)
    driven.commit(member, {FIRST: 7, SECOND: 8})
    driven.reset_offsets({FIRST: 5, SECOND: -1}, force=True, reason="replay")
    rows = [change_row(change) for change in last_reset(history(driven))]
    assert [(row.partition, row.before, row.after) for row in rows] == [(1, 8, None), (0, 7, 5)]
    assert {(row.cause, row.generation) for row in rows} == {("ResetOffsets", 1)}
    assert [row.reason for row in rows] == ["replay", "replay"]
    assert [change.goes_back for change in history(driven)] == [False, False, True, True]
    again = joined(driven.rejoin(member))
    driven.sync_all([again])
    driven.commit(again, {FIRST: 6})
    assert moves(driven)[-1] == (3, 5, 6)


def test_only_the_last_reset_is_the_last_reset(driven: Driven) -> None:
    driven.reset_offsets({FIRST: 1, SECOND: 2})
    driven.reset_offsets({FIRST: 5})
    driven.commit(offsets={FIRST: 6})
    assert [(change.partition, change.reason) for change in last_reset(history(driven))] == [(FIRST, "")]
    assert last_reset([]) == []


def test_an_offset_of_a_transaction_changes_at_its_end_by_who_committed_it(driven: Driven) -> None:
    driven.commit_in_transaction({FIRST: 9}, Joined(""))
    assert history(driven) == []
    driven.end_transaction(commit=True)
    (change,) = history(driven)
    assert isinstance(change.cause, RequestCause)
    assert (change.cause.api, change.transactional_id) == ("TxnOffsetCommit", "transaction-7")


def test_an_aborted_transaction_and_one_that_a_later_commit_overtook_change_nothing(driven: Driven) -> None:
    driven.commit_in_transaction({FIRST: 9}, producer_id=1)
    driven.end_transaction(commit=False, producer_id=1)
    driven.commit_in_transaction({FIRST: 9}, producer_id=2)
    driven.commit(offsets={FIRST: 4})
    driven.end_transaction(commit=True, producer_id=2)
    assert moves(driven) == [(0, None, 4)]


def test_a_deleted_group_loses_its_offsets_and_a_new_one_begins_without_any(driven: Driven) -> None:
    driven.commit(offsets={FIRST: 3})
    driven.delete()
    driven.commit(offsets={FIRST: 4})
    assert [(before, after) for _, before, after in moves(driven)] == [(None, 3), (3, None), (None, 4)]


def test_without_the_beginning_of_the_journal_the_first_offset_before_is_not_known(driven: Driven) -> None:
    driven.commit(offsets={FIRST: 3})
    driven.commit(offsets={FIRST: 4})
    driven.commit(offsets={FIRST: 5})
    rows = [change_row(change) for change in changes_of(driven.journal[2:])]
    assert [(row.knows_before, row.before, row.generation) for row in rows] == [(False, None, None), (True, 4, None)]


def test_of_two_histories_that_of_the_newer_coordinator_is_told(driven: Driven) -> None:
    driven.commit(offsets={FIRST: 3})
    before = driven.snapshot
    kept = len(driven.journal)
    driven.commit(offsets={FIRST: 4})
    void = driven.journal[kept:]
    driven.snapshot, driven.config = before, driven.config.__class__(job_epoch=1)
    del driven.journal[kept:]
    driven.commit(offsets={FIRST: 5})
    told = [driven.journal[0], driven.journal[1], *void, *driven.journal[kept:]]
    assert [change_row(change).after for change in changes_of(told)] == [3, 5]


def test_a_difference_lists_partitions_that_moved_came_or_went() -> None:
    before = {
        TopicPartition("a", 0): Position(1),
        TopicPartition("a", 1): Position(2),
        TopicPartition("b", 0): Position(3),
    }
    after = {
        TopicPartition("a", 0): Position(1),
        TopicPartition("a", 1): Position(5),
        TopicPartition("c", 0): Position(4),
    }
    rows = difference_rows(before, after)
    assert [(row.topic, row.partition, row.before, row.after) for row in rows] == [
        ("a", 1, 2, 5),
        ("b", 0, 3, None),
        ("c", 0, None, 4),
    ]


@given(moves=STORIES)
@examples(120)
def test_the_changes_lead_from_no_offsets_to_those_of_the_group(moves: list[Move]) -> None:
    driven = Driven()
    story = Story(driven)
    for move in moves:
        story.play(move)
    changes = history(driven)
    now = {change.partition: change.after for change in changes}
    offsets = list(driven.group.committed_offsets()) if driven.exists else []
    assert {place: offset for place, offset in now.items() if offset is not None} == {
        TopicPartition(topic, number): offset for topic, number, offset in offsets
    }
    of_each: dict[TopicPartition, list[OffsetChange]] = {}
    for change in changes:
        of_each.setdefault(change.partition, []).append(change)
        assert change.entry.group_id == GROUP_ID
        assert change.knows_before
    for one in of_each.values():
        assert one[0].before is None
        assert all(earlier.after == later.before for earlier, later in pairwise(one))
