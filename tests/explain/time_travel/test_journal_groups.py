"""All groups as of a time, from one journal."""

import msgspec

from coordinator_logic.records import JournalEntry
from streaming.explain.time_travel.journal_groups import described_at, directory_entry_at, groups_at
from streaming.journal.folded_group import UNKNOWN
from tests.logic.driver import Driven


def test_each_group_is_as_of_the_time() -> None:
    first, second = Driven(group_id="first"), Driven(group_id="second")
    first.stable_group(2)
    then = first.now
    second.now = then + 1
    second.commit(offsets={("topic", 0): 1})
    journal: list[JournalEntry | None] = [*first.journal, None, *second.journal]
    assert list(groups_at(lambda: journal, then)) == ["first"]
    assert list(groups_at(lambda: journal, None)) == ["first", "second"]
    assert list(groups_at(lambda: journal, None, {"second"})) == ["second"]
    (found,) = groups_at(lambda: journal, then).values()
    assert (directory_entry_at(found).group_state, directory_entry_at(found).members) == ("Stable", 2)
    assert len(described_at(found).members) == 2


def test_the_state_of_a_group_without_its_beginning_is_unknown() -> None:
    driven = Driven()
    driven.stable_group(2)
    (found,) = groups_at(lambda: driven.journal[3:], None).values()
    entry = directory_entry_at(found)
    assert (entry.group_state, entry.group_type) == (UNKNOWN, UNKNOWN)
    assert (described_at(found).group_state, described_at(found).members) == (UNKNOWN, [])


def test_a_group_with_two_histories_is_read_again() -> None:
    driven = Driven()
    driven.commit(offsets={("topic", 0): 1})
    driven.commit(offsets={("topic", 0): 2})
    later = driven.journal[-1]
    other = msgspec.structs.replace(later, timestamp=later.timestamp + 1, job_epoch=2)
    reads = 0

    def journal() -> list[JournalEntry]:
        nonlocal reads
        reads += 1
        return [*driven.journal, other]

    (found,) = groups_at(journal, None).values()
    assert found.group is not None
    assert reads == 2
