"""The job as a process on a real broker: it answers, starts, stops, refuses to start, and continues."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.interruption import INTERRUPTED
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import append, reading
from tests.support.processes import descendants, executable, exists
from tests.support.request_events import commit, correlation_id, dumped, envelope
from tests.support.waiting import LIMIT_SECONDS, wait_until


def ids(directory: Path) -> set[int]:
    """The batch ids in a log of the checkpoint."""
    return {int(file.name) for file in directory.iterdir() if file.name.isdigit()}


@pytest.fixture(scope="module", autouse=True)
def without_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    """A job without a broker. It starts before the first test, because it gives up after half a minute."""
    with CoordinatorProcess("127.0.0.1:1", tmp_path_factory.mktemp("without-broker")) as process:
        process.launch()
        yield process


@pytest.fixture(scope="module")
def mortal(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    """A job that tests stop, kill and start again."""
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path_factory.mktemp("mortal")) as process:
        yield process


@pytest.fixture
def running(mortal: CoordinatorProcess) -> CoordinatorProcess:
    """The same job, which runs."""
    if not mortal.is_running:
        mortal.start()
    return mortal


def test_a_request_is_answered_in_the_partition_that_it_names(coordinator: CoordinatorProcess) -> None:
    servers, topics, group_id = coordinator.bootstrap_servers, coordinator.topics, correlation_id()
    requests = [commit(group_id, 5, replyPartition=partition) for partition in (0, 1)]
    # Any partition is accepted for a group: these two requests have different ones.
    for partition, request in enumerate(requests):
        append(servers, topics.requests, (group_id.encode(), dumped(request)), partition=partition)
    with reading(servers, topics.responses) as responses:
        for partition, request in enumerate(requests):
            key = request["correlationId"].encode()
            answer = responses.first(lambda record, key=key: record.key == key, "the answer")  # type: ignore[misc]
            assert answer.partition == partition
            assert answer.value["errorCode"] == 0


def test_journal_and_directory_are_written(coordinator: CoordinatorProcess) -> None:
    servers, topics, group_id = coordinator.bootstrap_servers, coordinator.topics, correlation_id()
    key = group_id.encode()
    append(servers, topics.requests, (key, dumped(commit(group_id, 5))))
    with reading(servers, topics.journal) as journal, reading(servers, topics.directory) as directory:
        journal.first(
            lambda record: record.key == key and record.value["record"]["type"] == "OffsetsCommitted", "the commit"
        )
        assert directory.first(lambda record: record.key == key, "the line").value["groupState"] == "Empty"
        append(servers, topics.requests, (key, dumped(envelope("DeleteGroups", 2, {"groupsNames": [group_id]}))))
        directory.first(lambda record: record.key == key and record.raw is None, "the tombstone")


def test_deadlines_fire_although_no_request_comes(coordinator: CoordinatorProcess) -> None:
    servers, topics, group_id = coordinator.bootstrap_servers, coordinator.topics, correlation_id()
    join = envelope(
        "JoinGroup",
        3,
        {
            "groupId": group_id,
            "sessionTimeoutMs": 6_000,
            "rebalanceTimeoutMs": 6_000,
            "memberId": "",
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": ""}],
        },
    )
    append(servers, topics.requests, (group_id.encode(), dumped(join)))
    with reading(servers, topics.directory) as directory:
        directory.until(
            lambda records: [r.value["members"] for r in records if r.key == group_id.encode()][-2:] == [1, 0],
            "a member that joins and, without heartbeats, is removed",
        )


def test_a_stop_before_ready_ends_the_job_at_once_and_leaves_no_process(mortal: CoordinatorProcess) -> None:
    if mortal.is_running:
        mortal.stop()
    mortal.launch()
    wait_until(lambda: descendants(mortal.pid), "the launch of the JVM")
    processes = descendants(mortal.pid)
    mortal.stop()
    wait_until(lambda: not any(map(exists, processes)), "the end of the JVM")
    # The checkpoint is not locked either.
    mortal.start()


def appending(coordinator: CoordinatorProcess, stop: threading.Event) -> list[str]:
    """Append commits until ``stop`` is set; returns their correlation ids."""
    sent: list[str] = []
    while not stop.is_set():
        group_id = f"g{len(sent) % 5}"
        request = commit(group_id, len(sent))
        append(coordinator.bootstrap_servers, coordinator.topics.requests, (group_id.encode(), dumped(request)))
        sent.append(request["correlationId"])
    return sent


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, INTERRUPTED)])
def test_a_stop_under_load_lets_the_batch_in_flight_finish(
    running: CoordinatorProcess, number: signal.Signals, code: int
) -> None:
    coordinator = running
    stop = threading.Event()
    load = threading.Thread(target=appending, args=(coordinator, stop))
    load.start()
    try:
        commits = coordinator.checkpoint / "commits"
        done = max(ids(commits))
        wait_until(lambda: max(ids(commits)) > done + 2, "batches under load")
        processes = descendants(coordinator.pid)
        coordinator.signal(number)
        assert coordinator.wait() == code
    finally:
        stop.set()
        load.join()
    assert max(ids(coordinator.checkpoint / "offsets")) == max(ids(commits))
    assert len(processes) >= 2
    wait_until(lambda: not any(map(exists, processes)), "the end of JVM and workers")
    assert [line for line in coordinator.output if not line.startswith("{")] == []


def test_after_a_kill_the_job_continues_from_its_checkpoint(running: CoordinatorProcess) -> None:
    coordinator, starts = running, running.checkpoint / "starts"
    servers, topics, started = coordinator.bootstrap_servers, coordinator.topics, len(ids(starts))
    with reading(servers, topics.responses) as responses:
        before, while_down = commit("g", 41), commit("h", 42)
        append(servers, topics.requests, (b"g", dumped(before)))
        responses.first(lambda record: record.key == before["correlationId"].encode(), "the answer")
        coordinator.kill()
        append(servers, topics.requests, (b"h", dumped(while_down)))
        coordinator.start()
        responses.first(lambda record: record.key == while_down["correlationId"].encode(), "the late answer")
        fetch = envelope("OffsetFetch", 7, {"groupId": "g"})
        append(servers, topics.requests, (b"g", dumped(fetch)))
        fetched = responses.first(lambda record: record.key == fetch["correlationId"].encode(), "the offsets")
    assert fetched.value["body"]["topics"][0]["partitions"][0]["committedOffset"] == 41
    assert len(ids(starts)) == started + 1


def test_a_job_that_cannot_continue_ends_with_a_message(running: CoordinatorProcess) -> None:
    coordinator = running
    (jvm,) = (pid for pid in descendants(coordinator.pid) if b"java" in executable(pid))
    os.kill(jvm, signal.SIGKILL)
    assert coordinator.wait() != 0
    # At the same time, threads of pyspark print tracebacks about the lost JVM, sometimes into the same line.
    assert any("error: Spark's JVM has ended unexpectedly, with exit code -9" in line for line in coordinator.output)

    coordinator.options["state-partitions"] = 3
    coordinator.launch()
    assert coordinator.wait() != 0
    assert any("was made with state-partitions 1, the options say 3" in line for line in coordinator.output)
    coordinator.options["state-partitions"] = 1

    newest = max(ids(coordinator.checkpoint / "commits"))
    (coordinator.checkpoint / "commits" / str(newest)).write_text("v9\n{}")
    coordinator.launch()
    assert coordinator.wait() != 0
    assert any(f"commits/{newest} is not a batch that Spark has completed" in line for line in coordinator.output)


def test_the_worker_starts_no_thread_before_it_forks() -> None:
    module = "streaming.job.spark_internals.python_worker.worker_daemon"
    program = f"import threading, {module}; print(threading.active_count(), len(threading._dangling))"
    counted = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS
    )
    assert counted.stdout.split() == ["1", "1"]


@pytest.mark.jvm
def test_the_job_survives_a_restart_of_the_broker(tmp_path: Path) -> None:
    with (
        EmbeddedBroker(data_dir=tmp_path / "kafka") as broker,
        CoordinatorProcess(broker.bootstrap_servers, tmp_path) as coordinator,
    ):
        coordinator.start()
        broker.restart()
        request = commit("g", 7)
        append(broker.bootstrap_servers, coordinator.topics.requests, (b"g", dumped(request)))
        with reading(broker.bootstrap_servers, coordinator.topics.responses) as responses:
            key = request["correlationId"].encode()
            responses.first(lambda record: record.key == key, "an answer after the restart")
        assert coordinator.is_running
        assert coordinator.stop() == 0


def test_starts_and_batches_are_timed_by_the_same_clock(coordinator: CoordinatorProcess) -> None:
    """A start later than its first batches would give members no fresh session after a restart."""
    (start,) = ids(coordinator.checkpoint / "starts")
    assert start <= time.time_ns() // 1_000_000
    newest = max(ids(coordinator.checkpoint / "offsets"))
    metadata = (coordinator.checkpoint / "offsets" / str(newest)).read_text().splitlines()[1]
    assert f'"batchTimestampMs":{start}'[:20] == metadata[metadata.index('"batchTimestampMs"') :][:20]


@pytest.mark.jvm
def test_a_broker_that_does_not_answer_is_named_with_the_reason(without_broker: CoordinatorProcess) -> None:
    assert without_broker.wait() != 0
    assert "Kafka at 127.0.0.1:1" in without_broker.output[-1]
    assert "Connection refused" in without_broker.output[-1]
