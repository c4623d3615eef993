"""Kafka record <-> request, response, journal line, directory line, reject: JSON, with the sizes that fit.

Reading never raises: whatever stands in ``group-requests`` becomes a :class:`Request` or a :class:`Rejected`, which
says what is wrong and, where that much can be read, whom to tell. Writing gives the rows of the Kafka sink.
"""

from typing import Any, NamedTuple, TypeVar

import msgspec

from coordinator_logic.errors import Error
from coordinator_logic.events import Place, ReplyAddress, Request, Response
from coordinator_logic.handlers import APIS, Api
from coordinator_logic.messages import (
    LONGEST_CORRELATION_ID,
    NO_BODY,
    Int16,
    Message,
    OffsetFetchRequest,
    RequestBody,
    RequestEnvelope,
    ResponseEnvelope,
)
from coordinator_logic.records import GroupDirectoryEntry, JournalEntry
from streaming import measures
from streaming.topics import MAX_ROW_BYTES, TopicNames

LONGEST_GROUP_ID_BYTES = 2**15 - 1
"""As on Kafka's wire, where the length of a string is an int16."""
LONGEST_REASON = 4_000
LONGEST_API_NAME = 64
"""Of a name that is no API's, so much is repeated in the answer and the metrics' label is `unknown`."""

OFFSET_FETCH_OF_SEVERAL_GROUPS = 8
"""The version of OffsetFetch from which on it names its groups in a list."""

_UNREADABLE = (ValueError, RecursionError)
"""All that msgspec raises on hostile bytes: bad JSON, bad UTF-8 (both ValueErrors) and too deep nesting."""


