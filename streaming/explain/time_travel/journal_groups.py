"""All groups as of a time, from the journal alone; without Spark."""

from collections.abc import Callable, Container, Iterable

import msgspec

from coordinator_logic.messages import DescribedConsumerGroup, DescribedGroup
from coordinator_logic.records import GroupDirectoryEntry, JournalEntry, directory_entry
from streaming.explain.time_travel.group_history import GroupAt, GroupHistory, group_at
from streaming.explain.time_travel.group_types import rows_of_type
from streaming.journal.fold import JournalFold
from streaming.journal.folded_group import UNKNOWN, Known

Journal = Callable[[], Iterable[JournalEntry | None]]
"""Reads the journal from its first entry; None stands for a record that is no entry."""


def groups_at(journal: Journal, time: int | None, wanted: Container[str] | None = None) -> dict[str, GroupAt]:
    """The groups that existed at ``time`` (ms since the epoch, None: now), by group id in its order.

    ``wanted`` leaves out all others. The journal is read again for groups of which two coordinators have told different
    histories.
    """
    fold = JournalFold(lambda _: GroupHistory(time))
    for entry in _entries(journal, wanted):
        fold.add(entry)
    forked = fold.of_forked(_entries(journal, wanted)) if fold.forked else {}
    found = {
        group_id: group_at(forked[group_id], time) if group_id in forked else fold.groups[group_id].finish()
        for group_id in sorted(fold.groups)
    }
    return {group_id: at for group_id, at in found.items() if at.group is not None}


def _entries(journal: Journal, wanted: Container[str] | None) -> Iterable[JournalEntry]:
    for entry in journal():
        if entry is not None and (wanted is None or entry.group_id in wanted):
            yield entry


def directory_entry_at(found: GroupAt) -> GroupDirectoryEntry:
    """The directory's entry of a group that existed."""
    assert found.group is not None
    entry = directory_entry(found.group)
    if found.known is not Known.OFFSETS:
        return entry
    return msgspec.structs.replace(entry, group_state=UNKNOWN, group_type=UNKNOWN)


def described_at(found: GroupAt) -> DescribedGroup | DescribedConsumerGroup:
    """The answer of DescribeGroups, or of ConsumerGroupDescribe, for a group that existed.

    The assignor of a consumer group is empty: the journal does not have the coordinator's configuration.
    """
    assert found.group is not None
    answer = rows_of_type(found.group).described(found.group)
    return msgspec.structs.replace(answer, group_state=UNKNOWN) if found.known is Known.OFFSETS else answer
