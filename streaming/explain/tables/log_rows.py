"""The rows of the tables ``journal`` and ``requests``, from the records of their topics."""

from datetime import datetime
from typing import NamedTuple

import msgspec

from coordinator_logic.messages import RequestEnvelope
from coordinator_logic.records import RequestCause, TimerCause
from streaming.contract.records import UNREADABLE
from streaming.explain.time_travel.row_types import TableRow
from streaming.explain.time_travel.rows import utc
from streaming.journal.entries import journal_entry

_decode_envelope = msgspec.json.Decoder(RequestEnvelope).decode
_encode = msgspec.json.Encoder().encode


class LogRecord(NamedTuple):
    """A record of a topic; ``appended_at`` is the time of its Kafka record."""

    key: bytes | None
    value: bytes | None
    partition: int
    offset: int
    appended_at: datetime


class JournalRow(TableRow, frozen=True):
    """A change of a group, and its cause.

    ``change`` is the type of ``record``, which is JSON as in the topic. ``cause_type`` is ``Request`` or ``Timer``; the
    columns that belong to the other one are null. ``partition`` and ``offset`` are the entry's place in the journal,
    ``request_partition`` and ``request_offset`` that of its request.
    """

    group_id: str
    incarnation: str
    sequence: int
    timestamp: datetime
    change: str
    record: str
    cause_type: str
    member_id: str
    job_epoch: int
    partition: int
    offset: int
    api: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    principal: str | None = None
    is_claimed: bool | None = None
    correlation_id: str | None = None
    request_partition: int | None = None
    request_offset: int | None = None
    timer: str | None = None
    deadline: datetime | None = None


class RequestRow(TableRow, frozen=True):
    """A record of ``group-requests``; ``body`` is JSON as in the topic.

    ``problem`` says why a record is no request; its other columns are null then. The coordinator may reject a request
    for further reasons.
    """

    partition: int
    offset: int
    appended_at: datetime
    group_id: str | None = None
    api: str | None = None
    version: int | None = None
    correlation_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    principal: str | None = None
    reply_partition: int | None = None
    body: str | None = None
    problem: str | None = None


def journal_row(record: LogRecord) -> JournalRow | None:
    """The row of a record of the journal; None if it is no journal entry."""
    try:
        entry = journal_entry(record.value or b"")
    except UNREADABLE:
        return None
    cause = entry.cause
    row = JournalRow(
        entry.group_id,
        entry.incarnation,
        entry.sequence,
        utc(entry.timestamp),
        type(entry.record).__name__,
        _encode(entry.record).decode(),
        "Request" if isinstance(cause, RequestCause) else "Timer",
        cause.member_id,
        entry.job_epoch,
        record.partition,
        record.offset,
    )
    match cause:
        case RequestCause():
            return msgspec.structs.replace(
                row,
                api=cause.api,
                client_id=cause.client_id,
                client_host=cause.client_host,
                principal=cause.principal,
                is_claimed=cause.claimed,
                correlation_id=cause.correlation_id,
                request_partition=cause.partition,
                request_offset=cause.offset,
            )
        case TimerCause():
            return msgspec.structs.replace(row, timer=cause.timer, deadline=utc(cause.deadline))


def request_row(record: LogRecord) -> RequestRow:
    """The row of a record of the requests."""
    group_id = None if record.key is None else record.key.decode(errors="replace")
    try:
        envelope = _decode_envelope(record.value or b"")
    except UNREADABLE as error:
        return RequestRow(record.partition, record.offset, record.appended_at, group_id, problem=str(error))
    return RequestRow(
        record.partition,
        record.offset,
        record.appended_at,
        group_id,
        envelope.api,
        envelope.version,
        envelope.correlation_id,
        envelope.client_id,
        envelope.client_host,
        envelope.principal,
        envelope.reply_partition,
        bytes(envelope.body).decode(errors="replace"),
    )
