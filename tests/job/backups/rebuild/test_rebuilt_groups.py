"""The groups of a rebuilt checkpoint: what is stored of each, and what happens when its requests are read again."""

from collections.abc import Iterable

import msgspec

from coordinator_logic import snapshot
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.records import JournalEntry, directory_entry
from coordinator_logic.states import State
from coordinator_logic.step import step
from streaming.job.backups.rebuild.rebuilt_groups import RebuiltGroup, RebuiltGroups, Resumption
from streaming.job.group_batch.state_row import StateRow, load
from streaming.job.spark_internals.checkpoint_layout.state_reader import StoredGroup
from streaming.journal.folded_group import Known
from tests.logic.driver import GROUP_ID, Driven
from tests.logic.invariants.of_journals import recorded
from tests.support.parts import classic

NOW = 9_000_000


def backed_up(driven: Driven) -> dict[str, StoredGroup]:
    assert driven.snapshot is not None
    return {GROUP_ID: StoredGroup(GROUP_ID, StateRow(driven.snapshot).packed(), 77)}


def rebuilt(
    journal: Iterable[JournalEntry],
    driven: Driven,
    *,
    backup: dict[str, StoredGroup] | None = None,
    read: int = 0,
    position: int = 0,
) -> list[RebuiltGroup]:
    groups = RebuiltGroups(backup or {}, {0: read} if backup else {})
    for entry in journal:
        groups.add(entry)
    directory = {} if driven.snapshot is None else {GROUP_ID: directory_entry(driven.group)}
    return list(groups.finished(Resumption({0: position}, {0: driven.now}, NOW), driven.config, directory))


def group_of(found: RebuiltGroup) -> Group:
    group = load(StateRow.unpacked(found.stored.stored))
    assert group is not None
    return group


def read_again(group: Group, driven: Driven, requests: list[Request], *, now: int) -> list[JournalEntry]:
    """Take a rebuilt group through requests, in a batch; returns its new entries."""
    result = step(GROUP_ID, group, requests, now, started_at=now, config=driven.config)
    driven.snapshot = None if result.group is None else snapshot.encode(result.group)
    return result.journal


def test_a_group_is_stored_as_it_was_with_its_next_deadline_and_what_was_applied() -> None:
    driven = Driven()
    (member,) = driven.stable_group(1)
    driven.commit(member)
    (found,) = rebuilt(driven.journal, driven, position=1)
    group = group_of(found)
    assert recorded(group) == recorded(driven.group)
    assert group.applied_until == {0: len(driven.log)}
    assert found.known is Known.ALL
    assert found.entry == directory_entry(driven.group)
    assert found.stored.wake_at == min(timer.deadline(0) for timer in group.timers.values())
    assert group.sessions_from == driven.now


def test_requests_that_the_journal_names_are_not_applied_twice_and_later_ones_are() -> None:
    driven = Driven()
    for offset in (1, 2, 3):
        driven.commit(offsets={("topic", 0): offset})
    # The coordinator was killed before the last entry was written.
    (found,) = rebuilt(driven.journal[:-1], driven)
    entries = read_again(group_of(found), driven, driven.log, now=driven.now)
    assert entries == driven.journal[-1:]


def test_a_request_whose_entries_were_written_in_part_is_applied() -> None:
    driven = Driven()
    driven.commit()
    # Created, but the commit is missing.
    (found,) = rebuilt(driven.journal[:1], driven)
    entries = read_again(group_of(found), driven, driven.log, now=driven.now)
    assert [entry.record for entry in entries] == [driven.journal[1].record]


def test_a_deleted_group_is_not_stored() -> None:
    driven = Driven()
    driven.commit()
    before = backed_up(driven)
    driven.delete()
    assert rebuilt(driven.journal, driven) == []
    assert rebuilt(driven.journal, driven, backup=before, read=1) == []


