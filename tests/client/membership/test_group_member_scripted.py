"""The requests and callbacks of a member, against a coordinator whose answers the test writes."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.messages import JoinedMember, JoinGroupResponse, LeaveGroupResponse
from streaming.client import (
    CoordinatorClient,
    CoordinatorError,
    FencedInstanceId,
    Generation,
    GroupMember,
    MemberCallbacks,
    MemberConfig,
    MemberEvent,
    MemberEventKind,
)
from streaming.embedded.broker import EmbeddedBroker
from tests.support.scripted_coordinator import ScriptedCoordinator, body_of
from tests.support.waiting import LIMIT_SECONDS, wait_until


class Worker(MemberCallbacks):
    """Records its calls and events."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.events: list[MemberEvent] = []

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        return [("p", b"\x00\xffmetadata"), ("q", b"")]

    def assign(self, protocol_name: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        self.calls.append(f"assign {protocol_name}")
        return {"m-1": b"everything"}

    def on_assigned(self, generation: Generation, assignment: bytes) -> None:
        self.calls.append(f"assigned {generation.generation_id} {assignment.decode()}")

    def on_revoked(self, *, leaving: bool) -> None:
        self.calls.append("leaving" if leaving else "revoked")

    def on_lost(self) -> None:
        self.calls.append("lost")

    def saw(self, kind: MemberEventKind) -> bool:
        return any(event.kind is kind for event in self.events)


class Polled:
    """A member that is polled on a thread, as an application polls it."""

    def __init__(
        self, scripted: ScriptedCoordinator, *, instance_id: str | None = None, rebalance_timeout_ms: int = 60_000
    ) -> None:
        self.worker = Worker()
        self.failures: list[Exception] = []
        self.client = CoordinatorClient(
            scripted.bootstrap_servers, topic_prefix=scripted.topics.prefix, request_timeout_ms=2 * 60_000
        )
        self.member = GroupMember(
            self.client,
            self.worker,
            MemberConfig(
                group_id="group",
                protocol_type="connect",
                group_instance_id=instance_id,
                session_timeout_ms=10_000,
                rebalance_timeout_ms=rebalance_timeout_ms,
                heartbeat_interval_ms=100,
                retry_backoff_ms=10,
            ),
            self.worker.events.append,
        )
        self.polling = threading.Event()
        self.polling.set()
        self._ended = False
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._ended:
            if not self.polling.wait(0.1):
                continue
            try:
                self.member.poll(0.05)
            except CoordinatorError as failure:
                self.failures.append(failure)
                time.sleep(0.05)

    def end_polling(self) -> None:
        self._ended = True
        self._thread.join()

    def close(self) -> None:
        """Close the client first: nothing answers the LeaveGroup of a member."""
        self.end_polling()
        self.client.close()
        self.member.close()


@pytest.fixture
def scripted(broker: EmbeddedBroker) -> Iterator[ScriptedCoordinator]:
    coordinator = ScriptedCoordinator(broker.bootstrap_servers, partitions=1)
    yield coordinator
    coordinator.close()


@pytest.fixture
def polled(scripted: ScriptedCoordinator) -> Iterator[Polled]:
    member = Polled(scripted)
    yield member
    member.close()


def stable(scripted: ScriptedCoordinator) -> None:
    """Bring the member into generation 1 as m-1."""
    scripted.accept_join()
    scripted.answer_sync()


def test_a_member_rejoins_with_the_id_from_member_id_required_and_a_reason(
    scripted: ScriptedCoordinator, polled: Polled
) -> None:
    first = scripted.refuse_join(Error.MEMBER_ID_REQUIRED, "m-1")
    assert first == {
        "groupId": "group",
        "sessionTimeoutMs": 10_000,
        "protocolType": "connect",
        "protocols": [{"name": "p", "metadata": "AP9tZXRhZGF0YQ=="}, {"name": "q", "metadata": ""}],
        "rebalanceTimeoutMs": 60_000,
        "memberId": "",
        "groupInstanceId": None,
        "reason": None,
        "topics": [],
    }
    again = scripted.accept_join()
    assert again["memberId"] == "m-1"
    assert again["reason"] == "need to re-join with the given member-id: m-1"
    assert scripted.answer_sync() == {
        "groupId": "group",
        "generationId": 1,
        "memberId": "m-1",
        "groupInstanceId": None,
        "protocolType": "connect",
        "protocolName": "p",
        "assignments": [{"memberId": "m-1", "assignment": "ZXZlcnl0aGluZw=="}],
        "assignmentsTooLarge": False,
    }
    wait_until(lambda: polled.worker.calls == ["assign p", "assigned 1 everything"], "the member is assigned")
    assert polled.member.generation == Generation(1, "m-1", "p")


def test_heartbeats_are_sent_at_every_interval_even_without_answers(
    scripted: ScriptedCoordinator, polled: Polled
) -> None:
    stable(scripted)
    for _ in range(10):
        assert body_of(scripted.request("Heartbeat"))["generationId"] == 1
    assert not polled.worker.saw(MemberEventKind.LOST)


def test_a_member_rejoins_a_rebalance_with_its_id(scripted: ScriptedCoordinator, polled: Polled) -> None:
    stable(scripted)
    scripted.answer_heartbeat(Error.REBALANCE_IN_PROGRESS)
    rejoin = scripted.accept_join(generation=2)
    assert (rejoin["memberId"], rejoin["reason"]) == ("m-1", "group is already rebalancing")
    scripted.answer_sync(b"half")
    wait_until(lambda: polled.worker.calls[-1] == "assigned 2 half", "the second assignment")
    assert polled.worker.calls == [
        "assign p", "assigned 1 everything", "revoked", "assign p", "assigned 2 half",
    ]  # fmt: skip


def test_unknown_member_id_loses_the_assignment_and_the_id(scripted: ScriptedCoordinator, polled: Polled) -> None:
    stable(scripted)
    wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
    scripted.answer_heartbeat(Error.UNKNOWN_MEMBER_ID)
    rejoin = scripted.accept_join("m-2", generation=5)
    assert rejoin["memberId"] == ""
    assert "UNKNOWN_MEMBER_ID" in rejoin["reason"]
    assert polled.worker.calls[-1] == "lost" or polled.worker.calls[-2] == "lost"


def test_illegal_generation_loses_the_assignment_but_not_the_id(scripted: ScriptedCoordinator, polled: Polled) -> None:
    stable(scripted)
    wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
    scripted.answer_heartbeat(Error.ILLEGAL_GENERATION)
    assert scripted.accept_join(generation=5)["memberId"] == "m-1"
    assert "lost" in polled.worker.calls
    assert "revoked" not in polled.worker.calls


def test_a_late_answer_of_an_earlier_generation_is_ignored(scripted: ScriptedCoordinator, polled: Polled) -> None:
    stable(scripted)
    unanswered = [scripted.request("Heartbeat") for _ in range(2)]
    scripted.answer_heartbeat(Error.REBALANCE_IN_PROGRESS)
    scripted.accept_join(generation=2)
    scripted.answer_sync(b"second")
    wait_until(lambda: polled.worker.calls[-1] == "assigned 2 second", "the second assignment")
    scripted.answer(unanswered[0], None, Error.UNKNOWN_MEMBER_ID)
    scripted.answer(unanswered[1], None, Error.ILLEGAL_GENERATION)
    for _ in range(5):
        assert scripted.answer_heartbeat()["generationId"] == 2
    assert "lost" not in polled.worker.calls


@pytest.mark.parametrize(
    ("error", "member_id"),
    [
        (Error.REBALANCE_IN_PROGRESS, "m-1"),
        (Error.ILLEGAL_GENERATION, "m-1"),
        (Error.UNKNOWN_MEMBER_ID, ""),
        (Error.COORDINATOR_LOAD_IN_PROGRESS, "m-1"),
    ],
)
def test_a_failed_sync_is_followed_by_a_rejoin(
    scripted: ScriptedCoordinator, polled: Polled, error: Error, member_id: str
) -> None:
    scripted.accept_join()
    scripted.answer_sync(b"", error)
    rejoin = scripted.accept_join(member_id or "m-2", generation=2)
    assert rejoin["memberId"] == member_id
    assert rejoin["reason"] == f"rebalance failed due to {error.name} from SyncGroup"
    scripted.answer_sync(b"at last")
    wait_until(lambda: "assigned 2 at last" in polled.worker.calls, "the assignment")


@pytest.mark.parametrize(
    "error",
    [
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.REBALANCE_IN_PROGRESS,
    ],
)
def test_a_join_is_retried_after_a_retriable_error(scripted: ScriptedCoordinator, polled: Polled, error: Error) -> None:
    for _ in range(3):
        scripted.refuse_join(error)
    stable(scripted)
    wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
    assert polled.failures == []


def test_poll_raises_when_the_group_refuses_the_member(scripted: ScriptedCoordinator, polled: Polled) -> None:
    scripted.refuse_join(Error.INCONSISTENT_GROUP_PROTOCOL)
    wait_until(lambda: polled.failures, "poll raises")
    assert isinstance(polled.failures[0], CoordinatorError)
    assert polled.failures[0].error is Error.INCONSISTENT_GROUP_PROTOCOL
    stable(scripted)
    wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "a later poll joins")


