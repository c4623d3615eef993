"""All groups as of a time, from the journal alone; without Spark."""

from collections.abc import Callable, Container, Iterable

import msgspec

from coordinator_logic import apis
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.requests.describe_groups import described
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.requests.consumer_group_describe import described as described_consumers
from coordinator_logic.messages import DescribedConsumerGroup, DescribedGroup
from coordinator_logic.records import GroupDirectoryEntry, JournalEntry, directory_entry
from streaming.explain.time_travel.group_history import GroupAt, GroupHistory, group_at
from streaming.journal.fold import JournalFold
from streaming.journal.folded_group import Known

UNKNOWN = "Unknown"
"""Kafka's name of a state or a type that is not known: the journal no longer has the group's members."""

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
    group = found.group
    assert group is not None
    answer: DescribedGroup | DescribedConsumerGroup
    if isinstance(group.part, ClassicGroup):
        answer = described(group.group_id, group.part)
    elif isinstance(group.part, ConsumerGroup):
        version = apis.CONSUMER_GROUP_DESCRIBE.max_version
        consumers = described_consumers(group.group_id, group.part, CoordinatorConfig(), version)
        answer = msgspec.structs.replace(consumers, assignor_name="")
    else:
        answer = DescribedGroup(group.group_id, 0, None, group.state.value, group.protocol_type or "")
    return msgspec.structs.replace(answer, group_state=UNKNOWN) if found.known is Known.OFFSETS else answer
