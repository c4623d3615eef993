"""What a fold tells its observer: new entries once, what is missing, and the turns."""

from collections.abc import Iterable, Sequence

import msgspec
import pytest

from coordinator_logic.config import LOGIC_VERSION
from coordinator_logic.records import JournalEntry
from streaming.journal.fold import GroupFold, JournalFold, Observer
from tests.journal.observed import observed
from tests.logic.driver import Driven


class Listener(Observer):
    """Keeps what it is told, by incarnation and sequence number."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, int]] = []
        self.begins: list[int] = []
        self.gaps: list[int] = []
        self.turns: list[int] = []
        self.rest: int | None = None

    def on_begin(self, entry: JournalEntry) -> None:
        self.begins.append(entry.sequence)

    def on_gap(self, entry: JournalEntry) -> None:
        self.gaps.append(entry.sequence)

    def on_entry(self, entry: JournalEntry) -> None:
        self.entries.append((entry.incarnation, entry.sequence))

    def on_turn(self, turn: Sequence[JournalEntry]) -> None:
        self.turns.append(len(turn))

    def on_end(self, turn: Sequence[JournalEntry]) -> None:
        self.rest = len(turn)


def places(entries: Iterable[JournalEntry]) -> list[tuple[str, int]]:
    return [(entry.incarnation, entry.sequence) for entry in entries]


def committed(count: int) -> list[JournalEntry]:
    """The entries of commits, with times that grow."""
    driven = Driven()
    for offset in range(count):
        driven.commit(offsets={("orders", 0): offset})
        driven.sleep(1_000)
    return driven.journal


def of_epoch(entries: Iterable[JournalEntry], epoch: int, later_ms: int = 0) -> list[JournalEntry]:
    """The entries as a job with this epoch has written them, so much later."""
    return [msgspec.structs.replace(entry, job_epoch=epoch, timestamp=entry.timestamp + later_ms) for entry in entries]


def test_entries_that_repeat_are_told_once_also_those_of_a_former_incarnation() -> None:
    driven = Driven()
    driven.commit()
    driven.delete()
    driven.commit()
    journal = driven.journal
    heard = observed(Listener(), [*journal, *journal, *journal[1:]])
    assert heard.entries == places(journal)
    assert (heard.begins, heard.gaps) == ([1, 1], [])


def test_what_is_missing_is_told_before_the_entry_that_follows() -> None:
    journal = committed(5)
    heard = observed(Listener(), [*journal[2:3], *journal[4:]])
    assert (heard.begins, heard.gaps) == ([3], [5])
    assert heard.entries == places([*journal[2:3], *journal[4:]])


@pytest.mark.parametrize("logic_version", [0, LOGIC_VERSION])
def test_a_turn_is_told_when_it_has_ended(logic_version: int) -> None:
    driven = Driven(logic_version=logic_version)
    (member,) = driven.stable_group(1)
    driven.commit(member)
    heard = observed(Listener(), driven.journal)
    assert sum(heard.turns) == len(driven.journal)
    # The group is created, together with the commit of an administrator.
    other = Driven(logic_version=logic_version)
    other.commit()
    assert observed(Listener(), other.journal).turns == [2]


def test_a_turn_that_has_not_ended_is_told_at_the_end() -> None:
    driven = Driven()
    driven.stable_group(1)
    ends = [place for place, entry in enumerate(driven.journal) if entry.ends_turn]
    for end, rest in ((ends[0] + 1, 0), (ends[-1], ends[-1] - ends[-2] - 1)):
        heard = Listener()
        fold = GroupFold(heard)
        for entry in driven.journal[:end]:
            fold.add(entry)
        fold.finish()
        assert heard.rest == rest


def test_what_a_coordinator_that_was_overtaken_writes_late_is_not_told() -> None:
    journal = committed(3)
    newer, late = of_epoch(journal[:-1], 2), of_epoch(journal[-1:], 1)
    fold = GroupFold(Listener())
    assert [fold.add(entry) for entry in [*newer, *late]] == [True] * len(newer) + [False]
    assert fold.is_forked


def test_what_a_later_coordinator_tells_otherwise_is_told_from_there_on() -> None:
    journal = committed(5)
    again = of_epoch(journal[2:], 2, later_ms=60_000)
    heard = Listener()
    fold = GroupFold(heard)
    for entry in [*of_epoch(journal, 1), *again]:
        fold.add(entry)
    assert heard.entries == places([*journal, *again])
    assert heard.gaps == [again[0].sequence]
    assert fold.is_forked


def test_what_a_later_coordinator_tells_again_is_no_news() -> None:
    journal = committed(5)
    heard = Listener()
    fold = GroupFold(heard)
    for entry in [*of_epoch(journal[:-1], 1), *of_epoch(journal[2:], 2)]:
        fold.add(entry)
    assert heard.entries == places(journal)
    assert not fold.is_forked


def test_each_group_has_a_fold_until_it_is_forgotten() -> None:
    one, other = Driven(group_id="one"), Driven(group_id="other")
    for driven in (one, other):
        driven.commit()
    fold = JournalFold(lambda _: GroupFold(Listener()))
    for entry in [*one.journal, *other.journal]:
        fold.add(entry)
    assert {group_id: each.observer.entries for group_id, each in fold.groups.items()} == {
        "one": places(one.journal),
        "other": places(other.journal),
    }
    fold.forget("one", one.journal[0].incarnation)
    assert fold.add(one.journal[-1]) is None
    assert fold.groups.keys() == {"other"}
    assert fold.entries == len(one.journal) + len(other.journal) + 1
    reborn = msgspec.structs.replace(one.journal[0], incarnation="0-99")
    assert fold.add(reborn) is fold.groups["one"]
