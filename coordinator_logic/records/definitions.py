"""The records of what changes in a group, and the journal's and the directory's entries."""

from typing import ClassVar, TypeAlias

import msgspec

from coordinator_logic.committed_offsets import offset_count
from coordinator_logic.group import Group
from coordinator_logic.group.part import load_types, new_part
from coordinator_logic.group.record import Record, add_records, known_records
from coordinator_logic.messages import NO_GENERATION, GroupChange, Int32, Int64, JobEpoch, Message, Time


class GroupCreated(Record, frozen=True):
    """The group was created: Empty, generation 0."""

    changes_retention: ClassVar[bool] = True


class GroupDeleted(Record, frozen=True):
    """The group and its offsets were deleted."""

    reason: str


class GroupConfigChanged(Record, frozen=True):
    """The group has exactly these values of its own, by name; the coordinator's hold for all others."""

    changes_retention: ClassVar[bool] = True

    configs: dict[str, int]


class QuarantinedStateDropped(Record, frozen=True):
    """The stored state of a quarantined group, of ``size`` bytes, was dropped: the group no longer exists.

    ``why`` says why it could not be read, ``reason`` why it was dropped.
    """

    why: str
    size: int
    reason: str


class StaticMemberReplaced(Record, frozen=True):
    """A static member rejoined with a new member id and takes over the old one's place and assignment."""

    group_instance_id: str
    old_member_id: str
    new_member_id: str


class MemberRemoved(Record, frozen=True):
    """A member left, was expelled, or lost its place because the group is full."""

    member_id: str
    group_instance_id: str | None
    reason: str


class OffsetCommitted(Message, frozen=True, omit_defaults=True):
    """The new offset of one partition. Times are ms since the epoch.

    ``topic_id`` is that of the topic as of the commit; absent if the commit did not say it.
    """

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None
    topic_id: str = ""


class OffsetsCommitted(Record, frozen=True, omit_defaults=True):
    """A request committed these offsets.

    ``reason`` is what an operator gave who has reset them, or that they come from the brokers' coordinator.
    """

    offsets: list[OffsetCommitted]
    reason: str = ""


class TransactionalOffsetsCommitted(Record, frozen=True):
    """A request committed these offsets in a producer's transaction; they are pending until it ends."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    offsets: list[OffsetCommitted]


class TransactionEnded(Record, frozen=True):
    """A producer's transaction ended; its pending offsets are committed, or dropped if it was aborted."""

    producer_id: int
    producer_epoch: int
    committed: bool


class TopicPartitions(Message, frozen=True, omit_defaults=True):
    """Partitions of a topic. ``topic_id``: only offsets of the topic with that id; absent for all of that name."""

    topic: str
    partitions: list[int]
    topic_id: str = ""


class OffsetsDeleted(Record, frozen=True):
    """These offsets were deleted, committed and pending ones."""

    offsets: list[TopicPartitions]
    reason: str


EXPIRED = "expired"
"""The reason of :class:`OffsetsDeleted` and :class:`GroupDeleted` if no request caused them."""

OffsetRecord = OffsetsCommitted | TransactionalOffsetsCommitted | TransactionEnded | OffsetsDeleted

add_records(
    (
        GroupCreated,
        GroupDeleted,
        GroupConfigChanged,
        QuarantinedStateDropped,
        StaticMemberReplaced,
        MemberRemoved,
        OffsetsCommitted,
        TransactionalOffsetsCommitted,
        TransactionEnded,
        OffsetsDeleted,
    )
)


class RequestCause(Message, frozen=True, tag_field="type", tag="Request"):
    """The request that caused a record: its sender, and its place in ``group-requests``.

    ``principal`` is null if the sender was not authenticated. Client id, host and principal are only what the sender
    claims if ``claimed``; a gateway, or the principal itself, has signed the others, see
    :mod:`streaming.contract.identity`.
    """

    api: str
    version: int
    member_id: str
    client_id: str
    client_host: str
    correlation_id: str
    partition: Int32
    offset: Int64
    principal: str | None = None
    claimed: bool = True


class TimerCause(Message, frozen=True, tag_field="type", tag="Timer"):
    """The timer that caused a record, e.g. ``heartbeat`` if a session expired; ``deadline`` is ms since the epoch."""

    timer: str
    member_id: str
    deadline: Int64


