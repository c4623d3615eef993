"""Unknown tagged fields are skipped, and reading in steps gives what kio reads in one call."""

import resource
from dataclasses import fields, is_dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.describe_transactions.v0.response import DescribeTransactionsResponse
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.serial.errors import BufferUnderflow

from coordinator_logic.messages import OffsetCommitRequest
from streaming.gateway.proxy.api_policy import API_POLICIES, Treatment
from streaming.gateway.wire.api_keys import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    FIND_COORDINATOR,
    METADATA,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    api_name,
)
from streaming.gateway.wire.codec import (
    KNOWN_VERSIONS,
    decode_request,
    decode_request_in_steps,
    decode_response,
    encode_request,
    encode_response,
)
from streaming.gateway.wire.frames import ByteBuffer, FrameRefused, RefusalReason, parse_acks, parse_request_head
from streaming.gateway.wire.layout import layout_of
from streaming.gateway.wire.reader import FrameReader, TooManyEntries
from streaming.gateway.wire.steps import ENTRIES_PER_STEP, Steps, run_steps
from tests.gateway.support.entities import filled_entity
from tests.gateway.support.requests import produce
from tests.gateway.wire.tagged_fields import with_unknown_tags
from tests.support.wire_types import read_entity, written_by_kio

DESCRIBE_ACLS = 29
OFFSET_COMMIT_KEY = 8

