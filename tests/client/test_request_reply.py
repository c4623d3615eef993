"""Request and reply over real topics; the test writes the coordinator's answers."""

import threading

import msgspec
import pytest

from coordinator_logic.apis import HEARTBEAT
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    NO_BODY,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    ResponseEnvelope,
)
from coordinator_logic.partitioning import partition_for
from streaming.client import (
    CoordinatorClient,
    CoordinatorError,
    CoordinatorNotAvailable,
    MemberIdRequired,
    RebalanceInProgress,
    RequestTimedOut,
)
from streaming.client.announced_epoch import KEY
from streaming.embedded.broker import EmbeddedBroker
from tests.support.kafka_io import append
from tests.support.scripted_coordinator import ScriptedCoordinator
from tests.support.topics import unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

GROUP = "group"
BEAT = HeartbeatRequest(GROUP, 1, "m-1")


def test_a_request_is_appended_as_an_envelope_to_the_groups_partition(
    scripted: ScriptedCoordinator, client: CoordinatorClient
) -> None:
    client.send("grüppe", "Heartbeat", 4, {"groupId": "grüppe", "generationId": 7, "memberId": "m"})
    request = scripted.request("Heartbeat")
    assert scripted.placements[-1] == (partition_for("grüppe", 3), "grüppe".encode())
    assert (request.api, request.version, request.client_id) == ("Heartbeat", 4, "app")
    assert request.client_host
    assert bytes(request.body) == '{"groupId":"grüppe","generationId":7,"memberId":"m"}'.encode()


def test_answers_in_any_order_complete_their_own_requests(
    scripted: ScriptedCoordinator, client: CoordinatorClient
) -> None:
    futures = [client.send(GROUP, "Heartbeat", 4, BEAT) for _ in range(3)]
    requests = [scripted.request("Heartbeat") for _ in futures]
    for number, request in reversed(list(enumerate(requests))):
        scripted.answer(request, HeartbeatResponse(number), number)
    assert [future.result(LIMIT_SECONDS).error_code for future in futures] == [0, 1, 2]


def test_a_duplicate_answer_is_ignored(scripted: ScriptedCoordinator, client: CoordinatorClient) -> None:
    future = client.send(GROUP, "Heartbeat", 4, BEAT)
    request = scripted.request("Heartbeat")
    scripted.answer(request, HeartbeatResponse())
    scripted.answer(request, HeartbeatResponse(Error.UNKNOWN_MEMBER_ID), Error.UNKNOWN_MEMBER_ID)
    assert future.result(LIMIT_SECONDS).error_code == 0
    wait_until(lambda: client.channel.unmatched_answers == 1, "the duplicate answer is counted")


def test_an_answer_of_a_job_in_whose_place_another_one_has_answered_is_dropped(
    scripted: ScriptedCoordinator, client: CoordinatorClient, caplog: pytest.LogCaptureFixture
) -> None:
    announce_epoch(scripted, 7)
    first, second = client.send(GROUP, "Heartbeat", 4, BEAT), client.send(GROUP, "Heartbeat", 4, BEAT)
    requests = [scripted.request("Heartbeat"), scripted.request("Heartbeat")]
    scripted.answer(requests[0], HeartbeatResponse(), job_epoch=7)
    assert first.result(LIMIT_SECONDS).job_epoch == 7
    scripted.answer(requests[1], HeartbeatResponse(Error.UNKNOWN_MEMBER_ID), Error.UNKNOWN_MEMBER_ID, job_epoch=6)
    scripted.answer(requests[1], HeartbeatResponse(), job_epoch=7)
    assert second.result(LIMIT_SECONDS).error_code == Error.NONE
    # The older answer is held until the epoch is looked up.
    wait_until(
        lambda: any("epoch 6" in line and "epoch 7" in line for line in caplog.messages), "the older answer is dropped"
    )


def announce_epoch(scripted: ScriptedCoordinator, epoch: int) -> None:
    """Let a job announce itself as the active one."""
    append(scripted.bootstrap_servers, scripted.topics.coordinators, (KEY, b'{"epoch": %d}' % epoch))


def test_a_false_epoch_silences_no_client(scripted: ScriptedCoordinator, client: CoordinatorClient) -> None:
    announce_epoch(scripted, 7)
    for false_epoch in (2**40, 2**41):
        future = client.send(GROUP, "Heartbeat", 4, BEAT)
        request = scripted.request("Heartbeat")
        # Whoever may write to the topic of responses can name any epoch; the correlation id is nobody's.
        forged = ResponseEnvelope("Heartbeat", 4, "forged", GROUP, 0, NO_BODY, job_epoch=false_epoch)
        scripted.append(msgspec.json.encode(forged), request.reply_partition)
        scripted.answer(request, HeartbeatResponse(), job_epoch=7)
        assert future.result(LIMIT_SECONDS).error_code == Error.NONE
    assert client.channel.outdated_answers == 0


