"""A commit is decoded without what a story does not need, and every other entry as it is."""

import msgspec
import pytest

from coordinator_logic.records import JournalEntry, OffsetsCommitted
from streaming.journal.entries import COMMIT, NO_CAUSE, NO_OFFSETS, page_entry, story_entry
from tests.logic.driver import Driven


def _journal() -> list[JournalEntry]:
    driven = Driven()
    (member,) = driven.stable_group(1)
    driven.commit(member, {("orders", 0): 7})
    driven.commit_in_transaction({("orders", 0): 8})
    driven.end_transaction(commit=True)
    return driven.journal


def test_only_a_commit_is_cut() -> None:
    journal = _journal()
    commits = [isinstance(entry.record, OffsetsCommitted) for entry in journal]
    assert any(commits)
    for entry, is_commit in zip(journal, commits, strict=True):
        value = msgspec.json.encode(entry)
        without_offsets = msgspec.structs.replace(entry, record=NO_OFFSETS) if is_commit else entry
        assert page_entry(value) == without_offsets
        cut = msgspec.structs.replace(without_offsets, cause=NO_CAUSE) if is_commit else entry
        assert story_entry(value) == cut


def test_the_words_of_a_client_are_not_taken_for_a_commit() -> None:
    driven = Driven()
    driven.join_new(COMMIT.decode())
    (added,) = [entry for entry in driven.journal if type(entry.record).__name__ == "MemberAdded"]
    assert story_entry(msgspec.json.encode(added)) == added


@pytest.mark.parametrize("value", [b"", b"{}", b"\xff", COMMIT, b"{" + COMMIT + b',"offsets":[]}}'])
def test_what_is_no_entry_is_refused(value: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        story_entry(value)
