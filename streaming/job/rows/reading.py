"""Read the requests in Kafka's records.

Reading never raises: every record of ``group-requests`` becomes a :class:`Request`, or a :class:`Rejection` with the
reason and, if it can be read, the address for the answer.
"""

from typing import NamedTuple

import msgspec

from coordinator_logic.apis import APIS, OFFSET_FETCH_FIRST_VERSION_WITH_GROUPS
from coordinator_logic.errors import Error
from coordinator_logic.events import Place, ReplyAddress, Request
from coordinator_logic.messages import OffsetFetchRequest, RequestBody, RequestEnvelope
from streaming.contract.identity import NO_KEYS, IdentityKeys, Signer
from streaming.contract.rights.group_acls import GroupAcls, operation_of, refusal_reason
from streaming.contract.topics import LONGEST_GROUP_ID_BYTES
from streaming.job.hostile_records.broken_envelopes import (
    LONGEST_API_NAME,
    UNREADABLE,
    address_in_broken_envelope,
    fields_before_cut,
)
from streaming.job.rows.records import DEFAULT_LIMITS, KafkaRecord, SizeLimits

NOT_AUTHORIZED = "authorization"
"""The cause of the rejection of a request that its sender may not send."""

LONGEST_SIZE = 10
"""The most digits of a size: Java's arrays have less than 2^31 bytes."""


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


_envelope_decoder = msgspec.json.Decoder(RequestEnvelope)
_body_decoders = {name: msgspec.json.Decoder(api.request_type) for name, api in APIS.items()}


class _InvalidRecord(Exception):
    """A record is not a valid request; :func:`read_request` catches it."""

    def __init__(self, cause: str, error: Error, reason: str) -> None:
        super().__init__(reason)
        self.cause = cause
        self.error = error


def read_request(
    record: KafkaRecord,
    response_partitions: int,
    limits: SizeLimits = DEFAULT_LIMITS,
    identity_keys: IdentityKeys = NO_KEYS,
    acls: GroupAcls | None = None,
) -> Request | Rejection:
    """Read the request in a record, or return the reason why it is not a valid request.

    ``response_partitions`` is the number of partitions of ``group-responses``; a reply partition must be one of them.
    ``identity_keys`` are the keys of those who sign, see :mod:`streaming.contract.identity`. ``acls`` are the rules
    about who may send what; None: everyone may send everything.
    """
    address: ReplyAddress | None = None
    try:
        group_id = _group_id(record.key)
        envelope = _envelope(record.value)
        address = _address(envelope, record, response_partitions)
        body = _body(envelope, group_id)
        signer = identity_keys.signer(envelope, group_id)
        if acls is not None:
            _authorize(acls, signer, envelope, body, group_id)
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
    return Request(place, address, client_id, client_host, body, envelope.principal, signer is not None)


def _rejected_cut_record(record: KafkaRecord, response_partitions: int, limits: SizeLimits) -> Rejection:
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


def _without_size(column: bytes | None, limits: SizeLimits) -> tuple[bytes | None, int]:
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
    if not api.min_version <= envelope.version <= api.max_version:
        versions = f"{api.min_version} to {api.max_version}"
        reason = f"{api.name} version {envelope.version} is not served; versions {versions} are"
        raise _InvalidRecord("version", Error.UNSUPPORTED_VERSION, reason)
    try:
        body: RequestBody = _body_decoders[api.name].decode(envelope.body)
    except UNREADABLE as error:
        raise _InvalidRecord("body", Error.INVALID_REQUEST, f"not a {api.name} request: {error}") from None
    _check_key(body, envelope.version, group_id)
    return body


def _authorize(
    acls: GroupAcls, signer: Signer | None, envelope: RequestEnvelope, body: RequestBody, group_id: str
) -> None:
    operation = operation_of(envelope.api, body)
    if not acls.may_send(signer, envelope.principal, operation, group_id):
        reason = refusal_reason(signer, envelope.principal, operation, group_id)
        raise _InvalidRecord(NOT_AUTHORIZED, Error.GROUP_AUTHORIZATION_FAILED, reason)


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