@pytest.mark.parametrize("garbage", [b"not json", b"{}", b"\xff\xfe", b"[]", None, b'{"api": 1}'])
def test_a_record_that_is_not_an_answer_is_ignored(
    scripted: ScriptedCoordinator, client: CoordinatorClient, garbage: bytes | None
) -> None:
    future = client.send(GROUP, "Heartbeat", 4, BEAT)
    request = scripted.request("Heartbeat")
    scripted.append(garbage, request.reply_partition)
    scripted.answer(request, HeartbeatResponse())
    assert future.result(LIMIT_SECONDS).error_code == 0
    assert client.channel.unreadable_answers == 1


def test_a_new_client_does_not_read_earlier_answers(scripted: ScriptedCoordinator) -> None:
    for partition in range(3):
        scripted.append(b"from long ago", partition)
    with CoordinatorClient(scripted.bootstrap_servers, topic_prefix=scripted.topics.prefix) as client:
        future = client.send(GROUP, "Heartbeat", 4, BEAT)
        scripted.answer(scripted.request("Heartbeat"), HeartbeatResponse())
        assert future.result(LIMIT_SECONDS).error_code == 0
        assert client.channel.unreadable_answers == 0


def test_a_request_without_an_answer_times_out_with_a_retriable_error(
    scripted: ScriptedCoordinator, client: CoordinatorClient
) -> None:
    first = client.ask(HEARTBEAT, GROUP, BEAT)
    scripted.answer(scripted.request("Heartbeat"), HeartbeatResponse())
    first.result(LIMIT_SECONDS)
    future = client.ask(HEARTBEAT, GROUP, BEAT, timeout_ms=4_000)
    request = scripted.request("Heartbeat")
    with pytest.raises(RequestTimedOut, match=r"Heartbeat for group 'group' is in topic .* 4 s") as raised:
        future.result(LIMIT_SECONDS)
    assert raised.value.retriable
    scripted.answer(request, HeartbeatResponse())
    wait_until(lambda: client.channel.unmatched_answers == 1, "the late answer is counted and ignored")


def test_error_codes_become_exceptions_under_kafkas_names(
    scripted: ScriptedCoordinator, client: CoordinatorClient
) -> None:
    def beat(error_code: int) -> CoordinatorError:
        future = client.ask(HEARTBEAT, GROUP, BEAT)
        scripted.answer(scripted.request("Heartbeat"), HeartbeatResponse(error_code), error_code)
        with pytest.raises(CoordinatorError) as raised:
            future.result(LIMIT_SECONDS).unwrap()
        return raised.value

    assert isinstance(beat(27), RebalanceInProgress)
    assert beat(27).retriable is False
    loading = beat(14)
    assert (loading.error, loading.retriable) == (Error.COORDINATOR_LOAD_IN_PROGRESS, True)
    assert str(loading) == "COORDINATOR_LOAD_IN_PROGRESS: Heartbeat for group 'group'"
    unknown = beat(12345)
    assert unknown.error is Error.UNKNOWN_SERVER_ERROR
    assert "12345" in str(unknown)


def test_member_id_required_carries_the_member_id(scripted: ScriptedCoordinator, client: CoordinatorClient) -> None:
    raised: list[MemberIdRequired] = []

    def join() -> None:
        with pytest.raises(MemberIdRequired) as required:
            client.join_group(JoinGroupRequest(GROUP, 10_000, "consumer", []))
        raised.append(required.value)

    joiner = threading.Thread(target=join)
    joiner.start()
    scripted.refuse_join(Error.MEMBER_ID_REQUIRED, "m-9")
    joiner.join(LIMIT_SECONDS)
    assert isinstance(raised[0].body, JoinGroupResponse)
    assert raised[0].body.member_id == "m-9"


def test_the_answer_to_an_unreadable_request_has_no_body(
    scripted: ScriptedCoordinator, client: CoordinatorClient
) -> None:
    future = client.ask(HEARTBEAT, GROUP, BEAT)
    scripted.answer(scripted.request("Heartbeat"), None, Error.INVALID_REQUEST)
    answer = future.result(LIMIT_SECONDS)
    assert answer.body is None
    assert answer.error is Error.INVALID_REQUEST


def test_close_fails_outstanding_requests_and_ends_the_thread(scripted: ScriptedCoordinator) -> None:
    prefix = scripted.topics.prefix
    client = CoordinatorClient(scripted.bootstrap_servers, topic_prefix=prefix, client_id=unique("closing"))
    future = client.send(GROUP, "Heartbeat", 4, BEAT)
    scripted.request("Heartbeat")
    client.close()
    client.close()
    with pytest.raises(CoordinatorNotAvailable, match="the client was closed"):
        future.result(0)
    with pytest.raises(CoordinatorNotAvailable, match="the client is closed"):
        client.send(GROUP, "Heartbeat", 4, BEAT)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(client.client_id)]


def test_missing_topics_are_named(broker: EmbeddedBroker) -> None:
    with pytest.raises(CoordinatorNotAvailable, match="topic 'missing-group-requests' does not exist"):
        CoordinatorClient(broker.bootstrap_servers, topic_prefix="missing-")


def test_an_unreachable_broker_is_named() -> None:
    problem = r"Kafka at 127\.0\.0\.1:1 does not answer: no broker reported the partitions of topic"
    with pytest.raises(CoordinatorNotAvailable, match=problem):
        CoordinatorClient("127.0.0.1:1", request_timeout_ms=500)
