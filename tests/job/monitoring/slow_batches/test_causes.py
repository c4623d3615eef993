"""Which cause a slow batch has."""

from collections.abc import Mapping

import pytest

from streaming.job.monitoring.slow_batches.causes import CAUSES, NEEDED_BATCHES, Batch, Cause, Finding, SlowBatches
from streaming.job.monitoring.slow_batches.usage import Resource

CORES = 2

USUAL: Mapping[Resource, float] = {
    "collecting": 0.005,
    "compiling": 0.01,
    "job-cpu": 0.1,
    "machine-cpu": 0.15,
    "waiting-for-cpu": 0.03,
    "waiting-for-disk": 0.0,
    "waiting-for-memory": 0.0,
    "throttled": 0.0,
    "stolen": 0.0,
    "slowed": 0.01,
}
"""What a batch of 100 ms uses."""


def a_batch(
    number: int,
    milliseconds: float = 100,
    requests: int = 1_000,
    phases: Mapping[str, int] | None = None,
    used: Mapping[Resource, float] | None = None,
) -> Batch:
    """A batch that has used as much as is usual for its time, and what ``used`` adds to it."""
    began = 1_000.0 + number
    usual = {resource: seconds * milliseconds / 100 for resource, seconds in USUAL.items()}
    return Batch(
        number,
        began,
        began + milliseconds / 1000,
        requests,
        phases or {"latestOffset": 2, "addBatch": int(milliseconds) - 2},
        {resource: seconds + (used or {}).get(resource, 0.0) for resource, seconds in usual.items()},
    )


def judged(batch: Batch, usual: int = NEEDED_BATCHES) -> Finding | None:
    """The finding about a batch after so many usual ones, whose time grows by a millisecond for ten requests."""
    slow = SlowBatches(CORES)
    for number in range(usual):
        more = number % 5
        assert slow.judge(a_batch(number, 98 + more, 980 + 10 * more)) is None
    return slow.judge(batch)


@pytest.mark.parametrize(
    ("cause", "used"),
    [
        ("garbage-collection", {"collecting": 0.35}),
        ("compilation", {"compiling": 0.5, "job-cpu": 0.3, "machine-cpu": 0.3, "waiting-for-cpu": 0.3}),
        ("other-processes", {"machine-cpu": 0.4, "waiting-for-cpu": 0.35}),
        ("processors", {"waiting-for-cpu": 0.35}),
        ("disk", {"waiting-for-disk": 0.35}),
        ("memory", {"waiting-for-memory": 0.35}),
        ("cpu-quota", {"throttled": 0.35}),
        ("host", {"stolen": 0.6}),
        ("host", {"slowed": 0.3}),
    ],
)
def test_the_cause_is_what_was_used_beyond_the_usual(cause: Cause, used: Mapping[Resource, float]) -> None:
    finding = judged(a_batch(50, 500, used=used))
    assert finding is not None
    assert finding.cause == cause
    assert finding.usual_ms == pytest.approx(100)
    assert CAUSES[cause] in str(finding)


def test_stolen_time_is_that_of_all_processors() -> None:
    finding = judged(a_batch(50, 500, used={"stolen": 0.6}))
    assert finding is not None
    assert finding.lost_ms["host"] == pytest.approx(300)


def test_a_resource_that_is_always_used_as_much_is_no_cause() -> None:
    finding = judged(a_batch(50, 500))
    assert finding is not None
    assert finding.cause == "unexplained"


def test_compilers_and_other_processes_are_no_cause_for_a_batch_that_does_not_wait_for_a_processor() -> None:
    finding = judged(a_batch(50, 500, used={"compiling": 0.5, "machine-cpu": 0.6}))
    assert finding is not None
    assert finding.cause == "unexplained"


def test_more_requests_explain_a_longer_batch_by_what_requests_usually_take() -> None:
    finding = judged(a_batch(50, 500, requests=4_000))
    assert finding is not None
    assert finding.cause == "requests"
    assert finding.lost_ms["requests"] == pytest.approx(300)


def test_the_greater_of_two_causes_is_named() -> None:
    finding = judged(a_batch(50, 500, requests=2_500, used={"collecting": 0.2}))
    assert finding is not None
    assert finding.cause == "garbage-collection"
    assert finding.lost_ms["requests"] == pytest.approx(150)


@pytest.mark.parametrize(
    ("cause", "phase"),
    [
        ("brokers", "latestOffset"),
        ("checkpoint", "walCommit"),
        ("planning", "queryPlanning"),
        ("state-store", "stateCommit"),
    ],
)
def test_a_phase_is_the_cause_if_no_resource_is(cause: Cause, phase: str) -> None:
    finding = judged(a_batch(50, 500, phases={phase: 400, "addBatch": 98}))
    assert finding is not None
    assert finding.cause == cause
    assert f"{phase} took 400 ms" in str(finding)


def test_a_small_part_of_the_time_is_no_cause() -> None:
    finding = judged(a_batch(50, 500, used={"collecting": 0.05}))
    assert finding is not None
    assert finding.cause == "unexplained"
    assert "addBatch took 498 ms, usually 98 ms" in str(finding)


def test_batches_of_a_job_that_has_just_started_are_of_its_start() -> None:
    finding = judged(a_batch(50, 500, used={"collecting": 0.35}), NEEDED_BATCHES - 1)
    assert finding is not None
    assert finding.cause == "start"


def test_batches_that_always_take_long_are_usual_ones() -> None:
    slow = SlowBatches(CORES)
    findings = [slow.judge(a_batch(number, 1_000)) for number in range(NEEDED_BATCHES + 1)]
    assert findings[-1] is not None
    assert findings[-1].cause == "usual"


def test_without_samples_the_phases_are_left() -> None:
    finding = judged(a_batch(50, 500, phases={"walCommit": 400, "addBatch": 98})._replace(used={}))
    assert finding is not None
    assert (finding.cause, dict(finding.lost_ms)) == ("checkpoint", {})


def test_a_slow_batch_of_one_resource_more_than_before_is_judged() -> None:
    slow = SlowBatches(CORES)
    for number in range(NEEDED_BATCHES):
        slow.judge(a_batch(number)._replace(used={"collecting": 0.005}))
    finding = slow.judge(a_batch(50, 500, used={"collecting": 0.35}))
    assert finding is not None
    assert finding.cause == "garbage-collection"