def test_a_leader_that_skips_the_assignment_sends_none(scripted: ScriptedCoordinator, polled: Polled) -> None:
    scripted.accept_join(skip_assignment=True)
    assert scripted.answer_sync(b"as before")["assignments"] == []
    wait_until(lambda: polled.worker.calls == ["assigned 1 as before"], "the assignment")


def test_heartbeats_start_with_the_generation_without_a_poll(scripted: ScriptedCoordinator, polled: Polled) -> None:
    request = scripted.request("JoinGroup")
    polled.polling.clear()
    wait_until(lambda: not polled.polling.is_set(), "polling stops")
    time.sleep(0.2)  # longer than a poll that may still run; without it the test would still pass, but prove less
    scripted.answer(request, joined_body())
    assert body_of(scripted.request("Heartbeat"))["generationId"] == 1


def joined_body(member_id: str = "m-1") -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=1, protocol_type="connect", protocol_name="p", leader="m-0", member_id=member_id
    )


def test_a_member_leaves_at_its_poll_timeout_and_rejoins_with_the_next_poll(scripted: ScriptedCoordinator) -> None:
    polled = Polled(scripted, rebalance_timeout_ms=4_000)
    try:
        stable(scripted)
        wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
        polled.polling.clear()
        leave = body_of(scripted.request("LeaveGroup"))
        assert leave["members"] == [
            {"memberId": "m-1", "groupInstanceId": None, "reason": "consumer poll timeout has expired"}
        ]
        assert "lost" not in polled.worker.calls
        polled.polling.set()
        rejoin = scripted.accept_join("m-2", generation=3)
        assert (rejoin["memberId"], rejoin["reason"]) == ("", "consumer poll timeout has expired")
        scripted.answer_sync(b"again")
        wait_until(lambda: "assigned 3 again" in polled.worker.calls, "the new assignment")
        assert polled.worker.calls[2:] == ["lost", "assign p", "assigned 3 again"]
    finally:
        polled.close()


