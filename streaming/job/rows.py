"""Conversion between Kafka records and the logic's types: requests are read, and rows for the Kafka sink are written.

Reading never raises: every record of ``group-requests`` becomes a :class:`Request`, or a :class:`Rejection` with the
reason and, if it can be read, the address for the answer. Writing enforces :class:`Limits`: errors and dead letters are
cut until they fit, and say so; everything else that does not fit raises :class:`RowTooLarge`.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from coordinator_logic.apis import APIS, OFFSET_FETCH_FIRST_VERSION_WITH_GROUPS, Api
from coordinator_logic.errors import Error
from coordinator_logic.events import Place, ReplyAddress, Request, Response
from coordinator_logic.messages import (
    NO_BODY,
    Int16,
    Message,
    OffsetFetchRequest,
    RequestBody,
    RequestEnvelope,
    ResponseEnvelope,
)
from coordinator_logic.records import GroupDirectoryEntry, JournalEntry
from streaming.contract.identity import is_signed
from streaming.contract.topics import LONGEST_GROUP_ID_BYTES, MAX_ROW_BYTES, TopicNames
from streaming.job import measures
from streaming.job.hostile_records.broken_envelopes import (
    LONGEST_API_NAME,
    UNREADABLE,
    address_in_broken_envelope,
    fields_before_cut,
)
from streaming.job.hostile_records.least_sizes import least_size

LONGEST_REASON = 4_000
LONGEST_SIZE = 10
"""The most digits of a size: Java's arrays have less than 2^31 bytes."""
LONGEST_JSON_CHARACTER = 6
"""The most bytes of a character in JSON: a control character is written as ``\\u0000``."""
MIN_ROW_BYTES = 256 * 1024
"""The lowest limit of a row: an error with the longest group id, reason and correlation id fits, however escaped."""


@dataclass(frozen=True)
class Limits:
    """The sizes that the job enforces, in bytes.

    ``request`` is the limit of a request's value, and of its key: the query passes only as much on. ``row`` is the
    limit of key and value of a record that the job writes, at least :data:`MIN_ROW_BYTES`. ``snapshot`` is the limit of
    a stored group, which must fit into a worker and into Arrow. ``answers`` is the limit of a group's answers in a
    batch; Arrow's columns end at 2 GiB.
    """

    request: int = MAX_ROW_BYTES // 2
    row: int = MAX_ROW_BYTES
    snapshot: int = 64 * 1024 * 1024
    answers: int = 64 * 1024 * 1024


DEFAULT_LIMITS = Limits()


class KafkaRecord(NamedTuple):
    """A record of ``group-requests``; ``timestamp`` is its append time, ms since the epoch.

    The query cuts a key or a value at the limit of a request, and appends its original size in bytes, in decimal: so
    only what was cut is longer than the limit. Columns of their own would cost a tenth of a worker's time.
    """

    timestamp: int
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None


class Row(NamedTuple):
    """A record for the Kafka sink, and its measure. Without a ``partition`` the producer chooses one by the key."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    measure: measures.Measure | None


class CutFrom(NamedTuple):
    """The original sizes, in bytes, of a record's key and value if they were cut, else 0."""

    key: int = 0
    value: int = 0


class Rejection(NamedTuple):
    """A record that could not be handled: ``cause`` is its class in the metrics, ``reason`` a sentence for a person.

    ``address`` is the address for the error response, None if it cannot be read.
    """

    record: KafkaRecord
    cause: str
    reason: str
    error: Error
    address: ReplyAddress | None
    cut_from: CutFrom = CutFrom()


class DeadLetter(Message, frozen=True, omit_defaults=True):
    """The value of a record of ``group-rejects``; its key is the key of the rejected record.

    ``partition``, ``offset`` and ``timestamp`` (ms) are those of the rejected record in ``group-requests``, or -1 if no
    record caused the reject (a snapshot that cannot be read, an exception in a timer). A key or a value that is too
    large is cut: ``key_cut_from`` and ``value_cut_from`` are the original sizes in bytes, absent if nothing was cut.
    """

    reason: str
    error_code: Int16
    partition: int
    offset: int
    timestamp: int
    value: bytes | None
    key_cut_from: int = 0
    value_cut_from: int = 0


