"""What ``offsets history`` and ``offsets diff`` show, as rows."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.records import RequestCause
from streaming.explain.offsets.changes import OffsetChange
from streaming.explain.offsets.plan import Position
from streaming.explain.time_travel.rows import utc


class ChangeRow(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A change of the committed offset of a partition.

    ``before`` and ``after`` are null without an offset; ``before`` also if the journal no longer has it, and
    ``knows_before`` is false then. ``cause`` is the API of the request, or the timer. Client id, host and principal are
    only what the sender claims if ``claimed``.
    """

    at: datetime
    topic: str
    partition: int
    before: int | None
    knows_before: bool
    after: int | None
    generation: int | None
    cause: str
    member_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    principal: str | None = None
    claimed: bool = False
    transactional_id: str | None = None
    reason: str = ""
    incarnation: str
    sequence: int


class DifferenceRow(msgspec.Struct, frozen=True, rename="camel"):
    """A partition whose committed offset is not the same at two times; null without one."""

    topic: str
    partition: int
    before: int | None
    after: int | None


def change_row(change: OffsetChange) -> ChangeRow:
    """The row of a change."""
    entry, cause = change.entry, change.cause
    row = ChangeRow(
        at=utc(entry.timestamp),
        topic=change.partition.topic,
        partition=change.partition.partition,
        before=None if change.before is None else change.before.offset,
        knows_before=change.knows_before,
        after=None if change.after is None else change.after.offset,
        generation=change.generation,
        cause=cause.api if isinstance(cause, RequestCause) else f"timer {cause.timer}",
        transactional_id=change.transactional_id,
        reason=change.reason,
        incarnation=entry.incarnation,
        sequence=entry.sequence,
    )
    if not isinstance(cause, RequestCause):
        return row
    return msgspec.structs.replace(
        row,
        member_id=cause.member_id or None,
        client_id=cause.client_id,
        client_host=cause.client_host,
        principal=cause.principal,
        claimed=cause.claimed,
    )


def difference_rows(
    before: Mapping[TopicPartition, Position], after: Mapping[TopicPartition, Position]
) -> list[DifferenceRow]:
    """The partitions whose offsets differ, in their order."""
    rows = []
    for partition in sorted({*before, *after}):
        old, new = before.get(partition), after.get(partition)
        if old != new:
            row = DifferenceRow(*partition, None if old is None else old.offset, None if new is None else new.offset)
            rows.append(row)
    return rows