def test_a_group_without_later_entries_is_that_of_the_backup() -> None:
    driven = Driven()
    driven.stable_group(2)
    backup, read = backed_up(driven), len(driven.log)
    (kept,) = rebuilt(driven.journal, driven, backup=backup, read=read, position=read)
    assert kept.stored == backup[GROUP_ID]
    # Requests between were deleted: heartbeats may be among them.
    driven.now += 3_600_000
    (renewed,) = rebuilt([], driven, backup=backup, read=read, position=read + 5)
    group = group_of(renewed)
    assert recorded(group) == recorded(driven.group)
    assert group.sessions_from == driven.now


def test_a_group_that_changed_after_the_backup_is_loaded_anew() -> None:
    driven = Driven()
    first, second = driven.stable_group(2)
    driven.rejoin(first)
    backup, read = backed_up(driven), len(driven.log)
    assert classic(driven.group).members[first.member_id].parked_join is not None
    driven.leave(second)
    (found,) = rebuilt(driven.journal, driven, backup=backup, read=read, position=read)
    group = group_of(found)
    assert recorded(group) == recorded(driven.group)
    assert all(member.parked_join is None for member in classic(group).members.values())


def test_a_generation_that_the_journal_lacks_comes_from_the_directory() -> None:
    driven = Driven()
    (member,) = driven.stable_group(1)
    driven.commit(member)
    (found,) = rebuilt(driven.journal[-1:], driven)
    group = group_of(found)
    assert found.known is Known.OFFSETS
    assert (group.state, group.generation) == (State.EMPTY, driven.group.generation)


def test_an_unreadable_group_of_the_backup_is_rebuilt_only_from_a_whole_journal() -> None:
    driven = Driven()
    driven.stable_group(1)
    backup = {GROUP_ID: StoredGroup(GROUP_ID, b"damaged in some way", 5)}
    (found,) = rebuilt(driven.journal, driven, backup=backup, read=len(driven.log))
    assert recorded(group_of(found)) == recorded(driven.group)
    (kept,) = rebuilt(driven.journal[2:], driven, backup=backup, read=len(driven.log))
    assert kept == RebuiltGroup(backup[GROUP_ID], Known.ALL, None)


def test_a_group_with_two_histories_is_told_again() -> None:
    driven = Driven()
    for offset in (1, 2):
        driven.commit(offsets={("topic", 0): offset})
    other = msgspec.structs.replace(driven.journal[-1], timestamp=driven.now + 1)
    groups = RebuiltGroups({}, {})
    journal = [*driven.journal, other]
    for entry in journal:
        groups.add(entry)
    assert groups.journal.forked == {GROUP_ID}
    groups.tell_again(GROUP_ID, journal)
    assert groups.journal.forked == set()
    (found,) = groups.finished(Resumption({0: 0}, {}, NOW), driven.config, {})
    assert group_of(found).clock == NOW


def test_a_backup_of_a_history_that_a_later_job_has_replaced_does_not_void_its_commits() -> None:
    driven = Driven()
    (member,) = driven.stable_group(1)
    before = list(driven.journal)
    driven.commit(member)
    driven.commit(member)
    voided = backed_up(driven)
    # The later job went on from before these commits, and had another one.
    other = Driven()
    (member,) = other.stable_group(1)
    other.commit(member, offsets={("topic", 0): 77})
    told = [msgspec.structs.replace(entry, job_epoch=7) for entry in other.journal[len(before) :]]
    groups = RebuiltGroups(voided, {0: 100}, 5)
    entries = [*(msgspec.structs.replace(entry, job_epoch=5) for entry in driven.journal), *told]
    for entry in entries:
        groups.add(entry)
    assert groups.journal.forked == {GROUP_ID}
    groups.tell_again(GROUP_ID, entries)
    (found,) = groups.finished(Resumption({0: 100}, {0: driven.now}, NOW), driven.config, {})
    assert recorded(group_of(found)) == recorded(other.group)
    assert found.known is Known.ALL


def test_a_backup_and_the_entries_that_it_includes_are_one_history() -> None:
    driven = Driven()
    (member,) = driven.stable_group(1)
    driven.commit(member)
    groups = RebuiltGroups(backed_up(driven), {0: 100}, 5)
    for entry in driven.journal:
        groups.add(msgspec.structs.replace(entry, job_epoch=5))
    assert groups.journal.forked == set()
