"""What Spark's tasks compute for a group: the same rows from a stored state, from the journal, and from both."""

from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given

from coordinator_logic.records import JournalEntry
from streaming.explain.tables.columns import arrow_schema, record_batches, spark_schema
from streaming.explain.tables.group_states import GroupsFold, GroupState, rows_in
from streaming.explain.tables.log_rows import LogRecord, journal_row, request_row
from streaming.explain.tables.tables import TABLES
from streaming.explain.time_travel.row_types import GroupRow, TableRow
from streaming.explain.time_travel.rows import GROUP_TABLES
from streaming.job.group_batch.state_row import StateRow
from tests.explain.time_travel.test_group_history import played
from tests.logic.driver import GROUP_ID, Driven
from tests.logic.strategies import STORIES, Move
from tests.support.properties import examples
from tests.support.request_events import commit, dumped

NOW = datetime(2026, 11, 24, tzinfo=UTC)


def values(entries: list[JournalEntry]) -> list[bytes]:
    """The values of the journal's records."""
    return [msgspec.json.encode(entry) for entry in entries]


def rows(state: GroupState | None) -> dict[str, list[TableRow]]:
    """The rows of a group in each table."""
    return {table: [] if state is None else list(rows_in(table, state)) for table in GROUP_TABLES}


@given(moves=STORIES)
@examples(60)
def test_the_state_and_the_journal_have_the_same_rows(moves: list[Move]) -> None:
    driven, moments = played(moves)
    stored, entries, read = moments[len(moments) // 2]
    packed = None if stored is None else StateRow(stored).packed()
    fold = GroupsFold(None, {0: read})
    of_state = rows(fold.state_of(GROUP_ID, packed, []))
    assert of_state == rows(GroupsFold().state_of(GROUP_ID, None, values(driven.journal[:entries])))
    whole = rows(GroupsFold().state_of(GROUP_ID, None, values(driven.journal)))
    assert rows(fold.state_of(GROUP_ID, packed, values(driven.journal[entries:]))) == whole


def test_a_state_that_cannot_be_read_is_quarantined_unless_the_journal_has_all_of_it() -> None:
    driven = Driven()
    driven.stable_group(2)
    damaged = StateRow(b"\xff damaged").packed()
    (row,) = rows(GroupsFold().state_of(GROUP_ID, damaged, []))["groups"]
    assert isinstance(row, GroupRow)
    assert (row.state, row.known) == ("Quarantined", "nothing")
    cut = rows(GroupsFold().state_of(GROUP_ID, damaged, values(driven.journal[2:])))
    assert (len(cut["groups"]), cut["members"]) == (1, [])
    assert len(rows(GroupsFold().state_of(GROUP_ID, damaged, values(driven.journal)))["members"]) == 2


def test_a_record_that_is_no_entry_is_left_out() -> None:
    driven = Driven()
    driven.commit(offsets={("topic", 0): 1})
    state = GroupsFold().state_of(GROUP_ID, None, [None, b"{", *values(driven.journal)])
    assert len(rows(state)["offsets"]) == 1
    assert GroupsFold().state_of(GROUP_ID, None, []) is None


def test_rows_become_record_batches_with_the_schema_that_spark_expects() -> None:
    driven = Driven()
    driven.stable_group(2)
    state = GroupsFold().state_of(GROUP_ID, None, values(driven.journal))
    for table, found in rows(state).items():
        for batch in record_batches(TABLES[table], found):
            assert batch.schema == arrow_schema(TABLES[table])
            assert batch.to_pylist() == [msgspec.to_builtins(row, builtin_types=(datetime,)) for row in found]
    assert "`groupId` string" in spark_schema(TABLES["members"])
    assert "`subscribedTopics` array<string>" in spark_schema(TABLES["members"])


def test_an_entry_has_the_columns_of_its_cause() -> None:
    driven = Driven()
    driven.stable_group(1)
    driven.sleep(1_000_000)
    found = [journal_row(LogRecord(b"k", value, 3, i, NOW)) for i, value in enumerate(values(driven.journal))]
    first, last = found[0], found[-1]
    assert first is not None
    assert last is not None
    assert (first.change, first.cause_type, first.api, first.timer) == ("GroupCreated", "Request", "JoinGroup", None)
    assert (first.partition, first.offset, first.request_offset) == (3, 0, 0)
    assert (last.cause_type, last.api, last.timer) == ("Timer", None, "heartbeat")
    assert journal_row(LogRecord(b"k", b"{}", 0, 0, NOW)) is None


def test_a_request_has_its_body_as_json() -> None:
    row = request_row(LogRecord(b"billing", dumped(commit("billing", 5)), 1, 2, NOW))
    assert (row.group_id, row.api, row.version, row.problem) == ("billing", "OffsetCommit", 5, None)
    assert row.body is not None
    assert msgspec.json.decode(row.body)["groupId"] == "billing"


@pytest.mark.parametrize("value", [None, b"", b"{", b"\xff", b"[]"])
def test_a_record_that_is_no_request_has_a_problem(value: bytes | None) -> None:
    row = request_row(LogRecord(None, value, 1, 2, NOW))
    assert (row.group_id, row.api, row.body) == (None, None, None)
    assert row.problem
