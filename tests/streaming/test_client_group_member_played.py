"""What a member says and does, told by a coordinator that the test plays over real topics."""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.messages import JoinedMember, JoinGroupResponse, LeaveGroupResponse
from streaming.broker import EmbeddedBroker
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
from tests.streaming.client_support import PlayedCoordinator, body_of, wait_until


class Worker(MemberCallbacks):
    """Notes what it is called for."""

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
    """A member that a thread polls, as an application would."""

    def __init__(
        self, played: PlayedCoordinator, *, instance_id: str | None = None, rebalance_timeout_ms: int = 60_000
    ) -> None:
        self.worker = Worker()
        self.failures: list[Exception] = []
        self.client = CoordinatorClient(
            played.bootstrap_servers, topic_prefix=played.topics.prefix, request_timeout_ms=2 * 60_000
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
        """End without a word: nobody is there to answer a LeaveGroup."""
        self.end_polling()
        self.client.close()
        self.member.close()


@pytest.fixture
def played(broker: EmbeddedBroker) -> Iterator[PlayedCoordinator]:
    coordinator = PlayedCoordinator(broker.bootstrap_servers, partitions=1)
    yield coordinator
    coordinator.close()


@pytest.fixture
def polled(played: PlayedCoordinator) -> Iterator[Polled]:
    member = Polled(played)
    yield member
    member.close()


def stable(played: PlayedCoordinator) -> None:
    """Bring the member, as m-1, into generation 1."""
    played.joins()
    played.syncs()


def test_joining_takes_the_id_it_is_given_and_says_why(played: PlayedCoordinator, polled: Polled) -> None:
    first = played.refuses_join(Error.MEMBER_ID_REQUIRED, "m-1")
    assert first == {
        "groupId": "group",
        "sessionTimeoutMs": 10_000,
        "protocolType": "connect",
        "protocols": [{"name": "p", "metadata": "AP9tZXRhZGF0YQ=="}, {"name": "q", "metadata": ""}],
        "rebalanceTimeoutMs": 60_000,
        "memberId": "",
        "groupInstanceId": None,
        "reason": None,
    }
    again = played.joins()
    assert again["memberId"] == "m-1"
    assert again["reason"] == "need to re-join with the given member-id: m-1"
    assert played.syncs() == {
        "groupId": "group",
        "generationId": 1,
        "memberId": "m-1",
        "groupInstanceId": None,
        "protocolType": "connect",
        "protocolName": "p",
        "assignments": [{"memberId": "m-1", "assignment": "ZXZlcnl0aGluZw=="}],
    }
    wait_until(lambda: polled.worker.calls == ["assign p", "assigned 1 everything"], "the member is assigned")
    assert polled.member.generation == Generation(1, "m-1", "p")


def test_heartbeats_go_out_at_every_interval_without_an_answer(played: PlayedCoordinator, polled: Polled) -> None:
    stable(played)
    for _ in range(10):
        assert body_of(played.request("Heartbeat"))["generationId"] == 1
    assert not polled.worker.saw(MemberEventKind.LOST)


def test_a_rebalance_is_joined_under_the_same_id(played: PlayedCoordinator, polled: Polled) -> None:
    stable(played)
    played.beats(Error.REBALANCE_IN_PROGRESS)
    rejoin = played.joins(generation=2)
    assert (rejoin["memberId"], rejoin["reason"]) == ("m-1", "group is already rebalancing")
    played.syncs(b"half")
    wait_until(lambda: polled.worker.calls[-1] == "assigned 2 half", "the second assignment")
    assert polled.worker.calls == [
        "assign p", "assigned 1 everything", "revoked", "assign p", "assigned 2 half",
    ]  # fmt: skip


def test_an_unknown_member_has_lost_its_part_and_joins_anew(played: PlayedCoordinator, polled: Polled) -> None:
    stable(played)
    wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
    played.beats(Error.UNKNOWN_MEMBER_ID)
    rejoin = played.joins("m-2", generation=5)
    assert rejoin["memberId"] == ""
    assert "UNKNOWN_MEMBER_ID" in rejoin["reason"]
    assert polled.worker.calls[-1] == "lost" or polled.worker.calls[-2] == "lost"


def test_an_illegal_generation_is_lost_but_not_the_id(played: PlayedCoordinator, polled: Polled) -> None:
    stable(played)
    wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
    played.beats(Error.ILLEGAL_GENERATION)
    assert played.joins(generation=5)["memberId"] == "m-1"
    assert "lost" in polled.worker.calls
    assert "revoked" not in polled.worker.calls


def test_a_late_answer_about_an_earlier_generation_does_no_harm(played: PlayedCoordinator, polled: Polled) -> None:
    stable(played)
    held_back = [played.request("Heartbeat") for _ in range(2)]
    played.beats(Error.REBALANCE_IN_PROGRESS)
    played.joins(generation=2)
    played.syncs(b"second")
    wait_until(lambda: polled.worker.calls[-1] == "assigned 2 second", "the second assignment")
    played.answer(held_back[0], None, Error.UNKNOWN_MEMBER_ID)
    played.answer(held_back[1], None, Error.ILLEGAL_GENERATION)
    for _ in range(5):
        assert played.beats()["generationId"] == 2
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
def test_a_sync_that_fails_is_followed_by_a_join(
    played: PlayedCoordinator, polled: Polled, error: Error, member_id: str
) -> None:
    played.joins()
    played.syncs(b"", error)
    rejoin = played.joins(member_id or "m-2", generation=2)
    assert rejoin["memberId"] == member_id
    assert rejoin["reason"] == f"rebalance failed due to {error.name} from SyncGroup"
    played.syncs(b"at last")
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
def test_joining_is_tried_again_after_a_passing_error(played: PlayedCoordinator, polled: Polled, error: Error) -> None:
    for _ in range(3):
        played.refuses_join(error)
    stable(played)
    wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
    assert polled.failures == []


def test_a_group_that_does_not_take_the_member_is_an_error_of_poll(played: PlayedCoordinator, polled: Polled) -> None:
    played.refuses_join(Error.INCONSISTENT_GROUP_PROTOCOL)
    wait_until(lambda: polled.failures, "poll raises")
    assert isinstance(polled.failures[0], CoordinatorError)
    assert polled.failures[0].error is Error.INCONSISTENT_GROUP_PROTOCOL
    stable(played)
    wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "a later poll joins")