def test_a_static_member_only_stops_its_heartbeats_at_its_poll_timeout(
    scripted: ScriptedCoordinator, caplog: pytest.LogCaptureFixture
) -> None:
    polled = Polled(scripted, instance_id="i-1", rebalance_timeout_ms=4_000)
    try:
        stable(scripted)
        wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
        polled.polling.clear()
        wait_until(lambda: "stops its heartbeats" in caplog.text, "the poll timeout expires")
        polled.client.send("group", "Begin", 0, {})
        time.sleep(0.5)  # five heartbeats, if there were any
        polled.client.send("group", "End", 0, {})
        scripted.request("Begin")
        assert scripted.request().api == "End"
        assert scripted.skipped == 0
        polled.polling.set()
        assert scripted.answer_heartbeat()["groupInstanceId"] == "i-1"
        assert polled.member.generation == Generation(1, "m-1", "p")
    finally:
        polled.close()


def test_every_poll_of_a_fenced_member_raises(scripted: ScriptedCoordinator) -> None:
    polled = Polled(scripted, instance_id="i-1")
    try:
        stable(scripted)
        wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
        scripted.answer_heartbeat(Error.FENCED_INSTANCE_ID)
        wait_until(lambda: len(polled.failures) >= 2, "every poll raises")
        assert all(isinstance(failure, FencedInstanceId) for failure in polled.failures)
        assert polled.worker.calls == ["assign p", "assigned 1 everything", "lost"]
        assert polled.worker.saw(MemberEventKind.FENCED)
    finally:
        polled.close()


def test_close_leaves_the_group(scripted: ScriptedCoordinator, polled: Polled) -> None:
    stable(scripted)
    wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
    polled.end_polling()
    closing = threading.Thread(target=polled.member.close)
    closing.start()
    request = scripted.request("LeaveGroup")
    assert body_of(request)["members"][0]["memberId"] == "m-1"
    scripted.answer(request, LeaveGroupResponse())
    closing.join(LIMIT_SECONDS)
    assert not closing.is_alive()
    assert polled.worker.calls[-1] == "leaving"


def test_close_of_a_static_member_does_not_leave_the_group(scripted: ScriptedCoordinator) -> None:
    polled = Polled(scripted, instance_id="i-1")
    stable(scripted)
    wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
    polled.end_polling()
    polled.member.close()
    polled.client.send("group", "End", 0, {})
    assert scripted.request("End", "LeaveGroup").api == "End"
    assert polled.worker.calls[-1] == "leaving"
    polled.client.close()


def test_the_answer_to_a_join_from_before_a_leave_is_ignored(scripted: ScriptedCoordinator, polled: Polled) -> None:
    before = scripted.request("JoinGroup")
    polled.end_polling()
    polled.member.leave("the test leaves")
    polled.member.poll(0)
    after = scripted.request("JoinGroup")
    scripted.answer(before, joined_body("m-before"))
    scripted.answer(after, joined_body("m-after"))
    wait_until(lambda: polled.member.generation.is_member, "the answers are read")
    assert polled.member.generation.member_id == "m-after"


def test_the_heartbeat_interval_must_be_shorter_than_the_session_timeout() -> None:
    with pytest.raises(ValueError, match=r"heartbeat_interval_ms \(6000\) must be positive and less than"):
        MemberConfig(group_id="g", protocol_type="t", session_timeout_ms=6000, heartbeat_interval_ms=6000)