class KafkaRecord(NamedTuple):
    """A record of ``group-requests``; ``timestamp`` is when the broker appended it, ms since the epoch."""

    timestamp: int
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class Row(NamedTuple):
    """A record for the Kafka sink. ``partition`` null lets the producer choose by key; see measures.py."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    measure: str | None


class Rejected(NamedTuple):
    """What could not be taken: ``cause`` is a short class of it for the metrics, ``reason`` a sentence.

    ``address`` is where to send the error, None when that cannot be read.
    """

    record: KafkaRecord
    cause: str
    reason: str
    error: Error
    address: ReplyAddress | None


class Reject(Message, frozen=True):
    """The value of a record of ``group-rejects``; its key is the rejected record's, as it came.

    ``partition``, ``offset`` and ``timestamp`` (ms) are those of the rejected record in ``group-requests``, -1 when
    it was not a record's fault (a group that cannot be read, a defect met by a timer).
    """

    reason: str
    error_code: Int16
    partition: int
    offset: int
    timestamp: int
    value: bytes | None


class RowTooLarge(Exception):
    """A row that no topic of ours would take; the message says which and how large."""


_envelope_decoder = msgspec.json.Decoder(RequestEnvelope)
_body_decoders = {name: msgspec.json.Decoder(api.request_type) for name, api in APIS.items()}
_encoder = msgspec.json.Encoder()

T = TypeVar("T")


# --------------------------------------------------------------------------------------------------------------
# Reading


class _Refusal(Exception):
    """Raised where a record turns out to be unusable, caught in :func:`read`."""

    def __init__(self, cause: str, error: Error, reason: str) -> None:
        super().__init__(reason)
        self.cause = cause
        self.error = error


def read(record: KafkaRecord, response_partitions: int) -> Request | Rejected:
    """The request that a record holds, or why it holds none.

    ``response_partitions`` is how many partitions ``group-responses`` has: a reply partition must be one of them.
    """
    address: ReplyAddress | None = None
    try:
        group_id = _group_id(record.key)
        envelope = _envelope(record.value)
        address = _address(envelope, record, response_partitions)
        body = _body(envelope, group_id)
    except _Refusal as refusal:
        if address is None:
            address = _salvaged_address(record, response_partitions)
        return Rejected(record, refusal.cause, str(refusal), refusal.error, address)
    place = Place(record.timestamp, record.partition, record.offset)
    return Request(place, address, envelope.client_id or "", envelope.client_host or "", body, envelope.principal)


def _group_id(key: bytes | None) -> str:
    if key is None:
        raise _Refusal("key", Error.INVALID_REQUEST, "the record has no key; the key is the group id")
    if len(key) > LONGEST_GROUP_ID_BYTES:
        reason = f"the key has {len(key)} bytes, a group id at most {LONGEST_GROUP_ID_BYTES}"
        raise _Refusal("key", Error.INVALID_REQUEST, reason)
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise _Refusal("key", Error.INVALID_REQUEST, f"the key is not UTF-8: {error}") from None


def _envelope(value: bytes | None) -> RequestEnvelope:
    if value is None:
        raise _Refusal("null-value", Error.INVALID_REQUEST, "the record has no value")
    try:
        return _envelope_decoder.decode(value)
    except msgspec.ValidationError as error:
        raise _Refusal("envelope", Error.INVALID_REQUEST, f"not a request envelope: {error}") from None
    except _UNREADABLE as error:
        raise _Refusal("json", Error.INVALID_REQUEST, f"not JSON: {error}") from None


def _address(envelope: RequestEnvelope, record: KafkaRecord, response_partitions: int) -> ReplyAddress:
    if envelope.reply_partition >= response_partitions:
        reason = (
            f"replyPartition is {envelope.reply_partition}, but the responses topic has "
            f"{response_partitions} partitions, counted from 0"
        )
        raise _Refusal("reply-partition", Error.INVALID_REQUEST, reason)
    return ReplyAddress(
        envelope.api, envelope.version, envelope.correlation_id, envelope.reply_partition, record.timestamp
    )


def _body(envelope: RequestEnvelope, group_id: str) -> RequestBody:
    if envelope.api == "ListGroups":
        reason = "ListGroups is answered from the directory topic, read it there"
        raise _Refusal("list-groups", Error.INVALID_REQUEST, reason)
    api = APIS.get(envelope.api)
    if api is None:
        reason = f"unknown api {envelope.api[:LONGEST_API_NAME]!r}; there are: {', '.join(sorted(APIS))}"
        raise _Refusal("api", Error.INVALID_REQUEST, reason)
    _check_version(api, envelope.version)
    try:
        body: RequestBody = _body_decoders[api.name].decode(envelope.body)
    except _UNREADABLE as error:
        raise _Refusal("body", Error.INVALID_REQUEST, f"not a {api.name} request: {error}") from None
    _check_key(body, envelope.version, group_id)
    return body


def _check_version(api: Api[Any], version: int) -> None:
    if not api.min_version <= version <= api.max_version:
        reason = f"{api.name} version {version} is not served, {api.min_version} to {api.max_version} are"
        raise _Refusal("version", Error.UNSUPPORTED_VERSION, reason)


def _check_key(body: RequestBody, version: int, key: str) -> None:
    """The key decides which group's state the request meets, so it has to name the group that is asked.

    A request for several groups is answered entry by entry, and FindCoordinator is not about state at all.
    """
    if isinstance(body, OffsetFetchRequest) and version >= OFFSET_FETCH_OF_SEVERAL_GROUPS:
        return
    group_id = getattr(body, "group_id", key)
    if group_id != key:
        reason = f"the record's key is {key!r}, but the request's groupId is {group_id!r}"
        raise _Refusal("key", Error.INVALID_REQUEST, reason)


class _Salvage(Message, frozen=True):
    """The parts of an envelope that an answer needs, each to be read on its own."""

    correlation_id: msgspec.Raw
    reply_partition: msgspec.Raw
    api: msgspec.Raw = msgspec.Raw(b"null")
    version: msgspec.Raw = msgspec.Raw(b"null")


def _salvaged_address(record: KafkaRecord, response_partitions: int) -> ReplyAddress | None:
    try:
        parts = msgspec.json.decode(record.value or b"", type=_Salvage)
        correlation_id = msgspec.json.decode(parts.correlation_id, type=str)
        reply_partition = msgspec.json.decode(parts.reply_partition, type=int)
    except _UNREADABLE:
        return None
    if not 1 <= len(correlation_id) <= LONGEST_CORRELATION_ID or not 0 <= reply_partition < response_partitions:
        return None
    api = _or_default(parts.api, str, "")[:LONGEST_API_NAME]
    version = _or_default(parts.version, Int16, -1)
    return ReplyAddress(api, version, correlation_id, reply_partition, record.timestamp)


def _or_default(raw: msgspec.Raw, kind: type[T], default: T) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except _UNREADABLE:
        return default


# --------------------------------------------------------------------------------------------------------------
# Writing


def response_row(topics: TopicNames, response: Response, batch_time: int) -> Row:
    """An answer. Raises :class:`RowTooLarge`."""
    address = response.address
    envelope = ResponseEnvelope(
        api=address.api,
        version=address.version,
        correlation_id=address.correlation_id,
        group_id=response.group_id,
        error_code=response.error_code,
        body=msgspec.Raw(_encoder.encode(response.body)),
    )
    return _response_row(topics, address, envelope, batch_time)


def error_row(topics: TopicNames, address: ReplyAddress, group_id: str, error: Error, reason: str, now: int) -> Row:
    """The answer to a request that was not understood or could not be served: no body, but a message."""
    envelope = ResponseEnvelope(
        api=address.api,
        version=address.version,
        correlation_id=address.correlation_id,
        group_id=group_id,
        error_code=error,
        body=NO_BODY,
        error_message=reason[:LONGEST_REASON],
    )
    return _response_row(topics, address, envelope, now)


def _response_row(topics: TopicNames, address: ReplyAddress, envelope: ResponseEnvelope, batch_time: int) -> Row:
    api = address.api if address.api in APIS else "unknown"
    measure = measures.answered(api, envelope.error_code, batch_time - address.requested_at)
    key, value = address.correlation_id.encode(), _encoder.encode(envelope)
    return _fitting(Row(topics.responses, address.reply_partition, key, value, measure))


def reject_row(topics: TopicNames, rejected: Rejected) -> Row:
    """The dead letter of a record, with the reason."""
    record = rejected.record
    reject = Reject(
        rejected.reason[:LONGEST_REASON],
        rejected.error,
        record.partition,
        record.offset,
        record.timestamp,
        record.value,
    )
    measure = measures.rejected(rejected.cause)
    return _fitting(Row(topics.rejects, None, record.key, _encoder.encode(reject), measure))


def journal_row(topics: TopicNames, entry: JournalEntry) -> Row:
    """A line of the journal. Raises :class:`RowTooLarge`."""
    measure = measures.changed(entry.record)
    return _fitting(Row(topics.journal, None, entry.group_id.encode(), _encoder.encode(entry), measure))


def directory_row(topics: TopicNames, group_id: str, entry: GroupDirectoryEntry | None) -> Row:
    """The group's line in the directory; None writes the tombstone of a group that is no more."""
    value = None if entry is None else _encoder.encode(entry)
    return _fitting(Row(topics.directory, None, group_id.encode(), value, None))


def _fitting(row: Row) -> Row:
    size = len(row.key or b"") + len(row.value or b"")
    if size > MAX_ROW_BYTES:
        raise RowTooLarge(f"a record for {row.topic} has {size} bytes, more than {MAX_ROW_BYTES}")
    return row
