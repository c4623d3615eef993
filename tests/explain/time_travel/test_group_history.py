"""The journal, folded up to any time, has the rows of the group's state at that time."""

from typing import NamedTuple

import msgspec
from hypothesis import event, given
from hypothesis import strategies as st

from coordinator_logic import snapshot
from coordinator_logic.records import JournalEntry
from streaming.explain.time_travel.group_history import CLOCK_ERROR_MS, GroupAt, group_at
from streaming.explain.time_travel.row_types import TableRow
from streaming.explain.time_travel.rows import GROUP_TABLES
from streaming.journal.fold import Base
from streaming.journal.folded_group import Known
from tests.logic.driver import Driven
from tests.logic.strategies import STORIES, Move, Story
from tests.support.properties import examples

THOROUGH = examples(120)

Rows = dict[str, list[TableRow]]


class Moment(NamedTuple):
    """A group after a step: its snapshot, the entries of its journal, and the offset after its last request."""

    stored: bytes | None
    entries: int
    read: int


def played(moves: list[Move]) -> tuple[Driven, list[Moment]]:
    """A story, and the group after each of its moves."""
    driven = Driven(offsets_retention_minutes=1)
    story = Story(driven)
    moments = [Moment(None, 0, 0)]
    for move in moves:
        story.play(move)
        moments.append(Moment(driven.snapshot, len(driven.journal), driven.log[-1].place.offset + 1))
    return driven, moments


def rows_of(found: GroupAt) -> Rows:
    """The rows of a group in each table."""
    if found.group is None:
        return {name: [] for name in GROUP_TABLES}
    return {name: list(table.rows(found.group, found.known)) for name, table in GROUP_TABLES.items()}


def rows_in(stored: bytes | None) -> Rows:
    """The rows of a snapshot."""
    return rows_of(GroupAt(None if stored is None else snapshot.decode(stored), Known.ALL))


def last_moments(journal: list[JournalEntry], moments: list[Moment]) -> dict[int, Moment]:
    """The group as of each time of its journal: after the last step of that time."""
    return {journal[moment.entries - 1].timestamp: moment for moment in moments if moment.entries}


@given(moves=STORIES, repeated=st.integers(0, 200))
@THOROUGH
def test_the_journal_up_to_a_time_has_the_rows_of_the_state_at_that_time(moves: list[Move], repeated: int) -> None:
    driven, moments = played(moves)
    journal = driven.journal + driven.journal[repeated % (len(driven.journal) + 1) :]
    for time, moment in last_moments(driven.journal, moments).items():
        found = group_at(journal, time)
        assert found.known is Known.ALL
        assert rows_of(found) == rows_in(moment.stored)
        for name, rows in rows_of(found).items():
            event(f"{name}: {'some' if rows else 'none'}")


@given(moves=STORIES, stop=st.integers(0, 100), cut=st.integers(0, 200))
@THOROUGH
def test_a_checkpoint_and_the_journal_after_it_have_the_rows_of_the_journal_alone(
    moves: list[Move], stop: int, cut: int
) -> None:
    driven, moments = played(moves)
    stored, entries, read = moments[stop % len(moments)]
    base = Base(None if stored is None else snapshot.decode(stored), {0: read})
    # What the checkpoint has already may be among the entries that are read, or not.
    begin = cut % (entries + 1) if base.group is not None else 0
    since = driven.journal[entries - 1].timestamp if entries else 0
    for time in sorted({entry.timestamp for entry in driven.journal if entry.timestamp >= since}):
        fresh = base._replace(group=None if stored is None else snapshot.decode(stored))
        assert rows_of(group_at(driven.journal[begin:], time, fresh)) == rows_of(group_at(driven.journal, time))


@given(moves=STORIES)
@examples(50)
def test_before_its_first_entry_a_group_has_no_rows(moves: list[Move]) -> None:
    driven, _ = played(moves)
    if driven.journal:
        assert group_at(driven.journal, driven.journal[0].timestamp - 1).group is None


@given(moves=STORIES, cut=st.integers(1, 200))
@THOROUGH
def test_without_the_beginning_of_the_journal_a_group_does_not_seem_to_be_known(moves: list[Move], cut: int) -> None:
    driven, _ = played(moves)
    journal = driven.journal[cut % (len(driven.journal) + 1) :]
    for time in {entry.timestamp for entry in journal}:
        found, whole = group_at(journal, time), group_at(driven.journal, time)
        if found.known is Known.ALL:
            assert rows_of(found) == rows_of(whole)
        elif found.known is Known.OFFSETS and found.group is not None:
            (row,) = rows_of(found)["groups"]
            assert (row.known, row.state, row.members, row.leader) == ("offsets", None, None, None)  # type: ignore[attr-defined]


def test_the_history_of_the_newer_coordinator_holds() -> None:
    driven = Driven()
    driven.commit(offsets={("topic", 0): 1})
    shared = len(driven.journal)
    lost = driven.snapshot
    driven.commit(offsets={("topic", 0): 2})
    void = driven.journal[shared:]
    driven.snapshot, driven.journal = lost, driven.journal[:shared]
    driven.now += 1
    driven.commit(offsets={("topic", 0): 3})
    newer = [msgspec.structs.replace(entry, job_epoch=2) for entry in driven.journal[shared:]]
    found = group_at([*driven.journal[:shared], *void, *newer], driven.now)
    assert [row.offset for row in rows_of(found)["offsets"]] == [3]  # type: ignore[attr-defined]


def test_an_entry_of_a_clock_that_went_back_leaves_no_gap() -> None:
    driven = Driven()
    driven.commit(offsets={("topic", 0): 1})
    driven.commit(offsets={("topic", 0): 2})
    driven.commit(offsets={("topic", 0): 3})
    last = driven.journal[-1]
    ahead = [
        msgspec.structs.replace(entry, timestamp=entry.timestamp + 1_000) if 2 <= i < len(driven.journal) - 1 else entry
        for i, entry in enumerate(driven.journal)
    ]
    found = group_at(ahead, last.timestamp)
    assert rows_of(found) == rows_in(driven.snapshot)
    assert found.known is Known.ALL


def test_an_entry_far_later_than_the_time_ends_the_history() -> None:
    driven = Driven()
    driven.commit(offsets={("topic", 0): 1})
    until = driven.now
    driven.now += CLOCK_ERROR_MS + 1
    driven.commit(offsets={("topic", 0): 2})
    driven.commit(offsets={("topic", 0): 3})
    wrong = [*driven.journal[:-1], msgspec.structs.replace(driven.journal[-1], timestamp=until)]
    assert [row.offset for row in rows_of(group_at(wrong, until))["offsets"]] == [1]  # type: ignore[attr-defined]
