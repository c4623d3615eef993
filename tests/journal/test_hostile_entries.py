"""Entries that others write to the journal: what no coordinator writes is no entry."""

import json
from collections.abc import Callable

import msgspec
import pytest

from coordinator_logic.records import GroupCreated, JournalEntry, TimerCause
from streaming.contract.records import UNREADABLE
from streaming.explain.story.words import clock
from streaming.journal.entries import journal_entry, key_of, page_entry, readable, story_entry

ENTRY = JournalEntry("g", "0-1", 1, 1_000, GroupCreated(), TimerCause("expiry", "", 5), 1)
COMMIT = {"type": "OffsetsCommitted", "offsets": []}


def value(**changes: object) -> bytes:
    return json.dumps({**json.loads(msgspec.json.encode(ENTRY)), **changes}, separators=(",", ":")).encode()


@pytest.mark.parametrize("decode", [journal_entry, story_entry, page_entry])
@pytest.mark.parametrize("record", [{"type": "GroupCreated"}, COMMIT], ids=["created", "commit"])
@pytest.mark.parametrize(
    "changes", [{"timestamp": 2**60}, {"timestamp": -1}, {"jobEpoch": 2**60}, {"jobEpoch": -1}, {"sequence": 2**70}]
)
def test_no_entry_has_a_time_without_a_date_or_an_epoch_that_no_job_reaches(
    decode: Callable[[bytes], JournalEntry], record: object, changes: dict[str, object]
) -> None:
    with pytest.raises(UNREADABLE):
        decode(value(record=record, **changes))


def test_an_entry_of_another_group_under_this_ones_key_is_left_out() -> None:
    values = [value(), value(groupId="other"), b"garbage", None, b"[" * 100_000]
    assert list(readable(values, journal_entry, "g")) == [ENTRY]
    assert key_of(ENTRY) == b"g"


@pytest.mark.parametrize(("time", "shown"), [(-5, "1970-01-01T00:00:00.000Z"), (2**63, "9999-12-31T23:59:59.999Z")])
def test_a_deadline_without_a_date_is_shown_as_the_nearest_one(time: int, shown: str) -> None:
    assert clock(time) == shown