class RowTooLarge(Exception):
    """A row exceeds the size limit of its topic; the message names the topic and the size."""


_envelope_decoder = msgspec.json.Decoder(RequestEnvelope)
_body_decoders = {name: msgspec.json.Decoder(api.request_type) for name, api in APIS.items()}
_encoder = msgspec.json.Encoder()


# --------------------------------------------------------------------------------------------------------------
# Reading


class _InvalidRecord(Exception):
    """A record is not a valid request; :func:`read_request` catches it."""

    def __init__(self, cause: str, error: Error, reason: str) -> None:
        super().__init__(reason)
        self.cause = cause
        self.error = error


def read_request(
    record: KafkaRecord,
    response_partitions: int,
    limits: Limits = DEFAULT_LIMITS,
    identity_keys: tuple[bytes, ...] = (),
) -> Request | Rejection:
    """Read the request in a record, or return the reason why it is not a valid request.

    ``response_partitions`` is the number of partitions of ``group-responses``; a reply partition must be one of them.
    ``identity_keys`` are the keys with which gateways sign, see :mod:`streaming.contract.identity`.
    """
    address: ReplyAddress | None = None
    try:
        group_id = _group_id(record.key)
        envelope = _envelope(record.value)
        address = _address(envelope, record, response_partitions)
        body = _body(envelope, group_id)
        is_vouched_for = bool(identity_keys) and is_signed(envelope, group_id, identity_keys)
    except _InvalidRecord as invalid:
        # Only here: a key that was cut is too long, and a value with its size at the end is not JSON.
        if max(len(record.key or b""), len(record.value or b"")) > limits.request:
            return _rejected_cut_record(record, response_partitions, limits)
        if address is None:
            address = address_in_broken_envelope(record.value or b"", record.timestamp, response_partitions)
        return Rejection(record, invalid.cause, str(invalid), invalid.error, address)
    except Exception as defect:  # It would end the query, and with it the service for every group.
        reason = f"the record could not be read: {type(defect).__name__}: {defect}"
        return Rejection(record, "defect", reason, Error.UNKNOWN_SERVER_ERROR, address)
    place = Place(record.timestamp, record.partition, record.offset)
    client_id, client_host = envelope.client_id or "", envelope.client_host or ""
    return Request(place, address, client_id, client_host, body, envelope.principal, is_vouched_for)


def _rejected_cut_record(record: KafkaRecord, response_partitions: int, limits: Limits) -> Rejection:
    """Reject a record whose key or value the query has cut."""
    key, key_cut_from = _without_size(record.key, limits)
    value, value_cut_from = _without_size(record.value, limits)
    if key_cut_from:
        reason = _long_key(key_cut_from)
    else:
        reason = f"the value has {value_cut_from} bytes; a request has at most {limits.request}"
    readable = fields_before_cut(value) if value and value_cut_from else value or b""
    address = address_in_broken_envelope(readable, record.timestamp, response_partitions)
    cut = record._replace(key=key, value=value)
    return Rejection(cut, "too-large", reason, Error.INVALID_REQUEST, address, CutFrom(key_cut_from, value_cut_from))


def _without_size(column: bytes | None, limits: Limits) -> tuple[bytes | None, int]:
    """A key or a value up to the limit, and its original size, which the query has appended; 0 if it was not cut."""
    if column is None or len(column) <= limits.request:
        return column, 0
    size = column[limits.request :]
    is_cut = len(size) <= LONGEST_SIZE and size.isdigit()
    return column[: limits.request], int(size) if is_cut else len(column)


def _long_key(size: int) -> str:
    return f"the key has {size} bytes; a group id has at most {LONGEST_GROUP_ID_BYTES}"


def _group_id(key: bytes | None) -> str:
    if key is None:
        raise _InvalidRecord("key", Error.INVALID_REQUEST, "the record has no key; its key must be the group id")
    if len(key) > LONGEST_GROUP_ID_BYTES:
        raise _InvalidRecord("key", Error.INVALID_REQUEST, _long_key(len(key)))
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise _InvalidRecord("key", Error.INVALID_REQUEST, f"the key is not UTF-8: {error}") from None


