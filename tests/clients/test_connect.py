"""Kafka Connect in distributed mode: a group of its own protocol type, whose leader hands out connectors and tasks."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.admin import AIOKafkaAdminClient

from tests.clients.connect import ConnectWorker
from tests.clients.system import System
from tests.clients.waiting import await_condition

CLUSTER = "connect-cluster"


@pytest.fixture
def workers(system: System, tmp_path: Path) -> Iterator[list[ConnectWorker]]:
    """Two workers of one cluster, not started."""
    made = [ConnectWorker(f"worker-{n}", system.bootstrap_servers, CLUSTER, tmp_path) for n in (1, 2)]
    try:
        yield made
    finally:
        for worker in made:
            worker.kill()


class Pipe:
    """Lines that are written to one file, and go through a topic to another one."""

    def __init__(self, folder: Path) -> None:
        self.source, self.sink = folder / "source.txt", folder / "sink.txt"
        self.written: list[str] = []

    def write(self, *lines: str) -> None:
        self.written += lines
        with self.source.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    @property
    def has_arrived(self) -> bool:
        """Whether every line came out; after a crash some come twice."""
        return self.sink.exists() and set(self.sink.read_text().split()) == set(self.written)


async def describe(bootstrap_servers: str) -> tuple[str, str, int]:
    """State and protocol type of the workers' group, and how many members it has."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        ((described,),) = [answer.groups for answer in await admin.describe_consumer_groups([CLUSTER])]
    finally:
        await admin.close()
    _error, _group_id, state, protocol_type, _protocol, members = described[:6]
    return state, protocol_type, len(members)


def test_two_workers_share_connectors_and_take_over_from_each_other(
    system: System, workers: list[ConnectWorker], tmp_path: Path
) -> None:
    first, second = workers
    pipe = Pipe(tmp_path)
    topic = system.new_topic(1)

    def both_said() -> str:
        return f"{first.tail()}\n{second.tail()}"

    def running() -> set[str]:
        source, sink = second.task_workers("source"), second.task_workers("sink")
        return source | sink if source and sink else set()

    for worker in workers:
        worker.start()
    file_stream = "org.apache.kafka.connect.file.FileStream"
    pipe.write("one", "two")
    first.create("source", {"connector.class": f"{file_stream}SourceConnector", "file": pipe.source, "topic": topic})
    first.create("sink", {"connector.class": f"{file_stream}SinkConnector", "file": pipe.sink, "topics": topic})
    await_condition("each worker runs a task", lambda: running() == {first.address, second.address}, both_said)
    await_condition("lines arrived", lambda: pipe.has_arrived, both_said)

    def is_stable() -> bool:
        return asyncio.run(describe(system.bootstrap_servers)) == ("Stable", "connect", 2)

    await_condition("the group is stable", is_stable, both_said)

    system.coordinator.kill()
    system.gateway.kill()
    pipe.write("unseen")
    system.start()
    pipe.write("seen")
    await_condition("lines arrived after the restart", lambda: pipe.has_arrived, both_said)
    assert running() == {first.address, second.address}

    first.kill()
    await_condition("the other one took over", lambda: running() == {second.address}, both_said)
    pipe.write("three")
    await_condition("lines arrived from one worker", lambda: pipe.has_arrived, both_said)

    first.start()
    await_condition("both work again", lambda: running() == {first.address, second.address}, both_said)
    pipe.write("four")
    await_condition("lines arrived from both again", lambda: pipe.has_arrived, both_said)
    assert first.end() in (0, 143)
    await_condition("the other one works alone", lambda: running() == {second.address}, both_said)
