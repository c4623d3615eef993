"""What changing the number of partitions costs clients: ``python -m tests.bench.outages.partitions --groups 100000``.

A client commits for a group of its own ten times a second, throughout. The request topic gets more partitions while the
job runs. Then the job is stopped, backed up, given more state partitions and started again. The figures are the longest
times without an answer. At the end, each group has to be there.
"""

import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from confluent_kafka.admin import AdminClient, NewPartitions

from coordinator_logic import apis
from coordinator_logic.messages import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from streaming.client import CoordinatorClient
from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.topics.creation import ensure_topics
from streaming.job.topics.layout import TopicLayout
from tests.bench.journal.appending import append_all
from tests.bench.outages.checkpoints import records_of_groups, timed
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.waiting import LIMIT_SECONDS, wait_until

PARTITIONS = 4
PROBE = "probe"
INTERVAL_SECONDS = 0.1
STEADY_ANSWERS = 50
"""How many answers come before a change, and after it."""

ANSWERS_WITHIN_SECONDS = 600.0
REQUEST_TIMEOUT_MS = 600_000


class Change(msgspec.Struct, frozen=True):
    """A change of a number of partitions: the longest time without an answer, and what the commands took of it, in
    seconds."""

    what: str
    silence_seconds: float
    commands: dict[str, float]


class Answers:
    """When the commits of a client were answered, by ``time.monotonic``."""

    def __init__(self, job: CoordinatorProcess) -> None:
        self._job = job
        self._client = CoordinatorClient(job.bootstrap_servers, request_timeout_ms=REQUEST_TIMEOUT_MS)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send, name="probe", daemon=True)
        self.times: list[float] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Send until the end of the block."""
        self._thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._thread.join()
            self._client.close()

    def await_more(self) -> None:
        """Wait for answers in a row."""
        enough = len(self.times) + STEADY_ANSWERS

        def has_answers() -> bool:
            assert self._job.is_running, self._job.tail()
            return len(self.times) >= enough

        wait_until(has_answers, "answers to the probe", ANSWERS_WITHIN_SECONDS)

    def longest_silence(self, since: float) -> float:
        """The longest time between two answers, the second of which came after ``since``."""
        answered = sorted(self.times)
        return round(max(after - before for before, after in pairwise(answered) if after > since), 1)

    def _send(self) -> None:
        offset = 0
        while not self._stop.wait(INTERVAL_SECONDS):
            offset += 1
            request = OffsetCommitRequest(PROBE, [TopicToCommit("topic", [PartitionToCommit(0, offset)])])
            self._client.ask(apis.OFFSET_COMMIT, PROBE, request).add_done_callback(
                lambda _: self.times.append(time.monotonic())
            )


def main(groups: Annotated[int, typer.Option(min=1)] = 100_000, driver_memory: str = "1g") -> None:
    """Measure both changes, and print a line of JSON for each."""
    # As an exception, SIGTERM ends the processes, too.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as name, EmbeddedBroker() as broker:
        folder, topics = Path(name), TopicNames()
        ensure_topics({"bootstrap.servers": broker.bootstrap_servers}, topics, TopicLayout(None, None, None))
        append_all(broker.bootstrap_servers, records_of_groups(topics, groups), {"acks": 1})
        brokers, heap = ("-b", broker.bootstrap_servers), f"--set=driver-memory={driver_memory}"
        options = {"driver-memory": driver_memory, "topic-prefix": ""}
        with CoordinatorProcess(broker.bootstrap_servers, folder, options, defaults={}) as job:
            timed(["rebuild", job.checkpoint, *brokers, heap])
            job.start()
            answers = Answers(job)
            with answers.running():
                _print(_more_request_partitions(broker, topics, answers))
                _print(_more_state_partitions(job, folder, answers, heap))
            job.stop()
            print(timed(["verify", job.checkpoint, heap]).last_line, flush=True)


def _more_request_partitions(broker: EmbeddedBroker, topics: TopicNames, answers: Answers) -> Change:
    answers.await_more()
    began = time.monotonic()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
    (future,) = admin.create_partitions([NewPartitions(topics.requests, PARTITIONS)]).values()
    future.result(LIMIT_SECONDS)
    answers.await_more()
    return Change("request partitions", answers.longest_silence(began), {})


def _more_state_partitions(job: CoordinatorProcess, folder: Path, answers: Answers, heap: str) -> Change:
    answers.await_more()
    began = time.monotonic()
    job.stop()
    backup = timed(["backup", job.checkpoint, folder / "backups"])
    changed = timed(["repartition", job.checkpoint, "--state-partitions", str(PARTITIONS), heap])
    job.start()
    answers.await_more()
    commands = {each.command: each.seconds for each in (backup, changed)}
    return Change("state partitions", answers.longest_silence(began), commands)


def _print(change: Change) -> None:
    print(msgspec.json.encode(change).decode(), flush=True)


if __name__ == "__main__":
    typer.run(main)