Cause = RequestCause | TimerCause


AnyRecord: TypeAlias = Record
"""In a decoder, the union of all records: see :func:`entry_decoder`."""


class JournalEntry(Message, frozen=True):
    """The value of a record of ``group-journal``: one change with its cause.

    ``sequence`` counts 1, 2, 3, ... within an incarnation of a group; readers drop entries that repeat
    (group id, incarnation, sequence). ``timestamp`` is the time of the change by the group's clock, ms since the epoch.
    ``job_epoch`` grows with every start of the query, of this job or another one: where two entries differ, that of the
    higher one holds. ``ends_turn`` says whether the entry is the last one of its turn, which is the handling of one
    request or one fired timer; entries of earlier releases lack it.
    """

    group_id: str
    incarnation: str
    sequence: Int64
    timestamp: Time
    record: "AnyRecord"
    cause: Cause
    job_epoch: JobEpoch = 0
    ends_turn: bool | msgspec.UnsetType = msgspec.UNSET


def entry_decoder() -> msgspec.json.Decoder[JournalEntry]:
    """A decoder of journal entries in JSON, which knows the records of all types of groups.

    A type that is registered after the first decoder was made is not known to any.
    """
    # The type of the field is read when the first decoder is made, by its name in this module.
    load_types()
    globals()["AnyRecord"] = known_records()
    return msgspec.json.Decoder(JournalEntry)


class GroupDirectoryEntry(Message, frozen=True):
    """The value of a record of ``group-directory``: the summary of a group from which ListGroups is answered.

    ``incarnation`` and ``sequence`` name the last change of the group that the record shows, as in the journal. A later
    change that leaves all other fields as they are has no record. Records of earlier releases lack both.
    ``stored_bytes`` is the size of the stored group, rounded up to a power of two; it is absent below 256 KiB. Gateways
    ask for few large groups at a time.
    """

    group_id: str
    group_state: str
    group_type: str
    protocol_type: str
    generation: Int32
    members: Int32
    offsets: Int64 = 0
    incarnation: str = ""
    sequence: Int64 = 0
    configs: Int64 = 0
    stored_bytes: Int64 | msgspec.UnsetType = msgspec.UNSET


LARGE_GROUP_BYTES = 256 * 1024
"""The directory has the size of a group from this size on. Nearly all groups are smaller."""


def directory_entry(group: Group, stored_bytes: int = 0) -> GroupDirectoryEntry:
    """Summarise a group for the directory, without the change that its record names.

    stored_bytes: the size of its snapshot; 0 if that does not matter.
    """
    part = group.part
    return GroupDirectoryEntry(
        group_id=group.group_id,
        group_state=part.state.value,
        group_type=part.type_name,
        protocol_type=part.protocol_type or "",
        generation=part.generation,
        members=len(part.member_ids),
        offsets=offset_count(group.offsets),
        configs=len(group.configs),
        # Rounded, so that the entry seldom changes.
        stored_bytes=msgspec.UNSET if stored_bytes < LARGE_GROUP_BYTES else 1 << (stored_bytes - 1).bit_length(),
    )


def shows(entry: GroupDirectoryEntry | None, change: GroupChange) -> bool:
    """Whether a group's newest entry, None after a tombstone, shows a change of the group, or was written later."""
    if entry is None:
        return change.is_deletion
    if entry.incarnation == change.incarnation:
        return entry.sequence >= change.sequence and not change.is_deletion
    return _was_created_after(entry.incarnation, change.incarnation)


def _was_created_after(incarnation: str, earlier: str) -> bool:
    """Whether the request that created an incarnation follows another one in the same partition."""
    partition, _, offset = incarnation.partition("-")
    earlier_partition, _, earlier_offset = earlier.partition("-")
    has_offsets = offset.isdecimal() and earlier_offset.isdecimal()
    return partition == earlier_partition and has_offsets and int(offset) > int(earlier_offset)


QUARANTINED = "Quarantined"
"""The state in the directory of a group whose stored state cannot be read. Only the directory has it."""


def quarantined_entry(group_id: str) -> GroupDirectoryEntry:
    """The directory's entry of a group whose stored state cannot be read."""
    type_name = new_part().type_name
    return GroupDirectoryEntry(group_id, QUARANTINED, type_name, "", generation=NO_GENERATION, members=0)
