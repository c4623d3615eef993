"""Kafka Connect in distributed mode: a group of protocol type ``connect`` that shares connectors and tasks."""

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from tests.clients.programs.connect import ConnectWorker
from tests.clients.system import System
from tests.support.waiting import wait_until

CLUSTER = "connect-cluster"


@pytest.fixture
def workers(system: System, tmp_path: Path) -> Iterator[list[ConnectWorker]]:
    """Two workers of one Connect cluster, not started."""
    created = [ConnectWorker(f"worker-{n}", system.bootstrap_servers, CLUSTER, tmp_path) for n in (1, 2)]
    try:
        yield created
    finally:
        for worker in created:
            worker.kill()


class Pipe:
    """A source file whose lines Connect copies through a topic to a sink file."""

    def __init__(self, folder: Path) -> None:
        self.source, self.sink = folder / "source.txt", folder / "sink.txt"
        self.written: list[str] = []

    def write(self, *lines: str) -> None:
        """Append lines to the source file."""
        self.written += lines
        with self.source.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    @property
    def has_arrived(self) -> bool:
        """Whether every line is in the sink file; after a crash some may be there twice."""
        return self.sink.exists() and set(self.sink.read_text().split()) == set(self.written)


async def describe(bootstrap_servers: str) -> tuple[str, str, int]:
    """The state, protocol type and number of members of the workers' group."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        ((described,),) = [answer.groups for answer in await admin.describe_consumer_groups([CLUSTER])]
    finally:
        await admin.close()
    _error, _group_id, state, protocol_type, _protocol, members = described[:6]
    return state, protocol_type, len(members)


def test_two_workers_share_tasks_and_take_over_from_each_other(
    system: System, workers: list[ConnectWorker], tmp_path: Path
) -> None:
    first, second = workers
    pipe = Pipe(tmp_path)
    topic = system.new_topic(1)

    def both_outputs() -> str:
        return f"{first.tail()}\n{second.tail()}"

    # An HTTP error is an OSError: the worker has no status yet.
    eventually = partial(wait_until, describe=both_outputs, ignore=(OSError,), pause=0.1)

    def running() -> set[str]:
        source, sink = second.task_workers("source"), second.task_workers("sink")
        return source | sink if source and sink else set()

    for worker in workers:
        worker.start()
    file_stream = "org.apache.kafka.connect.file.FileStream"
    pipe.write("one", "two")
    first.create("source", {"connector.class": f"{file_stream}SourceConnector", "file": pipe.source, "topic": topic})
    first.create("sink", {"connector.class": f"{file_stream}SinkConnector", "file": pipe.sink, "topics": topic})
    eventually(lambda: running() == {first.address, second.address}, "each worker runs a task")
    eventually(lambda: pipe.has_arrived, "lines arrived")

    def is_stable() -> bool:
        return asyncio.run(describe(system.bootstrap_servers)) == ("Stable", "connect", 2)

    eventually(is_stable, "the group is stable")

    system.coordinator.kill()
    system.gateway.kill()
    pipe.write("down")
    system.start()
    pipe.write("restarted")
    eventually(lambda: pipe.has_arrived, "lines arrived after the restart")
    # A worker that has missed its coordinator for long revokes its tasks itself, and has them again after a rebalance.
    eventually(lambda: running() == {first.address, second.address}, "each worker runs a task after the restart")

    first.kill()
    eventually(lambda: running() == {second.address}, "the second worker took over")
    pipe.write("three")
    eventually(lambda: pipe.has_arrived, "lines arrived through the second worker")

    first.start()
    eventually(lambda: running() == {first.address, second.address}, "both workers run tasks again")
    pipe.write("four")
    eventually(lambda: pipe.has_arrived, "lines arrived through both workers")
    assert first.stop() in (0, 143)
    eventually(lambda: running() == {second.address}, "the second worker runs all tasks")
