"""No request of any API holds the gateway's event loop, whichever of its fields a client makes large.

Each request goes the way that it takes in a gateway, from the frame's bytes to those of the response, and the longest
callback of the event loop counts.
"""

import asyncio
import selectors
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import msgspec
import pytest
from kio.index import load_request_schema, load_response_schema

from coordinator_logic.apis import APIS, FIND_COORDINATOR, LIST_GROUPS
from coordinator_logic.errors import Error
from coordinator_logic.messages import Message, ResponseEnvelope
from streaming.gateway.groups.channel import RequestEvent
from streaming.gateway.proxy.find_coordinator import answer_for_groups
from streaming.gateway.wire.brokers import Address, Broker
from streaming.gateway.wire.client_request import Caller, ClientRequest
from streaming.gateway.wire.codec import MALFORMED, decode_request_in_steps, encode_request, encode_response_in_steps
from streaming.gateway.wire.frames import FrameRefused
from streaming.gateway.wire.loop_share import LoopShare
from tests.gateway.groups.driven.coordinator import Cluster, Gateway, LogicCoordinator
from tests.growth.growing_requests import Grown, grown_requests
from tests.growth.measured import TIMES, check_growth, longest_piece_seconds
from tests.growth.test_steps import CHARACTERS, ENTRIES, GROUP_ID, HOSTILE_PATTERNS, LONG_TOPICS, PLAIN
from tests.support.garbage import without_collections
from tests.support.wire_types import to_wire

CALLER = Caller("client", "10.0.0.1", "User:ANONYMOUS")
MAX_ENTRIES = 100_000
VALUES: Mapping[str, object] = {
    **PLAIN,
    "memberId": "member",
    "memberEpoch": 0,
    "topicPartitions": [],
    "generationId": 1,
    "generationIdOrMemberEpoch": 1,
}
GATEWAY_APIS = [api for api in (*APIS.values(), LIST_GROUPS) if api.key in Gateway(LogicCoordinator(), Cluster()).apis]


class MeasuredLoop(asyncio.SelectorEventLoop):
    """An event loop that knows the processor time of its longest callback, in seconds."""

    def __init__(self) -> None:
        super().__init__(selectors.SelectSelector())
        self.longest = 0.0

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Any = None
    ) -> asyncio.Handle:
        def measured() -> None:
            began = time.process_time()
            callback(*args)
            self.longest = max(self.longest, time.process_time() - began)

        return super().call_soon(measured, context=context)


class Coordinator(LogicCoordinator):
    """Answers every event that its group does not exist; the event is encoded as a gateway's channel does it."""

    def send(
        self, group_id: str, api: str, version: int, body: Message, caller: Caller, timeout: float
    ) -> RequestEvent:
        msgspec.json.encode(body)
        response: asyncio.Future[ResponseEnvelope] = asyncio.get_running_loop().create_future()
        event = RequestEvent(response)
        event.appended = True
        answer = ResponseEnvelope(api, version, "", group_id, Error.GROUP_ID_NOT_FOUND, msgspec.Raw(b"null"))
        response.set_result(answer)
        return event


def frame(api: Any, version: int, body: Any) -> bytes | None:
    """The frame of a request; None if the field cannot have that size on the wire."""
    message = msgspec.json.decode(msgspec.json.encode(body), type=api.request_type)
    try:
        return encode_request(to_wire(message, load_request_schema(api.key, version)), 1, "client")
    except MALFORMED:
        return None


async def answer(gateway: Gateway, api: Any, version: int, request: bytes) -> None:
    """Answer a request as a connection of a gateway does."""
    share = LoopShare(1.0)
    served = gateway.apis[api.key]
    max_entries = MAX_ENTRIES if served.max_entries is None else served.max_entries
    try:
        decoding = decode_request_in_steps(request, api.key, version, max_entries, served.message_type)
        client_id, payload = await share.complete(CALLER, decoding)
    except FrameRefused:
        return
    del client_id
    response = await served.handle(ClientRequest(CALLER, 1, api.key, version, payload))
    await share.complete(CALLER, encode_response_in_steps(response, 1, load_response_schema(api.key, version)))


def longest_callback(work: Callable[[], Any]) -> float:
    """The processor time of the longest callback of an event loop that runs a coroutine."""
    loop = MeasuredLoop()
    try:
        with without_collections():
            loop.run_until_complete(work())
            return loop.longest
    finally:
        loop.close()


def cluster(topics: int = ENTRIES) -> Cluster:
    """A cluster with many topics, for patterns."""
    made = Cluster()
    for topic in LONG_TOPICS[:topics]:
        made.create(topic["name"], 1)
    return made


@pytest.mark.parametrize("api", GATEWAY_APIS, ids=lambda api: api.name)
def test_no_field_of_a_request_holds_the_event_loop(api: Any) -> None:
    topics = cluster()
    version = Gateway(LogicCoordinator(), topics).apis[api.key].max_version
    wrong = {}
    for grown in grown_requests(api.request_type, VALUES):

        def measure(size: int, grown: Grown = grown) -> float:
            request = frame(api, version, grown.make(size))
            if request is None:
                return 0.0
            return longest_callback(lambda: answer(Gateway(Coordinator(), topics), api, version, request))

        try:
            found = check_growth(measure, ENTRIES if grown.is_list else CHARACTERS)
        except msgspec.ValidationError:
            continue
        if found is not None:
            wrong[grown.name] = found
    assert wrong == {}


@pytest.mark.parametrize("pattern", HOSTILE_PATTERNS)
def test_a_short_pattern_for_many_topics_does_not_hold_the_event_loop(pattern: str) -> None:
    api, topics = APIS["ConsumerGroupHeartbeat"], cluster(100)
    longest = float("inf")
    for run in range(3):
        # What a process remembers of a pattern does not count.
        joining = {"rebalanceTimeoutMs": 60_000, "topicPartitions": [], "subscribedTopicRegex": f"{pattern}|{run}"}
        request = frame(api, 1, {"groupId": GROUP_ID, "memberId": "m", "memberEpoch": 0, **joining})
        assert request is not None
        longest = min(longest, longest_callback(partial(answer, Gateway(Coordinator(), topics), api, 1, request)))
    assert longest <= longest_piece_seconds()


@pytest.mark.parametrize("field", ["one long key", "many keys"])
def test_find_coordinator_does_not_hold_the_event_loop(field: str) -> None:
    assert FIND_COORDINATOR.key is not None
    key, version = FIND_COORDINATOR.key, 4

    def measure(size: int) -> float:
        keys = ["k" * 10 * size] if field == "one long key" else [f"{GROUP_ID}-{number}" for number in range(size)]
        request = frame(FIND_COORDINATOR, version, {"key": "", "keyType": 0, "coordinatorKeys": keys})
        assert request is not None

        async def ask() -> None:
            share = LoopShare(1.0)
            _, payload = await share.complete(CALLER, decode_request_in_steps(request, key, version, MAX_ENTRIES))
            found = await share.complete(CALLER, answer_for_groups(payload, lambda _: Broker(1, Address("h", 1))))
            await share.complete(CALLER, encode_response_in_steps(cast("Any", found), 1))

        return longest_callback(ask)

    assert check_growth(measure, TIMES * ENTRIES) is None