def test_a_leader_that_may_skip_the_assignment_brings_none(played: PlayedCoordinator, polled: Polled) -> None:
    played.joins(skip_assignment=True)
    assert played.syncs(b"as before")["assignments"] == []
    wait_until(lambda: polled.worker.calls == ["assigned 1 as before"], "the assignment")


def test_heartbeats_begin_with_the_generation_though_nobody_polls(played: PlayedCoordinator, polled: Polled) -> None:
    request = played.request("JoinGroup")
    polled.polling.clear()
    wait_until(lambda: not polled.polling.is_set(), "polling stops")
    time.sleep(0.2)  # longer than the poll that may be under way; without it the test proves less, not nothing
    played.answer(request, joined_body())
    assert body_of(played.request("Heartbeat"))["generationId"] == 1


def joined_body(member_id: str = "m-1") -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=1, protocol_type="connect", protocol_name="p", leader="m-0", member_id=member_id
    )


def test_a_member_that_is_not_polled_leaves_and_comes_back(played: PlayedCoordinator) -> None:
    polled = Polled(played, rebalance_timeout_ms=4_000)
    try:
        stable(played)
        wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
        polled.polling.clear()
        leave = body_of(played.request("LeaveGroup"))
        assert leave["members"] == [
            {"memberId": "m-1", "groupInstanceId": None, "reason": "consumer poll timeout has expired"}
        ]
        assert "lost" not in polled.worker.calls
        polled.polling.set()
        rejoin = played.joins("m-2", generation=3)
        assert (rejoin["memberId"], rejoin["reason"]) == ("", "consumer poll timeout has expired")
        played.syncs(b"again")
        wait_until(lambda: "assigned 3 again" in polled.worker.calls, "the new assignment")
        assert polled.worker.calls[2:] == ["lost", "assign p", "assigned 3 again"]
    finally:
        polled.close()


def test_a_static_member_that_is_not_polled_only_falls_silent(
    played: PlayedCoordinator, caplog: pytest.LogCaptureFixture
) -> None:
    polled = Polled(played, instance_id="i-1", rebalance_timeout_ms=4_000)
    try:
        stable(played)
        wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
        polled.polling.clear()
        wait_until(lambda: "stops its heartbeats" in caplog.text, "the poll timeout expires")
        polled.client.send("group", "Begin", 0, {})
        time.sleep(0.5)  # five heartbeats, if there were any
        polled.client.send("group", "End", 0, {})
        played.request("Begin")
        assert played.request().api == "End"
        assert played.passed_over == 0
        polled.polling.set()
        assert played.beats()["groupInstanceId"] == "i-1"
        assert polled.member.generation == Generation(1, "m-1", "p")
    finally:
        polled.close()


def test_a_fenced_member_stops_for_good(played: PlayedCoordinator) -> None:
    polled = Polled(played, instance_id="i-1")
    try:
        stable(played)
        wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
        played.beats(Error.FENCED_INSTANCE_ID)
        wait_until(lambda: len(polled.failures) >= 2, "every poll raises")
        assert all(isinstance(failure, FencedInstanceId) for failure in polled.failures)
        assert polled.worker.calls == ["assign p", "assigned 1 everything", "lost"]
        assert polled.worker.saw(MemberEventKind.FENCED)
    finally:
        polled.close()


def test_a_dynamic_member_leaves_when_it_is_closed(played: PlayedCoordinator, polled: Polled) -> None:
    stable(played)
    wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
    polled.end_polling()
    closing = threading.Thread(target=polled.member.close)
    closing.start()
    request = played.request("LeaveGroup")
    assert body_of(request)["members"][0]["memberId"] == "m-1"
    played.answer(request, LeaveGroupResponse())
    closing.join(10)
    assert not closing.is_alive()
    assert polled.worker.calls[-1] == "leaving"


def test_a_static_member_closes_without_leaving(played: PlayedCoordinator) -> None:
    polled = Polled(played, instance_id="i-1")
    stable(played)
    wait_until(lambda: "assigned 1 everything" in polled.worker.calls, "the assignment")
    polled.end_polling()
    polled.member.close()
    polled.client.send("group", "End", 0, {})
    assert played.request("End", "LeaveGroup").api == "End"
    assert polled.worker.calls[-1] == "leaving"
    polled.client.close()


def test_the_answer_to_a_join_before_leaving_does_not_count_for_the_join_after_it(
    played: PlayedCoordinator, polled: Polled
) -> None:
    before = played.request("JoinGroup")
    polled.end_polling()
    polled.member.leave("changed its mind")
    polled.member.poll(0)
    after = played.request("JoinGroup")
    played.answer(before, joined_body("m-before"))
    played.answer(after, joined_body("m-after"))
    wait_until(lambda: polled.member.generation.is_member, "the answers are read")
    assert polled.member.generation.member_id == "m-after"


def test_heartbeats_must_be_more_frequent_than_sessions_are_long() -> None:
    with pytest.raises(ValueError, match=r"heartbeat_interval_ms \(6000\) must be positive and less than"):
        MemberConfig(group_id="g", protocol_type="t", session_timeout_ms=6000, heartbeat_interval_ms=6000)
