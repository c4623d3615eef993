"""The records that every group has, the journal's and the directory's entries, and the only code that applies records.

A handler decides and returns records; :func:`apply` decides nothing. It alone changes offsets and configuration, and
has the part of a group apply the records of its type. So folding a group's journal gives exactly those fields. The room
imports the group and the messages.
"""

from coordinator_logic.group.record import Record
from coordinator_logic.records.applying import apply, fold
from coordinator_logic.records.definitions import (
    EXPIRED,
    QUARANTINED,
    Cause,
    GroupConfigChanged,
    GroupCreated,
    GroupDeleted,
    GroupDirectoryEntry,
    JournalEntry,
    MemberRemoved,
    OffsetCommitted,
    OffsetRecord,
    OffsetsCommitted,
    OffsetsDeleted,
    QuarantinedStateDropped,
    RequestCause,
    StaticMemberReplaced,
    TimerCause,
    TopicPartitions,
    TransactionalOffsetsCommitted,
    TransactionEnded,
    directory_entry,
    entry_decoder,
    quarantined_entry,
)
from coordinator_logic.records.moves_back import moves_back

__all__ = [
    "EXPIRED",
    "QUARANTINED",
    "Cause",
    "GroupConfigChanged",
    "GroupCreated",
    "GroupDeleted",
    "GroupDirectoryEntry",
    "JournalEntry",
    "MemberRemoved",
    "OffsetCommitted",
    "OffsetRecord",
    "OffsetsCommitted",
    "OffsetsDeleted",
    "QuarantinedStateDropped",
    "Record",
    "RequestCause",
    "StaticMemberReplaced",
    "TimerCause",
    "TopicPartitions",
    "TransactionEnded",
    "TransactionalOffsetsCommitted",
    "apply",
    "directory_entry",
    "entry_decoder",
    "fold",
    "moves_back",
    "quarantined_entry",
]