def _envelope(value: bytes | None) -> RequestEnvelope:
    if value is None:
        raise _InvalidRecord("null-value", Error.INVALID_REQUEST, "the record has no value")
    try:
        return _envelope_decoder.decode(value)
    except msgspec.ValidationError as error:
        raise _InvalidRecord("envelope", Error.INVALID_REQUEST, f"not a request envelope: {error}") from None
    except UNREADABLE as error:
        raise _InvalidRecord("json", Error.INVALID_REQUEST, f"not JSON: {error}") from None


def _address(envelope: RequestEnvelope, record: KafkaRecord, response_partitions: int) -> ReplyAddress:
    if envelope.reply_partition >= response_partitions:
        reason = (
            f"replyPartition is {envelope.reply_partition}, but the responses topic has the partitions "
            f"0 to {response_partitions - 1}"
        )
        raise _InvalidRecord("reply-partition", Error.INVALID_REQUEST, reason)
    api = envelope.api[:LONGEST_API_NAME]
    return ReplyAddress(api, envelope.version, envelope.correlation_id, envelope.reply_partition, record.timestamp)


def _body(envelope: RequestEnvelope, group_id: str) -> RequestBody:
    if envelope.api == "ListGroups":
        reason = "ListGroups is not a request event: read the directory topic instead"
        raise _InvalidRecord("list-groups", Error.INVALID_REQUEST, reason)
    api = APIS.get(envelope.api)
    if api is None:
        reason = f"unknown api {envelope.api[:LONGEST_API_NAME]!r}; known: {', '.join(sorted(APIS))}"
        raise _InvalidRecord("api", Error.INVALID_REQUEST, reason)
    _check_version(api, envelope.version)
    try:
        body: RequestBody = _body_decoders[api.name].decode(envelope.body)
    except UNREADABLE as error:
        raise _InvalidRecord("body", Error.INVALID_REQUEST, f"not a {api.name} request: {error}") from None
    _check_key(body, envelope.version, group_id)
    return body


def _check_version(api: Api[Any, Any], version: int) -> None:
    if not api.min_version <= version <= api.max_version:
        reason = f"{api.name} version {version} is not served; versions {api.min_version} to {api.max_version} are"
        raise _InvalidRecord("version", Error.UNSUPPORTED_VERSION, reason)


def _check_key(body: RequestBody, version: int, key: str) -> None:
    """Check that the record's key, which selects the group's state, is the request's group.

    A request for several groups may have any key, since each entry is answered separately; so may FindCoordinator,
    which needs no state.
    """
    if isinstance(body, OffsetFetchRequest) and version >= OFFSET_FETCH_FIRST_VERSION_WITH_GROUPS:
        return
    group_id = getattr(body, "group_id", key)
    if group_id != key:
        reason = f"the record's key is {key!r}, but the request's groupId is {group_id!r}"
        raise _InvalidRecord("key", Error.INVALID_REQUEST, reason)


# --------------------------------------------------------------------------------------------------------------
# Writing


def response_row(
    topics: TopicNames, response: Response, batch_time: int, limits: Limits = DEFAULT_LIMITS, epoch: int = 0
) -> Row:
    """Write a response of the job with this epoch. Raises :class:`RowTooLarge`."""
    if (size := least_size(response.body)) > limits.row:
        raise _too_large(topics.responses, f"more than {size}", limits)
    address = response.address
    envelope = ResponseEnvelope(
        api=address.api,
        version=address.version,
        correlation_id=address.correlation_id,
        group_id=response.group_id,
        error_code=response.error_code,
        body=msgspec.Raw(_encoder.encode(response.body)),
        job_epoch=epoch,
    )
    return _within_limit(_response_row(topics, address, envelope, batch_time), limits)


