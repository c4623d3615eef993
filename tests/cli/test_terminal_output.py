"""The terminal of ``run --embedded --gateway``: a first start and restarts print the job's own lines only."""

import re
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from streaming.contract.topics import TopicNames
from streaming.job.group_batch.steps import DEADLINE_CHECK
from tests.support.coordinator_process import QUICK
from tests.support.kafka_io import append, produce_all
from tests.support.processes import Process
from tests.support.topics import create_topic
from tests.support.waiting import LIMIT_SECONDS, wait_until

OPTIONS = {
    **QUICK,
    # As many batches as possible: Spark warns when a snapshot of the state is some batches old.
    "trigger-interval-ms": 0,
    "spark.sql.streaming.stateStore.coordinatorReportSnapshotUploadLag": "true",
    "spark.sql.streaming.stateStore.multiplierForMinVersionDiffToLog": "1",
    "spark.sql.streaming.stateStore.snapshotLagReportInterval": "1s",
}
MIN_BATCHES = 25

EXPECTED_LINES = [
    r"starting a Kafka broker",
    r"Kafka listens on 127\.0\.0\.1:\d+",
    r"starting Spark at local\[2\]",
    r"Python workers: the Arrow-native worker",
    r"(starting with no groups: checkpoint \S+ is new|loading groups from checkpoint \S+)",
    r"ready: .+",
    r"gateway: ready: .+",
    r"Kafka clients connect to 127\.0\.0\.1:\d+, for example: .+",
    r"to list the groups: group-coordinator groups list .+",
    # A busy machine has slow batches, and more so in its first minute.
    r"batch \d+ took .+; cause: .+",
    r"stopping after the batch in flight",
    r"hand-over since .+",
    r"stopped",
    r"gateway: stopping: .+",
    r"gateway: stopped",
]


def unexpected(output: list[str]) -> list[str]:
    return [line for line in output if not any(re.fullmatch(pattern, line) for pattern in EXPECTED_LINES)]


def use_a_group(process: Process) -> None:
    """Join a group through the gateway, and commit: the first start of all that the broker and the job do."""
    ready = process.await_line("that the gateway is ready", lambda line: line.startswith("gateway: ready"))
    address = ready.partition("clients connect to ")[2].partition(";")[0]
    topic = f"topic-{process.pid}"
    create_topic(address, topic)
    produce_all(address, topic, [b"value"])
    consumer = Consumer({"bootstrap.servers": address, "group.id": "group", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([topic])
        assert [message.value() for message in consumer.consume(1, LIMIT_SECONDS)] == [b"value"]
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()


def run_batches(process: Process, commits: Path) -> None:
    """Let the job run batches, which read nothing but wake events."""
    listens = next(line for line in process.output if line.startswith("Kafka listens"))
    broker = listens.partition(" on ")[2]
    before = len(list(commits.iterdir()))

    def has_run() -> bool:
        append(broker, TopicNames().requests, (None, DEADLINE_CHECK))
        return len(list(commits.iterdir())) > before + MIN_BATCHES

    wait_until(has_run, "batches")


@pytest.mark.jvm
@pytest.mark.timeout(900)
def test_starts_and_restarts_print_nothing_but_the_jobs_own_lines(tmp_path: Path) -> None:
    commits = tmp_path / "checkpoint" / "commits"
    arguments = ["run", "--embedded", "--checkpoint", str(tmp_path / "checkpoint")]
    arguments += ["--gateway", "--gateway-listen", "127.0.0.1:0"]
    for key, value in OPTIONS.items():
        arguments += ["--set", f"{key}={value}"]
    with Process("run", [sys.executable, "-m", "streaming.cli", *arguments]) as process:
        for end in (process.kill, process.stop):
            process.start()
            process.await_line("that it is ready", lambda line: line.startswith("ready"))
            use_a_group(process)
            run_batches(process, commits)
            end()
            assert unexpected(process.output) == []