LONGEST_MS, SHORTEST_MS = (limit // timedelta(milliseconds=1) for limit in (timedelta.max, timedelta.min))

DECODED = [
    (key, version)
    for key, policy in sorted(API_POLICIES.items())
    if policy.treatment in (Treatment.SERVED, Treatment.RELAYED, Treatment.ANSWERED)
    for version in range(KNOWN_VERSIONS[key][0], KNOWN_VERSIONS[key][1] + 1)
]
"""Every version of every API whose requests the gateway decodes."""

REWRITTEN = [
    (key, version)
    for key in (
        METADATA,
        DESCRIBE_CLUSTER,
        FIND_COORDINATOR,
        SASL_HANDSHAKE,
        SASL_AUTHENTICATE,
        API_VERSIONS,
        DESCRIBE_ACLS,
    )
    for version in range(KNOWN_VERSIONS[key][0], KNOWN_VERSIONS[key][1] + 1)
]
"""Every version of every API whose responses from a broker the gateway decodes."""

NAMES = [f"{api_name(key)}-v{version}" for key, version in DECODED]
CLIENT_ID = "client"


def repeated(entity: Any, times: int) -> Any:
    """The entity with each of its arrays, and those within, repeated."""
    changed: dict[str, Any] = {}
    for field in fields(entity):
        value = getattr(entity, field.name)
        if isinstance(value, tuple):
            changed[field.name] = tuple(repeated(item, times) if is_dataclass(item) else item for item in value) * times
    return replace(entity, **changed)


@pytest.mark.parametrize(("key", "version"), DECODED, ids=NAMES)
def test_unknown_tagged_fields_of_a_request_are_skipped_everywhere(key: int, version: int) -> None:
    request_type: Any = load_request_schema(key, version)
    request = repeated(filled_entity(request_type), 3)
    frame = encode_request(request, 7, CLIENT_ID)
    tagged = with_unknown_tags(frame, request_type)
    assert (tagged != frame) is request_type.__flexible__
    assert decode_request(tagged, key, version) == (CLIENT_ID, request)
    assert run_steps(decode_request_in_steps(tagged, key, version, 1000)) == (CLIENT_ID, request)


@pytest.mark.parametrize(("key", "version"), REWRITTEN, ids=lambda value: str(value))
def test_unknown_tagged_fields_of_a_brokers_response_are_skipped_everywhere(key: int, version: int) -> None:
    response_type: Any = load_response_schema(key, version)
    response = repeated(filled_entity(response_type), 2)
    tagged = with_unknown_tags(encode_response(response, 7), response_type)
    assert decode_response(tagged, key, version) == response


@pytest.mark.parametrize(("key", "version"), DECODED, ids=NAMES)
def test_reading_in_steps_gives_what_kio_reads_in_one_call(key: int, version: int) -> None:
    request = repeated(filled_entity(load_request_schema(key, version)), 12)
    frame = encode_request(request, 7, CLIENT_ID)
    assert run_steps(decode_request_in_steps(frame, key, version, 10_000)) == (CLIENT_ID, request)


@pytest.mark.parametrize(("key", "version"), DECODED, ids=NAMES)
def test_a_response_is_read_as_it_was_written(key: int, version: int) -> None:
    response = repeated(filled_entity(load_response_schema(key, version)), 3)
    assert read_entity(type(response), written_by_kio(response)) == response


@pytest.mark.parametrize(("key", "version"), DECODED, ids=NAMES)
def test_a_truncated_request_is_refused_at_every_length(key: int, version: int) -> None:
    request_type: Any = load_request_schema(key, version)
    frame = with_unknown_tags(encode_request(filled_entity(request_type), 7, CLIENT_ID), request_type)
    for size in range(4, len(frame)):
        with pytest.raises(FrameRefused) as refused:
            decode_request(frame[:size], key, version)
        assert refused.value.reason is RefusalReason.UNDECODABLE


@pytest.mark.parametrize("version", range(9, KNOWN_VERSIONS[PRODUCE][1] + 1))
def test_acks_are_parsed_behind_unknown_tagged_fields_of_the_header(version: int) -> None:
    request = produce(version, acks=1, transactional_id="t")
    frame = with_unknown_tags(encode_request(request, 7, CLIENT_ID), type(request))
    received = ByteBuffer()
    read = []
    for byte in frame:
        received.feed(bytes([byte]))
        if (head := parse_request_head(received, 1_000_000)) is not None:
            read.append(parse_acks(received, head))
    known_from = read.index(1)
    assert set(read[:known_from]) == {None}
    assert set(read[known_from:]) == {1}


def test_a_description_of_transactions_is_read_as_it_was_written() -> None:
    response: Any = repeated(filled_entity(DescribeTransactionsResponse), 2)
    assert decode_response(encode_response(response, 7), response.__api_key__, 0) == response


def test_a_description_of_transactions_may_have_no_start() -> None:
    filled: Any = filled_entity(DescribeTransactionsResponse)
    states = tuple(replace(each, transaction_start_time=None) for each in filled.transaction_states)
    response: Any = replace(filled, transaction_states=states)
    frame = encode_response(response, 7)
    assert (-1).to_bytes(8, signed=True) in frame
    assert decode_response(frame, response.__api_key__, 0) == response


# ---- steps -------------------------------------------------------------------------------------------------------


def read_in_steps(entity_type: Any, content: bytes, max_entries: int) -> Steps[Any]:
    return FrameReader(content, 0, max_entries).entity(layout_of(entity_type, entity_type))


def test_a_step_reads_a_fixed_number_of_entries() -> None:
    request = FindCoordinatorRequest(
        coordinator_keys=tuple(f"group-{number}" for number in range(10 * ENTRIES_PER_STEP))
    )
    steps = read_in_steps(FindCoordinatorRequest, written_by_kio(request), 1_000_000)
    assert sum(1 for _ in steps) == 10


def test_more_entries_than_allowed_are_refused_before_any_is_read() -> None:
    content = written_by_kio(FindCoordinatorRequest(coordinator_keys=("group",) * 1001))
    assert run_steps(read_in_steps(FindCoordinatorRequest, content, 1001))
    steps = read_in_steps(FindCoordinatorRequest, content, 1000)
    with pytest.raises(TooManyEntries):
        next(steps)


def test_entries_count_together_however_they_are_nested() -> None:
    offset_commit: Any = load_request_schema(8, 8)
    content = written_by_kio(repeated(filled_entity(offset_commit), 10))
    run_steps(read_in_steps(offset_commit, content, 110))
    with pytest.raises(TooManyEntries):
        run_steps(read_in_steps(offset_commit, content, 109))


def test_tagged_fields_count_as_entries() -> None:
    content = written_by_kio(FindCoordinatorRequest())[:-1] + b"\xff\xff\x7f" + b"\x05\x00" * ((1 << 21) - 1)
    with pytest.raises(TooManyEntries):
        next(read_in_steps(FindCoordinatorRequest, content, 1000))


@pytest.mark.parametrize(
    "tags", [b"\x01", b"\x01\x05", b"\x01\x05\x02a", b"\x02\x05\x01a", b"\x01\x05\xff\xff\xff\xff\x0f"]
)
def test_tagged_fields_that_end_after_the_frame_are_refused(tags: bytes) -> None:
    with pytest.raises(BufferUnderflow):
        read_entity(FindCoordinatorRequest, written_by_kio(FindCoordinatorRequest())[:-1] + tags)


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x08", b"\xff\xff\xff\xff\xff"])
@pytest.mark.parametrize("before", [b"", b"\x02"], ids=["array", "string"])
def test_an_absurd_length_reserves_no_memory(length: bytes, before: bytes) -> None:
    content = b"\x00\x0a\x00\x04" + bytes(4) + b"\xff\xff\x00" + b"\x00" + before + length
    frame = len(content).to_bytes(4, "big") + content
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(100):
        with pytest.raises(FrameRefused) as refused:
            decode_request(frame, 10, 4)
        assert refused.value.reason is RefusalReason.UNDECODABLE
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident < 10_000


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    ("sent_ms", "read_ms"), [(-1, -1), (60_000, 60_000), (2**63 - 1, LONGEST_MS), (-(2**63), SHORTEST_MS)]
)
def test_a_retention_time_of_any_length_is_read(version: int, sent_ms: int, read_ms: int) -> None:
    request = filled_entity(load_request_schema(OFFSET_COMMIT_KEY, version))
    marker = timedelta(milliseconds=0x0102030405)
    frame = encode_request(replace(request, retention_time=marker), 1, "client")
    encoded = (marker // timedelta(milliseconds=1)).to_bytes(8)
    assert frame.count(encoded) == 1
    sent = frame.replace(encoded, sent_ms.to_bytes(8, signed=True))
    _, payload = decode_request(sent, OFFSET_COMMIT_KEY, version, OffsetCommitRequest)
    assert payload.retention_time_ms == read_ms
    _, payload = decode_request(sent, OFFSET_COMMIT_KEY, version)
    assert payload.retention_time == timedelta(milliseconds=read_ms)
