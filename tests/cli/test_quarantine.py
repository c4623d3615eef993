"""``groups quarantine`` against a group whose stored state cannot be read.

The operator runs on the topics of a real broker without Spark, because no request can damage the state of a job.
"""

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from coordinator_logic.snapshot import FORMAT_VERSION
from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.group_batch.processing import process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.rows.records import KafkaRecord
from streaming.job.topics.creation import ensure_topics
from streaming.job.topics.layout import TopicLayout
from tests.cli.test_commands import printed_json, run
from tests.cli.test_completion import completed
from tests.support.request_events import commit, dumped

STORED = b"\xff" + bytes(range(256)) * 4_000
"""A megabyte with a format version that no release has."""


class DamagedJob:
    """Answers the requests of all groups; ``billing`` has a state that cannot be read."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.topics = TopicNames(f"quarantine-{uuid.uuid4().hex[:8]}-")
        config = {"bootstrap.servers": bootstrap_servers}
        ensure_topics(config, self.topics, TopicLayout(response_partitions=1))
        self.states: dict[str, StateRow | None] = {"billing": StateRow(STORED)}
        self._producer = Producer(config)
        self._consumer = Consumer({**config, "group.id": "unused", "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(self.topics.requests, 0, 0)])
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._consumer.close()

    def append(self, group_id: str, request: object) -> None:
        self._producer.produce(self.topics.requests, dumped(request), group_id.encode(), 0)
        assert self._producer.flush(30) == 0

    def _run(self) -> None:
        settings = Settings(self.topics, 1)
        while not self._stopped.is_set():
            message = self._consumer.poll(0.05)
            if message is None or message.error():
                continue
            key, value, time = message.key(), message.value(), message.timestamp()[1]
            assert isinstance(key, bytes)
            record = KafkaRecord(time, 0, message.offset() or 0, key, value)
            group_id = key.decode()
            outcome = process(settings, group_id, [record], self.states.get(group_id), time)
            self.states[group_id] = outcome.state
            # The answer comes last: whoever has it finds the group in the directory.
            for row in sorted(outcome.rows, key=lambda row: row.topic == self.topics.responses):
                self._producer.produce(row.topic, row.value, row.key, -1 if row.partition is None else row.partition)
                self._producer.flush(30)


@pytest.fixture
def job(broker: EmbeddedBroker) -> Iterator[DamagedJob]:
    damaged = DamagedJob(broker.bootstrap_servers)
    try:
        yield damaged
    finally:
        damaged.close()


def test_a_quarantined_group_is_listed_shown_exported_and_dropped(job: DamagedJob, tmp_path: Path) -> None:
    connection = ("-b", job.bootstrap_servers, "--topic-prefix", job.topics.prefix)
    job.append("healthy", commit("healthy", 1))

    refused = run("offsets", "list", "billing", *connection)
    assert refused.stderr.endswith(
        "error: the coordinator cannot serve billing: its stored state may be unreadable, see groups quarantine list\n"
    )
    assert printed_json(run("groups", "quarantine", "list", *connection, "--json")) == ["billing"]
    assert completed(" ".join(("groups quarantine show", *connection, ""))) == ["billing"]
    listed = {
        group["groupId"]: group["groupState"] for group in printed_json(run("groups", "list", *connection, "--json"))
    }
    assert listed == {"billing": "Dead", "healthy": "Empty"}

    shown = run("groups", "quarantine", "show", "billing", *connection).stdout
    readable = ", ".join(map(str, range(1, FORMAT_VERSION + 1)))
    assert shown == (
        f"billing: the snapshot has format version 255; readable here: {readable}\n"
        f"format version 255, {len(STORED):,} bytes\n"
    )

    file = tmp_path / "billing.snapshot"
    exported = run("groups", "quarantine", "export", "billing", "-o", str(file), *connection)
    assert exported.stdout == f"billing: {len(STORED):,} bytes written to {file}\n"
    assert file.read_bytes() == STORED

    kept = run("groups", "quarantine", "drop", "healthy", *connection)
    assert (kept.returncode, kept.stderr.endswith("error: group 'healthy' is not quarantined\n")) == (1, True), (
        kept.stderr
    )

    assert (
        run("groups", "quarantine", "drop", "billing", "--reason", "test", *connection).stdout == "billing: dropped\n"
    )
    assert printed_json(run("groups", "quarantine", "list", *connection, "--json")) == []
    gone = run("groups", "quarantine", "show", "billing", *connection)
    assert (gone.returncode, gone.stderr.endswith("error: group 'billing' does not exist\n")) == (1, True), gone.stderr
    job.append("billing", commit("billing", 1))
    listed = printed_json(run("offsets", "list", "billing", *connection, "--json"))
    assert [len(topic["partitions"]) for topic in listed["topics"]] == [1]
