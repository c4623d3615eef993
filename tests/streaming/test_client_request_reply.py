"""Request and reply over two real topics, with the test on the coordinator's side."""

import threading
from collections.abc import Iterator

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.messages import HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse
from coordinator_logic.partitioning import partition_for
from streaming.broker import EmbeddedBroker
from streaming.client import (
    CoordinatorClient,
    CoordinatorError,
    CoordinatorNotAvailable,
    MemberIdRequired,
    RebalanceInProgress,
    RequestTimedOut,
)
from streaming.client.apis import HEARTBEAT
from tests.streaming.client_support import PlayedCoordinator, unique, wait_until

GROUP = "group"
BEAT = HeartbeatRequest(GROUP, 1, "m-1")


@pytest.fixture(scope="module")
def played(broker: EmbeddedBroker) -> Iterator[PlayedCoordinator]:
    coordinator = PlayedCoordinator(broker.bootstrap_servers)
    yield coordinator
    coordinator.close()


@pytest.fixture
def client(played: PlayedCoordinator) -> Iterator[CoordinatorClient]:
    with CoordinatorClient(played.bootstrap_servers, topic_prefix=played.topics.prefix, client_id="app") as client:
        yield client


def test_a_request_is_an_envelope_in_the_groups_partition(played: PlayedCoordinator, client: CoordinatorClient) -> None:
    client.send("grüppe", "Heartbeat", 4, {"groupId": "grüppe", "generationId": 7, "memberId": "m"})
    request = played.request("Heartbeat")
    assert played.places[-1] == (partition_for("grüppe", 3), "grüppe".encode())
    assert (request.api, request.version, request.client_id) == ("Heartbeat", 4, "app")
    assert request.client_host
    assert bytes(request.body) == '{"groupId":"grüppe","generationId":7,"memberId":"m"}'.encode()


def test_answers_find_their_requests_in_any_order(played: PlayedCoordinator, client: CoordinatorClient) -> None:
    futures = [client.send(GROUP, "Heartbeat", 4, BEAT) for _ in range(3)]
    requests = [played.request("Heartbeat") for _ in futures]
    for number, request in reversed(list(enumerate(requests))):
        played.answer(request, HeartbeatResponse(number), number)
    assert [future.result(10).error_code for future in futures] == [0, 1, 2]


def test_an_answer_that_comes_twice_counts_once(played: PlayedCoordinator, client: CoordinatorClient) -> None:
    future = client.send(GROUP, "Heartbeat", 4, BEAT)
    request = played.request("Heartbeat")
    played.answer(request, HeartbeatResponse())
    played.answer(request, HeartbeatResponse(Error.UNKNOWN_MEMBER_ID), Error.UNKNOWN_MEMBER_ID)
    assert future.result(10).error_code == 0
    wait_until(lambda: client.channel.unclaimed_answers == 1, "the repeated answer is seen")


@pytest.mark.parametrize("rubbish", [b"not json", b"{}", b"\xff\xfe", b"[]", None, b'{"api": 1}'])
def test_a_record_that_is_no_answer_is_passed_over(
    played: PlayedCoordinator, client: CoordinatorClient, rubbish: bytes | None
) -> None:
    future = client.send(GROUP, "Heartbeat", 4, BEAT)
    request = played.request("Heartbeat")
    played.append(rubbish, request.reply_partition)
    played.answer(request, HeartbeatResponse())
    assert future.result(10).error_code == 0
    assert client.channel.unreadable_answers == 1


def test_what_was_answered_before_is_not_read(played: PlayedCoordinator) -> None:
    for partition in range(3):
        played.append(b"from long ago", partition)
    with CoordinatorClient(played.bootstrap_servers, topic_prefix=played.topics.prefix) as client:
        future = client.send(GROUP, "Heartbeat", 4, BEAT)
        played.answer(played.request("Heartbeat"), HeartbeatResponse())
        assert future.result(10).error_code == 0
        assert client.channel.unreadable_answers == 0


