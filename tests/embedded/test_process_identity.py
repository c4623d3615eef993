"""Whether the process of another job has ended, with real processes."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from streaming.embedded.process_identity import has_ended, process_identity

PRINT_IDENTITY_AND_WAIT = """
from streaming.embedded.process_identity import process_identity
print(process_identity(), flush=True)
input()
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")


@pytest.fixture
def other() -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", PRINT_IDENTITY_AND_WAIT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def identity_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_process_that_runs_has_not_ended(other: "subprocess.Popen[str]") -> None:
    assert not has_ended(process_identity())
    assert not has_ended(identity_of(other))


def test_a_killed_process_has_ended_before_and_after_its_parent_has_noticed(other: "subprocess.Popen[str]") -> None:
    identity = identity_of(other)
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    assert has_ended(identity)
    other.wait()
    assert has_ended(identity)


def test_another_process_with_the_same_id_is_not_taken_for_it() -> None:
    identity = process_identity()
    assert identity is not None
    of_process, _, started_at = identity.rpartition("/")
    assert has_ended(f"{of_process}/{int(started_at) - 1}")


@pytest.mark.parametrize("process_id", ["0", "-1", "1e3", "999999999999", "2147483648", "", "self"])
def test_a_false_identity_on_a_topic_tells_nothing(process_id: str) -> None:
    identity = process_identity()
    assert identity is not None
    namespace = identity.rsplit("/", 2)[0]
    assert not has_ended(f"{namespace}/{process_id}/1")
    assert not has_ended(process_id)


def test_of_another_host_or_container_or_an_earlier_release_nothing_is_known() -> None:
    identity = process_identity()
    assert identity is not None
    boot, namespace, _, _ = identity.split("/")
    assert not has_ended(f"{boot}/{int(namespace) + 1}/999999999/1")
    assert not has_ended(f"another-boot/{namespace}/999999999/1")
    assert not has_ended(None)
