"""The functions that Spark calls in its tasks, with Arrow's tables and batches as Spark passes them."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pyarrow as pa

from streaming.explain.tables.columns import arrow_schema
from streaming.explain.tables.group_states import GroupsFold
from streaming.explain.tables.tables import (
    STATE_COLUMNS,
    TABLES,
    folded_by,
    group_rows,
    log_rows,
    rebalances_until,
)
from streaming.job.group_batch.state_row import StateRow
from tests.logic.driver import GROUP_ID, Driven

STORED = pa.schema([("groupId", pa.string()), ("stored", pa.binary())])
ENTRIES = pa.schema(
    [("groupId", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())]
)
RECORDS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("appendedAt", pa.timestamp("us", tz="UTC")),
    ]
)
NOW = datetime(2026, 11, 24, tzinfo=UTC)
KEY = (pa.scalar(GROUP_ID),)


def driven_group() -> Driven:
    """A group of two members with an offset."""
    driven = Driven()
    driven.stable_group(2)
    driven.commit_in_transaction({("topic", 0): 5})
    return driven


def entries_of(driven: Driven) -> Any:
    """The records of a group's journal, the newest first."""
    rows = [
        {"groupId": GROUP_ID, "partition": 0, "offset": i, "value": msgspec.json.encode(entry)}
        for i, entry in enumerate(driven.journal)
    ]
    return pa.Table.from_pylist(rows[::-1], ENTRIES)


def test_a_group_is_folded_from_its_entries_in_the_order_of_their_offsets() -> None:
    driven = driven_group()
    stored = {"groupId": GROUP_ID, "stored": StateRow(driven.snapshot or b"").packed()}
    of_journal = folded_by(GroupsFold())(KEY, STORED.empty_table(), entries_of(driven))
    of_state = folded_by(GroupsFold())(KEY, pa.Table.from_pylist([stored], STORED), ENTRIES.empty_table())
    assert of_journal.schema == of_state.schema == STATE_COLUMNS
    assert of_journal["known"].to_pylist() == of_state["known"].to_pylist() == ["ALL"]
    for table in ("groups", "members", "assignments", "offsets"):
        (from_journal,), (from_state,) = (
            [pa.Table.from_batches(group_rows(table)(state.to_batches()), arrow_schema(TABLES[table])).to_pylist()]
            for state in (of_journal, of_state)
        )
        assert from_journal == from_state
        assert from_journal or table == "assignments"


def test_a_group_that_did_not_exist_has_no_row() -> None:
    found = folded_by(GroupsFold(time=1))(KEY, STORED.empty_table(), entries_of(driven_group()))
    assert (found.num_rows, found.schema) == (0, STATE_COLUMNS)
    assert list(group_rows("members")(found.to_batches())) == []


def test_rebalances_are_told_from_the_entries_in_the_order_of_their_offsets() -> None:
    driven = driven_group()
    found = rebalances_until(None)(KEY, entries_of(driven))
    assert (found.schema, found["generation"].to_pylist()) == (arrow_schema(TABLES["rebalances"]), [1])
    (completed,) = found["ended"].to_pylist()
    assert rebalances_until(round(completed.timestamp() * 1000) - 1)(KEY, entries_of(driven)).num_rows == 0


def test_records_become_rows_and_what_is_no_entry_is_left_out() -> None:
    driven = driven_group()
    records = [
        {"key": b"k", "value": value, "partition": 0, "offset": i, "appendedAt": NOW}
        for i, value in enumerate([None, *map(msgspec.json.encode, driven.journal)])
    ]
    batches = pa.Table.from_pylist(records, RECORDS).to_batches()
    (journal,), (requests,) = log_rows("journal")(batches), log_rows("requests")(batches)
    assert (journal.schema, journal.num_rows) == (arrow_schema(TABLES["journal"]), len(driven.journal))
    assert (requests.schema, requests.num_rows) == (arrow_schema(TABLES["requests"]), len(records))
    assert journal.column("sequence").to_pylist() == [entry.sequence for entry in driven.journal]
