"""Child processes: their output, their end, and jobs that report nothing."""

import socket
import sys
from pathlib import Path

import pytest

from streaming.embedded.child_process import ChildProcess
from streaming.embedded.job_process import JobProcess, NotReported
from streaming.embedded.ports import EPHEMERAL_PORTS, free_address, free_ports
from tests.support.waiting import LIMIT_SECONDS, wait_until

PROGRAM = """
import os, sys, time
print("begun", os.environ.get("ADDED"), flush=True)
if len(sys.argv) > 1:
    sys.exit(int(sys.argv[1]))
time.sleep(3600)
"""


class Child:
    """A child with its output."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.lines: list[str] = []
        self.log = folder / "child.log"
        command = [sys.executable, "-c", PROGRAM, *arguments]
        self.process = ChildProcess("child", command, self.log, self.lines.append, {"ADDED": "yes"})

    def await_begin(self) -> None:
        wait_until(lambda: self.lines == ["begun yes"], "the first line", describe=lambda: str(self.lines))


def test_a_command_that_ends_by_itself_gives_its_exit_code_and_its_output(tmp_path: Path) -> None:
    child = Child(tmp_path, "7")
    with child.process as process:
        assert process.wait(LIMIT_SECONDS) == 7
        assert not process.is_running
    assert child.lines == ["begun yes"]
    assert child.log.read_text() == "begun yes\n"


def test_a_command_that_goes_on_is_killed_at_the_end_of_its_block(tmp_path: Path) -> None:
    child = Child(tmp_path)
    with child.process as process:
        child.await_begin()
        assert process.wait(0.1) is None
        assert process.is_running
    assert not child.process.is_running


@pytest.mark.parametrize("end", ["kill", "terminate"])
def test_a_command_can_be_started_again(tmp_path: Path, end: str) -> None:
    child = Child(tmp_path)
    with child.process as process:
        child.await_begin()
        getattr(process, end)()
        assert not process.is_running
        child.lines.clear()
        process.start()
        child.await_begin()


def test_a_kill_need_not_be_awaited(tmp_path: Path) -> None:
    child = Child(tmp_path)
    with child.process as process:
        child.await_begin()
        process.send_kill()
        wait_until(lambda: not process.is_running, "the end of the command")


def test_a_job_that_ends_before_it_is_ready_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    unknown = ("--set", "no.such.option=1")
    servers = f"127.0.0.1:{free_ports(1)[0]}"
    with (
        JobProcess("job-1", servers, tmp_path / "checkpoint", tmp_path / "job.log", arguments=unknown) as job,
        pytest.raises(NotReported, match=r"job-1 did not report that it is ready[\s\S]*no\.such\.option"),
    ):
        job.await_ready()
    assert not job.is_running


def test_a_line_of_a_job_is_found_whether_it_is_json_or_not(tmp_path: Path) -> None:
    unknown = ("--set", "no.such.option=1")
    with JobProcess("job-1", "unused:1", tmp_path / "c", tmp_path / "job.log", arguments=unknown) as job:
        line = job.await_line("what is wrong", lambda line: "no.such.option" in line)
    assert line.startswith("error: ")


def test_a_free_address_is_one_of_this_machine() -> None:
    host, _, port = free_address().partition(":")
    assert host == "127.0.0.1"
    with socket.create_server((host, int(port))):
        pass


def test_no_connection_of_this_machine_gets_a_free_port() -> None:
    if not EPHEMERAL_PORTS.exists():
        pytest.skip("this system does not tell which ports it gives to connections")
    first, last = map(int, EPHEMERAL_PORTS.read_text().split())
    ports = free_ports(50)
    assert len(set(ports)) == 50
    assert not [port for port in ports if first <= port <= last]
