"""Decodes journal entries: of a commit of a member, a story needs only its time, and a page also the member."""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from coordinator_logic.messages import Int64, JobEpoch, Time
from coordinator_logic.records import Cause, JournalEntry, OffsetsCommitted, TimerCause, entry_decoder
from streaming.contract.records import UNREADABLE

COMMIT = b'"record":{"type":"OffsetsCommitted"'
"""Only the entry of a commit has these bytes: within a string, JSON escapes the quotes."""

RESET = b'"api":"ResetOffsets"'
"""An operator's reset is a cause of rebalances, and its offsets belong to the story."""

NO_OFFSETS = OffsetsCommitted([])
NO_CAUSE = TimerCause("", "", 0)


class _Head(msgspec.Struct, rename="camel"):
    group_id: str
    incarnation: str
    sequence: Int64
    timestamp: Time
    job_epoch: JobEpoch = 0
    ends_turn: bool | msgspec.UnsetType = msgspec.UNSET


class _HeadWithCause(_Head, kw_only=True):
    cause: Cause


journal_entry = entry_decoder().decode
"""The whole entry in a record's value. Raises as :func:`story_entry`."""

_decode_head = msgspec.json.Decoder(_Head).decode
_decode_head_with_cause = msgspec.json.Decoder(_HeadWithCause).decode


def story_entry(value: bytes) -> JournalEntry:
    """The entry in a record's value; a member's commit lacks offsets and cause: that is read twice as fast.

    Raises one of :data:`~streaming.contract.records.UNREADABLE` if it is none.
    """
    if COMMIT not in value or RESET in value:
        return journal_entry(value)
    return _commit(_decode_head(value), NO_CAUSE)


def page_entry(value: bytes) -> JournalEntry:
    """The entry in a record's value; a member's commit has no offsets. Raises as :func:`story_entry`."""
    if COMMIT not in value or RESET in value:
        return journal_entry(value)
    head = _decode_head_with_cause(value)
    return _commit(head, head.cause)


def readable(
    values: Iterable[bytes | None], decode: Callable[[bytes], JournalEntry], group_id: str
) -> Iterator[JournalEntry]:
    """The entries in the values of records with the key ``group_id``, without those that are none of this group."""
    for value in values:
        try:
            entry = decode(value or b"")
        except UNREADABLE:
            continue
        if entry.group_id == group_id:
            yield entry


def key_of(entry: JournalEntry) -> bytes:
    """The key of an entry's record."""
    return entry.group_id.encode()


def _commit(head: _Head, cause: Cause) -> JournalEntry:
    return JournalEntry(
        head.group_id,
        head.incarnation,
        head.sequence,
        head.timestamp,
        NO_OFFSETS,
        cause,
        head.job_epoch,
        head.ends_turn,
    )
