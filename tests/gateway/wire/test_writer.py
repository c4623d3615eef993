"""Writing in steps gives what kio writes in one call."""

import dataclasses
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.find_coordinator.v4.response import Coordinator, FindCoordinatorResponse

from streaming.gateway.security.internal_topics.refusals import GUARDED_APIS
from streaming.gateway.wire.codec import (
    KNOWN_VERSIONS,
    encode_request_in_steps,
    encode_response_in_steps,
)
from streaming.gateway.wire.steps import ENTRIES_PER_STEP, LazyList, run_steps
from tests.gateway.support.entities import filled_entity
from tests.gateway.wire.test_reader import DECODED, NAMES, repeated
from tests.support.wire_types import written_by_kio


def response_by_kio(response: Any, correlation_id: int) -> bytes:
    return framed(written_by_kio(response.__header_schema__(correlation_id=correlation_id)) + written_by_kio(response))


def request_by_kio(request: Any, correlation_id: int, client_id: str) -> bytes:
    header = request.__header_schema__(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return framed(written_by_kio(header) + written_by_kio(request))


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def emptied(response: Any) -> Any:
    """The response without array items, and with null where that is possible."""
    empty: dict[str, Any] = {}
    for field in dataclasses.fields(response):
        value = getattr(response, field.name)
        if isinstance(value, tuple):
            empty[field.name] = ()
        if "None" in str(field.type):
            empty[field.name] = None
    return dataclasses.replace(response, **empty)


@pytest.mark.parametrize(("key", "version"), DECODED, ids=NAMES)
def test_writing_in_steps_gives_what_kio_writes(key: int, version: int) -> None:
    filled: Any = filled_entity(load_response_schema(key, version))
    for response in (filled, repeated(filled, 12), emptied(filled)):
        assert run_steps(encode_response_in_steps(response, -7)) == response_by_kio(response, -7)


GUARDED = [
    (key, version)
    for key in sorted(GUARDED_APIS)
    for version in range(KNOWN_VERSIONS[key][0], KNOWN_VERSIONS[key][1] + 1)
]
"""The requests of which the gateway may pass on a part, and whose responses it completes."""


@pytest.mark.parametrize(("key", "version"), GUARDED)
def test_a_request_whose_topics_are_refused_in_part_is_written_as_kio_writes_it(key: int, version: int) -> None:
    request: Any = filled_entity(load_request_schema(key, version))
    response: Any = filled_entity(load_response_schema(key, version))
    for each in (request, repeated(request, 12), emptied(request)):
        assert run_steps(encode_request_in_steps(each, 7, "client")) == request_by_kio(each, 7, "client")
    for each in (response, repeated(response, 12), emptied(response)):
        assert run_steps(encode_response_in_steps(each, 7)) == response_by_kio(each, 7)


def test_a_step_writes_a_fixed_number_of_entries() -> None:
    response = filled_entity(FindCoordinatorResponse)
    coordinators = (filled_entity(Coordinator),) * (10 * ENTRIES_PER_STEP)
    steps = encode_response_in_steps(dataclasses.replace(response, coordinators=coordinators), 1)
    assert sum(1 for _ in steps) == 10


def test_entries_of_a_lazy_list_are_made_when_they_are_written() -> None:
    coordinator, count, made = filled_entity(Coordinator), 10 * ENTRIES_PER_STEP, 0

    def make(_number: int) -> Any:
        nonlocal made
        made += 1
        return coordinator

    response: Any = dataclasses.replace(filled_entity(FindCoordinatorResponse), coordinators=(coordinator,) * count)
    lazy: Any = dataclasses.replace(response, coordinators=LazyList(range(count), make))
    steps = encode_response_in_steps(lazy, 1)
    for number in range(1, 11):
        next(steps)
        assert made == number * ENTRIES_PER_STEP
    with pytest.raises(StopIteration) as finished:
        next(steps)
    assert finished.value.value == response_by_kio(response, 1)
