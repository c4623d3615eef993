"""A job on a real broker whose clients are silent: it runs no batch, and yet keeps every deadline."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.group_batch.processing import Outcome, process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.steps import DEADLINE_CHECK
from streaming.job.rows.records import KafkaRecord
from tests.job.monitoring.test_health import status
from tests.job.monitoring.test_metrics import port_of, scraped
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import TopicReader, append, reading
from tests.support.parameters.long_tests import mostly_long
from tests.support.request_events import dumped, envelope
from tests.support.topics import unique
from tests.support.waiting import wait_until

QUIET_SECONDS = 5.0
"""Twenty-five trigger intervals of the job."""

SESSION_MS = 8_000
LONG_SESSION_MS = 600_000


def batches(coordinator: CoordinatorProcess) -> int:
    """How many batches the job has planned."""
    return max(int(file.name) for file in (coordinator.checkpoint / "offsets").iterdir() if file.name.isdigit()) + 1


def files(folder: Path) -> set[tuple[str, int]]:
    """Names and times of all files."""
    return {(str(file), file.stat().st_mtime_ns) for file in folder.rglob("*") if file.is_file()}


def await_silence(coordinator: CoordinatorProcess, seconds: float = QUIET_SECONDS) -> None:
    """Wait until no batch has run for so long."""
    seen, since = -1, 0.0

    def is_quiet() -> bool:
        nonlocal seen, since
        if (now := batches(coordinator)) != seen:
            seen, since = now, time.monotonic()
        return time.monotonic() - since >= seconds

    wait_until(is_quiet, f"no batch for {seconds:g} s", describe=lambda: f"{seen} batches", pause=0.1)


def join(coordinator: CoordinatorProcess, group_id: str, session_ms: int) -> None:
    """A member joins, and is never heard of again."""
    request = envelope(
        "JoinGroup",
        3,
        {
            "groupId": group_id,
            "sessionTimeoutMs": session_ms,
            "rebalanceTimeoutMs": session_ms,
            "memberId": "",
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": ""}],
        },
    )
    append(coordinator.bootstrap_servers, coordinator.topics.requests, (group_id.encode(), dumped(request)))


def members(directory: TopicReader, group_id: str) -> list[int]:
    """The numbers of the group's members, in order, without repetitions."""
    counts = [record.value["members"] for record in directory.poll() if record.key == group_id.encode()]
    return [count for place, count in enumerate(counts) if counts[place - 1 : place] != [count]]


@contextmanager
def following_members(coordinator: CoordinatorProcess, group_id: str) -> Iterator[Callable[[list[int]], None]]:
    """Yields a function that waits until the group has had these numbers of members."""
    with reading(coordinator.bootstrap_servers, coordinator.topics.directory) as directory:

        def awaits(counts: list[int]) -> None:
            wait_until(
                lambda: members(directory, group_id) == counts,
                f"members: {counts}",
                describe=lambda: str(members(directory, group_id)),
            )

        yield awaits


@pytest.fixture(scope="module")
def job(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    """A job that every test leaves running, but the last one."""
    maintenance = {"spark.sql.streaming.stateStore.maintenanceInterval": "1h"}
    options = {"metrics-port": 0, "health-batch-limit-ms": 2_000, **maintenance}
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path_factory.mktemp("silence"), options) as process:
        process.start()
        yield process


@pytest.fixture
def silent(job: CoordinatorProcess) -> CoordinatorProcess:
    """The job, when it has become silent."""
    if not job.is_running:
        job.start()
    await_silence(job, 1.0)
    return job


@pytest.fixture
def group() -> str:
    return unique("silent")


def test_a_silent_job_runs_no_batch_and_writes_no_file(job: CoordinatorProcess, group: str) -> None:
    with following_members(job, group) as await_members:
        join(job, group, LONG_SESSION_MS)
        await_members([1])
    await_silence(job)
    before = files(job.checkpoint)
    await_silence(job)
    assert files(job.checkpoint) == before
    assert [status(port_of(job), page) for page in ("live", "ready")] == [200, 200]
    # Neither the wake events nor the rows that carry due times have been seen by anyone.
    counted = scraped(port_of(job))
    requests = {
        labels: value for (name, labels), value in counted.items() if name == "group_coordinator_requests_total"
    }
    assert requests == {("JoinGroup", "NONE"): 1}
    assert not [name for name, _ in counted if name == "group_coordinator_rejects_total"]
    with reading(job.bootstrap_servers, job.topics.rejects) as rejects:
        assert rejects.to_the_end() == []


def test_a_session_ends_in_silence_with_a_few_batches(silent: CoordinatorProcess, group: str) -> None:
    before = batches(silent)
    with following_members(silent, group) as await_members:
        join(silent, group, SESSION_MS)
        await_members([1, 0])
    await_silence(silent)
    # The join, the batch after it, those of the deadlines of join and session, and the check of each.
    assert batches(silent) - before <= 10


@pytest.mark.parametrize("how", mostly_long(["kill", "stop"], ["kill"]))
def test_after_a_restart_a_silent_groups_member_that_is_gone_is_expelled(
    silent: CoordinatorProcess, group: str, how: str
) -> None:
    with following_members(silent, group) as await_members:
        join(silent, group, SESSION_MS)
        await_members([1])
        await_silence(silent, 1.0)
        silent.kill() if how == "kill" else silent.stop()
        await_members([1])
        silent.start()
        await_members([1, 0])


def test_an_idle_job_stops_cleanly(silent: CoordinatorProcess) -> None:
    assert silent.stop() == 0
    commits = silent.checkpoint / "commits"
    assert batches(silent) == max(int(file.name) for file in commits.iterdir() if file.name.isdigit()) + 1


@pytest.mark.jvm
def test_wake_events_that_are_lost_are_repeated(broker: EmbeddedBroker, tmp_path: Path, group: str) -> None:
    with CoordinatorProcess(
        broker.bootstrap_servers, tmp_path, module="tests.job.wake_events.forgetful_job"
    ) as coordinator:
        coordinator.start()
        with following_members(coordinator, group) as await_members:
            join(coordinator, group, SESSION_MS)
            await_members([1, 0])
        await_silence(coordinator)


def test_a_job_that_does_not_drop_wake_events_takes_one_for_a_check_of_no_group() -> None:
    """As releases before wake events do."""
    record = KafkaRecord(1_700_000_000_000, 0, 7, None, DEADLINE_CHECK)
    settings = Settings(TopicNames(), 2, has_deadline_checks=True)
    assert process(settings, "", [record], None, 1_700_000_000_100) == Outcome([], None, None)
