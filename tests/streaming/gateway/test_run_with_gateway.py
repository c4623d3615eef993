"""``run --embedded --gateway``: all of it on one machine by one command."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.streaming.client_support import wait_until
from tests.streaming.coordinator_process import QUICK, descendants
from tests.streaming.gateway.clients import LIMIT_SECONDS, produce_all

START_SECONDS = 120


class Command:
    """The command with what it says."""

    def __init__(self, folder: Path) -> None:
        settings = [f"{key}={value}" for key, value in QUICK.items()]
        command = [sys.executable, "-m", "streaming.cli", "run", "--json", "--embedded", "--checkpoint", str(folder)]
        command += ["--gateway", "--gateway-listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            [*command, *(part for setting in settings for part in ("--set", setting))],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.said: list[str] = []
        self.ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            for line in self.process.stdout:
                self.said.append(line)
                if line.startswith("{") and json.loads(line)["ready"]:
                    self.ready.set()

    def kill(self) -> None:
        """End it and all that it has started."""
        if self.process.poll() is None:
            for pid in [self.process.pid, *descendants(self.process.pid)]:
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join(LIMIT_SECONDS)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    started = Command(tmp_path / "checkpoint")
    try:
        yield started
    finally:
        started.kill()


def test_a_consumer_group_works_through_the_gateway_that_run_brings(command: Command) -> None:
    assert command.ready.wait(START_SECONDS), command.said
    told = next(line for line in command.said if "gateway: ready" in line)
    address = told.partition("clients connect to ")[2].partition(";")[0]
    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic("t", 1, 1)])["t"].result(LIMIT_SECONDS)
    produce_all(address, "t", [b"one", b"two"])
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["t"])
        assert [message.value() for message in consumer.consume(2, LIMIT_SECONDS)] == [b"one", b"two"]
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    started = descendants(command.process.pid)
    command.process.send_signal(signal.SIGTERM)
    assert command.process.wait(START_SECONDS) == 0
    # A process that has ended stays in the table until somebody looks.
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started), "the end of all processes")
