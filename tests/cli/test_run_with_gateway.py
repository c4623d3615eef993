"""``run --embedded --gateway``: broker, coordinator and gateway by one command."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.contract.topics import TopicNames
from tests.cli.consumer_group import READY, consume_and_commit, gateway_address
from tests.support.coordinator_process import QUICK, reports_ready
from tests.support.kafka_io import reading
from tests.support.processes import Process, command_line, descendants, exists
from tests.support.waiting import LIMIT_SECONDS, wait_until

LISTENS = "Kafka listens on "


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Process]:
    arguments = ["run", "--json", "--embedded", "--checkpoint", str(tmp_path / "checkpoint")]
    arguments += ["--gateway", "--gateway-listen", "127.0.0.1:0"]
    identity_key = tmp_path / "identity.key"
    identity_key.write_text("k" * 64)
    arguments += ["--set", f"identity-key-file={identity_key}"]
    for key, value in QUICK.items():
        arguments += ["--set", f"{key}={value}"]
    with Process("run --embedded --gateway", [sys.executable, "-m", "streaming.cli.main", *arguments]) as started:
        started.start()
        yield started


@pytest.mark.jvm
def test_a_consumer_group_works_through_the_gateway_that_run_starts(command: Process) -> None:
    command.await_line("that it is ready", reports_ready)
    ready = command.await_line("that the gateway is ready", lambda line: READY in line)
    consume_and_commit(gateway_address(ready))
    listens = command.await_line("the broker's address", lambda line: LISTENS in line)
    with reading(json.loads(listens)["message"].removeprefix(LISTENS), TopicNames().journal) as journal:
        causes = [entry.value["cause"] for entry in journal.to_the_end()]
    assert causes
    # The gateway vouches for its clients with the key that it shares with the job.
    assert {(cause["clientHost"], cause["claimed"]) for cause in causes if cause["type"] == "Request"} == {
        ("/127.0.0.1", False)
    }
    started = descendants(command.pid)
    assert command.stop() == 0
    # A process that has ended stays in the process table until its parent reaps it.
    wait_until(lambda: not any(map(exists, started)), "the end of all processes")


def gateway_process(command: Process) -> int:
    """The process id of the gateway itself: the last process with its command line, which its guard has too."""
    return [pid for pid in descendants(command.pid) if b"gateway" in command_line(pid)][-1]


def spark_jvm(command: Process) -> int:
    """The process id of the job's JVM; the embedded broker has another one."""
    (jvm,) = [pid for pid in descendants(command.pid) if any(b"org.apache.spark" in word for word in command_line(pid))]
    return jvm


@pytest.mark.jvm
def test_the_gateway_ends_with_the_command_when_the_job_dies(command: Process) -> None:
    ready = command.await_line("that the gateway is ready", lambda line: READY in line)
    command.await_line("that it is ready", reports_ready)
    host, port = gateway_address(ready).split(":")
    started = descendants(command.pid)
    os.kill(spark_jvm(command), signal.SIGKILL)
    assert command.wait() == 1
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), LIMIT_SECONDS)
    wait_until(lambda: not any(map(exists, started)), "the end of all processes")


@pytest.mark.jvm
def test_the_command_ends_with_an_error_when_its_gateway_dies(command: Process) -> None:
    command.await_line("that it is ready", reports_ready)
    started = descendants(command.pid)
    os.kill(gateway_process(command), signal.SIGKILL)
    assert command.wait() == 1
    command.await_line("why", lambda line: "the gateway ended with exit code 137" in line)
    wait_until(lambda: not any(map(exists, started)), "the end of all processes")


@pytest.mark.long
@pytest.mark.jvm
def test_the_command_ends_with_an_error_when_its_broker_dies(command: Process, tmp_path: Path) -> None:
    command.await_line("that it is ready", reports_ready)
    command.await_line("what to try first", lambda line: "to list the groups: group-coordinator groups list -b" in line)
    command.await_line("where clients connect", lambda line: "kafka-console-consumer.sh --bootstrap-server" in line)
    data_dir = tmp_path / "checkpoint.kafka"
    again = [sys.executable, "-m", "streaming.cli", "run", "--embedded", "--checkpoint", str(tmp_path / "checkpoint")]
    refused = subprocess.run([*again, "--gateway"], capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    in_use = f"error: {data_dir} is in use by process {command.pid} (group-coordinator run)\n"
    assert (refused.returncode, refused.stdout + refused.stderr) == (1, in_use)
    started = descendants(command.pid)
    os.kill([pid for pid in started if b"kafka.Kafka" in command_line(pid)][-1], signal.SIGKILL)
    assert command.wait() == 1
    ended = f"error: the Kafka broker has ended: killed by SIGKILL; its log: {data_dir / 'broker.log'}"
    command.await_line("why", lambda line: line == ended)
    wait_until(lambda: not any(map(exists, started)), "the end of all processes")


@pytest.mark.long
@pytest.mark.jvm
def test_the_log_of_a_broker_is_not_named_where_it_is_lost_with_the_command(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "streaming.cli", "run", "--json", "--embedded"]
    with Process("run --embedded", words, environment={"TMPDIR": str(tmp_path)}) as command:
        command.start()
        command.await_line("the broker's address", lambda line: LISTENS in line)
        os.kill([pid for pid in descendants(command.pid) if b"kafka.Kafka" in command_line(pid)][-1], signal.SIGKILL)
        assert command.wait() == 1
        ended = "error: the Kafka broker has ended: killed by SIGKILL"
        command.await_line("why", lambda line: line == ended)
    assert list(tmp_path.glob("group-coordinator-*")) == []
