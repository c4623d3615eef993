"""Which responses a client believes, by their epochs and by what the active job has announced."""

import logging
import threading

import pytest

from coordinator_logic.messages import NO_BODY, ResponseEnvelope
from streaming.client import epoch_fence
from streaming.client.epoch_fence import EpochFence
from streaming.client.errors import CoordinatorNotAvailable
from tests.support.waiting import wait_until


class Announced:
    """What the announcements say, when a look is let go on."""

    def __init__(self, epoch: int | Exception) -> None:
        self.epoch = epoch
        self.looks = 0
        self.may_answer = threading.Event()
        self.may_answer.set()

    def __call__(self) -> int:
        self.looks += 1
        self.may_answer.wait()
        if isinstance(self.epoch, Exception):
            raise self.epoch
        return self.epoch


def response(epoch: int, correlation_id: str = "1") -> ResponseEnvelope:
    return ResponseEnvelope("Heartbeat", 4, correlation_id, "g", 0, NO_BODY, job_epoch=epoch)


def released(fence: EpochFence) -> list[int]:
    """The epochs of the responses that are released at the end of the look."""
    found: list[ResponseEnvelope] = []

    def has_ended() -> bool:
        found.extend(fence.released())
        return fence._look is None

    wait_until(has_ended, "the look has ended")
    return [each.job_epoch for each in found]


def test_responses_of_one_epoch_need_no_look() -> None:
    announced = Announced(5)
    fence = EpochFence(announced)
    assert all(fence.admits(response(5)) for _ in range(1_000))
    assert fence.admits(response(0)), "of a job of an earlier release"
    assert (announced.looks, fence.released()) == (0, [])


def test_the_responses_of_a_former_job_wait_for_the_look_and_are_dropped() -> None:
    announced = Announced(7)
    announced.may_answer.clear()
    fence = EpochFence(announced)
    assert fence.admits(response(6))
    assert fence.admits(response(7)), "the new job's clients do not wait"
    assert not fence.admits(response(6))
    assert fence.admits(response(7))
    announced.may_answer.set()
    assert released(fence) == []
    assert not fence.admits(response(6))
    assert fence.admits(response(7))
    assert (fence.outdated, announced.looks) == (2, 1)


def test_a_false_epoch_delays_the_others_until_the_look_has_ended(caplog: pytest.LogCaptureFixture) -> None:
    announced = Announced(5)
    fence = EpochFence(announced)
    assert fence.admits(response(5))
    with caplog.at_level(logging.WARNING):
        assert fence.admits(response(2**40))
        assert not fence.admits(response(5))
        assert released(fence) == [5]
        # Within the pause, further ones are not even looked at.
        assert fence.admits(response(2**41))
        assert fence.admits(response(5))
    assert (fence.outdated, fence.false_epochs, announced.looks) == (0, 1, 1)
    assert [record.getMessage() for record in caplog.records] == [
        "a response names the epoch 1099511627776, but the active job has announced 5"
    ]


def test_a_false_epoch_in_the_first_response_is_found_out_by_the_second() -> None:
    fence = EpochFence(Announced(5))
    assert fence.admits(response(2**40))
    assert not fence.admits(response(5))
    assert released(fence) == [5]
    assert fence.admits(response(5))


@pytest.mark.parametrize("epoch", [0, CoordinatorNotAvailable("no right to read")], ids=["none", "unreadable"])
def test_without_announcements_no_response_is_dropped(epoch: int | Exception) -> None:
    fence = EpochFence(Announced(epoch))
    assert fence.admits(response(6))
    assert fence.admits(response(7))
    assert not fence.admits(response(6))
    assert released(fence) == [6]
    assert fence.outdated == 0


def test_a_look_that_takes_too_long_holds_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_fence, "HOLD_SECONDS", 0.05)
    announced = Announced(7)
    announced.may_answer.clear()
    fence = EpochFence(announced)
    try:
        assert fence.admits(response(7))
        assert not fence.admits(response(6))
        assert released(fence) == [6]
    finally:
        announced.may_answer.set()


def test_an_epoch_that_went_back_with_the_announcements_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epoch_fence, "PAUSE_SECONDS", 0.0)
    announced = Announced(9)
    fence = EpochFence(announced)
    fence.admits(response(8))
    fence.admits(response(9))
    released(fence)
    announced.epoch = 1
    assert not fence.admits(response(1))
    assert released(fence) == [1]
    assert fence.admits(response(1))
