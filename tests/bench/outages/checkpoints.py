"""How long the commands for checkpoints take: ``python -m tests.bench.outages.checkpoints --groups 100000``.

A journal is written as a job would have, of groups of two members with a few commits, and a checkpoint is rebuilt from
it. The other commands follow with that one. Each is a process of its own, with its own Spark; its time includes all.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from coordinator_logic.records import directory_entry
from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.backups.backup import finished_backups
from streaming.job.group_batch.steps import DEADLINE_CHECK
from streaming.job.topics.creation import ensure_topics
from streaming.job.topics.layout import TopicLayout
from tests.bench.journal.appending import LIMIT_SECONDS, Record, append_all
from tests.bench.usage import memory
from tests.logic.driver import Driven
from tests.support.processes import Process, process_tree
from tests.support.waiting import wait_until


class Timed(msgspec.Struct, frozen=True):
    """A command, and how long it took in seconds."""

    command: str
    seconds: float
    largest_mib: float
    last_line: str


def main(groups: Annotated[int, typer.Option(min=1)] = 100_000, driver_memory: str = "1g") -> None:
    """Measure each command, and print a line of JSON for it."""
    with tempfile.TemporaryDirectory() as name, EmbeddedBroker() as broker:
        folder, topics = Path(name), TopicNames()
        ensure_topics({"bootstrap.servers": broker.bootstrap_servers}, topics, TopicLayout(None, None, None))
        written = append_all(broker.bootstrap_servers, records_of_groups(topics, groups), {"acks": 1})
        print(f"{groups} groups, {written} records", flush=True)
        place, backups, rocksdb = folder / "checkpoint", folder / "backups", folder / "rocksdb"
        brokers, heap = ("-b", broker.bootstrap_servers), f"--set=driver-memory={driver_memory}"
        _measure("rebuild", place, *brokers, heap)
        _measure("backup", place, backups)
        _measure("repartition", place, "--state-partitions", "4", heap)
        _measure("migrate", place, rocksdb, "--state-store", "rocksdb", heap)
        _measure("verify", rocksdb, heap)
        (backup,) = finished_backups(backups)
        _measure("restore", backup, folder / "restored", *brokers, heap)
        _measure("rebuild", folder / "again", "--backup", backup, *brokers, heap)


def _measure(*arguments: object) -> None:
    print(msgspec.json.encode(timed(arguments)).decode(), flush=True)


def timed(arguments: Sequence[object]) -> Timed:
    """Run ``group-coordinator checkpoint`` with these arguments. Raises CalledProcessError."""
    words = [str(argument) for argument in arguments]
    process = Process("checkpoint", [sys.executable, "-m", "streaming.cli", "checkpoint", *words])
    begun, largest = time.monotonic(), 0.0
    process.start()

    def has_ended() -> bool:
        nonlocal largest
        if process.is_running:
            largest = max(largest, memory(process_tree(process.pid)).rss_mib)
        return not process.is_running

    try:
        wait_until(has_ended, words[0], LIMIT_SECONDS, describe=process.tail, pause=0.2)
        seconds = time.monotonic() - begun
        if code := process.wait():
            failure = subprocess.CalledProcessError(code, words)
            failure.add_note(process.tail())
            raise failure
    finally:
        process.kill()
    return Timed(words[0], round(seconds, 1), round(largest), process.output[-1])


def records_of_groups(topics: TopicNames, groups: int) -> Iterator[Record]:
    """The journal and the directory of so many groups, and requests behind those that the journal names."""
    driven = Driven()
    first, _ = driven.stable_group(2)
    for offset in (1, 2):
        driven.commit(first, {("topic", partition): offset for partition in range(3)})
    journal = [msgspec.json.encode(entry) for entry in driven.journal]
    directory = msgspec.json.encode(directory_entry(driven.group))
    for _ in range(len(driven.log) + 1):
        yield topics.requests, b"none", DEADLINE_CHECK
    old = f'"groupId":"{driven.group_id}"'.encode()
    for number in range(groups):
        group_id = f"group-{number}"
        new = f'"groupId":"{group_id}"'.encode()
        for entry in journal:
            yield topics.journal, group_id.encode(), entry.replace(old, new, 1)
        yield topics.directory, group_id.encode(), directory.replace(old, new, 1)


if __name__ == "__main__":
    typer.run(main)