def test_no_answer_in_time_is_an_error_that_may_be_retried(
    played: PlayedCoordinator, client: CoordinatorClient
) -> None:
    first = client.ask(HEARTBEAT, GROUP, BEAT)
    played.answer(played.request("Heartbeat"), HeartbeatResponse())
    first.result(10)
    future = client.ask(HEARTBEAT, GROUP, BEAT, timeout_ms=4_000)
    request = played.request("Heartbeat")
    with pytest.raises(RequestTimedOut, match=r"Heartbeat for group 'group' is in topic .* 4 s") as raised:
        future.result(10)
    assert raised.value.retriable
    played.answer(request, HeartbeatResponse())
    wait_until(lambda: client.channel.unclaimed_answers == 1, "the late answer is seen and ignored")


def test_error_codes_become_exceptions_under_kafkas_names(played: PlayedCoordinator, client: CoordinatorClient) -> None:
    def beat(error_code: int) -> CoordinatorError:
        future = client.ask(HEARTBEAT, GROUP, BEAT)
        played.answer(played.request("Heartbeat"), HeartbeatResponse(error_code), error_code)
        with pytest.raises(CoordinatorError) as raised:
            future.result(10).unwrap()
        return raised.value

    assert isinstance(beat(27), RebalanceInProgress)
    assert beat(27).retriable is False
    loading = beat(14)
    assert (loading.error, loading.retriable) == (Error.COORDINATOR_LOAD_IN_PROGRESS, True)
    assert str(loading) == "COORDINATOR_LOAD_IN_PROGRESS: Heartbeat for group 'group'"
    unheard_of = beat(12345)
    assert unheard_of.error is Error.UNKNOWN_SERVER_ERROR
    assert "12345" in str(unheard_of)


def test_the_member_id_comes_with_member_id_required(played: PlayedCoordinator, client: CoordinatorClient) -> None:
    raised: list[MemberIdRequired] = []

    def join() -> None:
        with pytest.raises(MemberIdRequired) as required:
            client.join_group(JoinGroupRequest(GROUP, 10_000, "consumer", []))
        raised.append(required.value)

    joiner = threading.Thread(target=join)
    joiner.start()
    played.refuses_join(Error.MEMBER_ID_REQUIRED, "m-9")
    joiner.join(10)
    assert isinstance(raised[0].body, JoinGroupResponse)
    assert raised[0].body.member_id == "m-9"


def test_a_request_that_was_not_understood_has_an_answer_without_a_body(
    played: PlayedCoordinator, client: CoordinatorClient
) -> None:
    future = client.ask(HEARTBEAT, GROUP, BEAT)
    played.answer(played.request("Heartbeat"), None, Error.INVALID_REQUEST)
    answer = future.result(10)
    assert answer.body is None
    assert answer.error is Error.INVALID_REQUEST


def test_closing_fails_what_still_waits_and_ends_the_thread(played: PlayedCoordinator) -> None:
    client = CoordinatorClient(played.bootstrap_servers, topic_prefix=played.topics.prefix, client_id=unique("closing"))
    future = client.send(GROUP, "Heartbeat", 4, BEAT)
    played.request("Heartbeat")
    client.close()
    client.close()
    with pytest.raises(CoordinatorNotAvailable, match="the client was closed"):
        future.result(0)
    with pytest.raises(CoordinatorNotAvailable, match="the client is closed"):
        client.send(GROUP, "Heartbeat", 4, BEAT)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(client.client_id)]


def test_missing_topics_are_named(broker: EmbeddedBroker) -> None:
    with pytest.raises(CoordinatorNotAvailable, match="topic 'nobody-group-requests' does not exist"):
        CoordinatorClient(broker.bootstrap_servers, topic_prefix="nobody-")


def test_a_broker_that_is_not_there_is_named() -> None:
    with pytest.raises(
        CoordinatorNotAvailable, match=r"Kafka at 127\.0\.0\.1:1: no broker told the partitions of topic"
    ):
        CoordinatorClient("127.0.0.1:1", request_timeout_ms=500)