def error_row(
    topics: TopicNames,
    address: ReplyAddress,
    group_id: str,
    error: Error,
    reason: str,
    now: int,
    limits: Limits = DEFAULT_LIMITS,
    epoch: int = 0,
) -> Row:
    """Write the response to a request that could not be handled: an error code and a message, without a body.

    A group id or a reason that does not fit is cut.
    """
    envelope = ResponseEnvelope(
        api=address.api,
        version=address.version,
        correlation_id=address.correlation_id,
        group_id=group_id,
        error_code=error,
        body=NO_BODY,
        error_message=reason[:LONGEST_REASON],
        job_epoch=epoch,
    )
    row = _response_row(topics, address, envelope, now)
    if len(row.key or b"") + len(row.value or b"") <= limits.row:
        return row
    longest = (limits.row - MIN_ROW_BYTES) // LONGEST_JSON_CHARACTER + LONGEST_GROUP_ID_BYTES
    return _response_row(topics, address, msgspec.structs.replace(envelope, group_id=group_id[:longest]), now)


def _response_row(topics: TopicNames, address: ReplyAddress, envelope: ResponseEnvelope, batch_time: int) -> Row:
    api = address.api if address.api in APIS else "unknown"
    measure = measures.of_response(api, envelope.error_code, batch_time - address.requested_at)
    return Row(
        topics.responses, address.reply_partition, address.correlation_id.encode(), _encoder.encode(envelope), measure
    )


def reject_row(topics: TopicNames, rejection: Rejection, limits: Limits = DEFAULT_LIMITS) -> Row:
    """Write the dead letter of a rejected record. A key or a value that does not fit is cut."""
    record, cut_from = rejection.record, rejection.cut_from
    if len(record.key or b"") + _base64_size(len(record.value or b"")) > limits.row - MIN_ROW_BYTES // 2:
        record, cut_from = _cut(record, cut_from, limits)
    dead_letter = DeadLetter(
        rejection.reason[:LONGEST_REASON],
        rejection.error,
        record.partition,
        record.offset,
        record.timestamp,
        record.value,
        cut_from.key,
        cut_from.value,
    )
    measure = measures.RejectedRecord(rejection.cause)
    return Row(topics.rejects, None, record.key, _encoder.encode(dead_letter), measure)


def _cut(record: KafkaRecord, cut_from: CutFrom, limits: Limits) -> tuple[KafkaRecord, CutFrom]:
    """Cut a record so that its dead letter fits: the key to the length that a group id can have, then the value."""
    key, value = record.key, record.value
    if key is not None and len(key) > LONGEST_GROUP_ID_BYTES:
        key, cut_from = key[:LONGEST_GROUP_ID_BYTES], cut_from._replace(key=cut_from.key or len(key))
    room = (limits.row - MIN_ROW_BYTES // 2 - len(key or b"")) // 4 * 3
    if value is not None and len(value) > room:
        value, cut_from = value[:room], cut_from._replace(value=cut_from.value or len(value))
    return record._replace(key=key, value=value), cut_from


def _base64_size(size: int) -> int:
    return (size + 2) // 3 * 4


def journal_row(topics: TopicNames, entry: JournalEntry, limits: Limits = DEFAULT_LIMITS, moved_back: int = 0) -> Row:
    """Write a journal entry, which made so many committed offsets lower. Raises :class:`RowTooLarge`."""
    if (size := least_size(entry.record)) > limits.row:
        raise _too_large(topics.journal, f"more than {size}", limits)
    measure = measures.of_entry(entry, moved_back)
    return _within_limit(Row(topics.journal, None, entry.group_id.encode(), _encoder.encode(entry), measure), limits)


def directory_row(
    topics: TopicNames, group_id: str, entry: GroupDirectoryEntry | None, limits: Limits = DEFAULT_LIMITS
) -> Row:
    """Write the group's directory entry; None writes the tombstone of a deleted group.

    Raises :class:`RowTooLarge`.
    """
    value = None if entry is None else _encoder.encode(entry)
    return _within_limit(Row(topics.directory, None, group_id.encode(), value, None), limits)


def _within_limit(row: Row, limits: Limits) -> Row:
    size = len(row.key or b"") + len(row.value or b"")
    if size > limits.row:
        raise _too_large(row.topic, str(size), limits)
    return row


def _too_large(topic: str, size: str, limits: Limits) -> RowTooLarge:
    return RowTooLarge(f"a record for {topic} has {size} bytes; the limit is {limits.row}")
