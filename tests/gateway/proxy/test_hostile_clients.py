"""While one client's large or many requests are processed, a bystander's heartbeats go on.

The tests count the bystander's responses instead of measuring their times: on a busy machine, the time of a heartbeat
says more about the machine than about the gateway.
"""

import threading

import pytest
from kio.schema.api_versions.v4.request import ApiVersionsRequest
from kio.schema.errors import ErrorCode
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.offset_commit.v8.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.static.primitive import i8, i32, i64

from streaming.gateway.wire.client_request import ServedApi
from streaming.gateway.wire.codec import encode_request
from tests.gateway.conftest import NewGateway
from tests.gateway.support.heartbeat_handlers import answer_at_once, heartbeat_api
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.requests import heartbeat, metadata
from tests.gateway.support.wire_client import ClosedByPeer, WireClient
from tests.support.waiting import wait_until

HEARTBEATS = 20
"""What the bystander gets answered, at least, while the hostile client waits."""

GROUP, TRANSACTION = 0, 1
OFFSET_COMMIT = 8
TINY_REQUESTS = 5_000


@pytest.fixture
def running(new_gateway: NewGateway) -> RunningGateway:
    commits = ServedApi("OffsetCommit", OFFSET_COMMIT, 2, 8, answer_at_once)
    return new_gateway({**heartbeat_api(answer_at_once), OFFSET_COMMIT: commits})


def find_coordinators(count: int, key_type: int = GROUP) -> bytes:
    keys = tuple(f"hostile-{number}" for number in range(count))
    return encode_request(FindCoordinatorRequest(key_type=i8(key_type), coordinator_keys=keys), 1, "hostile")


def commit_offsets(count: int) -> bytes:
    """An OffsetCommit that ends too early, so that only its decoding costs anything."""
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=i32(number),
            committed_offset=i64(number),
            committed_leader_epoch=i32(0),
            committed_metadata="",
        )
        for number in range(count)
    )
    topic = OffsetCommitRequestTopic(name="hostile", partitions=partitions)  # type: ignore[arg-type]
    request = OffsetCommitRequest(
        group_id="hostile",  # type: ignore[arg-type]
        generation_id_or_member_epoch=i32(1),
        member_id="",
        group_instance_id=None,
        topics=(topic,),
    )
    content = encode_request(request, 1, "hostile")[4:-2]
    return len(content).to_bytes(4, "big") + content


def api_versions() -> bytes:
    request = ApiVersionsRequest(client_software_name="hostile", client_software_version="1")
    return encode_request(request, 1, "hostile")


HOSTILE = {
    "90,000 keys of groups": (find_coordinators(90_000), 1),
    "1.7 MiB of partitions": (commit_offsets(95_000), 1),
    "pipelined tiny requests": (api_versions() * TINY_REQUESTS, TINY_REQUESTS),
}
"""What the hostile client sends, and how many responses there are, unless the gateway closes the connection."""


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_bystanders_heartbeats_are_answered_while_a_hostile_client_waits(running: RunningGateway, kind: str) -> None:
    frames, responses = HOSTILE[kind]
    is_served = threading.Event()
    with WireClient(running.port) as bystander, WireClient(running.port) as hostile:
        bystander.ask(heartbeat())

        def receive() -> None:
            try:
                for _ in range(responses):
                    hostile.receive_frame()
            except ClosedByPeer:
                pass
            is_served.set()

        receiving = threading.Thread(target=receive, daemon=True)
        receiving.start()
        hostile.send_bytes(frames)
        answered = 0
        while not is_served.is_set():
            assert bystander.ask(heartbeat()).error_code is ErrorCode.none
            answered += 1
        receiving.join()
    assert answered >= HEARTBEATS


def test_a_find_coordinator_with_many_keys_is_answered_once_for_each(running: RunningGateway) -> None:
    with WireClient(running.port) as client:
        keys = tuple(f"group-{number % 5000}" for number in range(10_000))
        request = FindCoordinatorRequest(key_type=i8(GROUP), coordinator_keys=keys)
        found = client.ask(request).coordinators
        assert [each.key for each in found] == list(dict.fromkeys(keys))
        assert {each.port for each in found} == {running.port}
        ids = FindCoordinatorRequest(key_type=i8(TRANSACTION), coordinator_keys=keys[:2000])
        # The rewritten response takes several slices, and those behind it keep their order.
        sent = [client.send(ids), client.send(metadata()), client.send(request), client.send(metadata())]
        answers = [client.receive(each) for each in (ids, metadata(), request, metadata())]
        assert [correlation_id for correlation_id, _ in answers] == sent
        assert [each.key for each in answers[0][1].coordinators] == list(keys[:2000])


def test_more_entries_than_allowed_close_the_connection(running: RunningGateway) -> None:
    with WireClient(running.port) as client:
        client.send_bytes(find_coordinators(100_001))
        assert client.is_closed_by_peer()


def test_a_refused_connection_stays_open_for_a_while_unread(new_gateway: NewGateway) -> None:
    running = new_gateway({}, {"refusal-delay-ms": 3_600_000})
    with WireClient(running.port) as refused, WireClient(running.port) as other:
        for _ in range(2):
            refused.send_bytes(find_coordinators(100_001))
            wait_until(lambda: running.metric("refused_frames_total", reason="too-many-entries") == 1, "refused once")
            other.ask(metadata())
        assert running.metric("connections") == 2


def test_an_api_may_allow_fewer_entries(new_gateway: NewGateway) -> None:
    commits = ServedApi("OffsetCommit", OFFSET_COMMIT, 2, 8, answer_at_once, max_entries=1_000)
    running = new_gateway({OFFSET_COMMIT: commits})
    with WireClient(running.port) as client:
        client.send_bytes(commit_offsets(1_001))
        assert client.is_closed_by_peer()
    assert running.metric("refused_frames_total", reason="too-many-entries") == 1
