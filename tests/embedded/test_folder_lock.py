"""A folder's lock: it names its holder, and lasts until the holder's children have ended."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.contract.errors import CannotRun
from streaming.embedded.folder_lock import folder_lock, require_unused
from tests.support.waiting import LIMIT_SECONDS

HOLDING = """
import signal, subprocess, sys
from pathlib import Path
from streaming.embedded.folder_lock import folder_lock

with folder_lock(Path(sys.argv[1])) as lock:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=int(sys.argv[2]), pass_fds=[lock])
    print(child.pid, flush=True)
    signal.pause()
"""
"""Holds the lock, as does its child until its standard input ends."""


def test_a_folder_in_use_names_the_process_and_stays_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    with folder_lock(folder):
        noted = (folder / ".lock").read_bytes()
        for use in (lambda: folder_lock(folder).__enter__(), lambda: require_unused(folder)):
            with pytest.raises(CannotRun, match=rf"^{folder} is in use by process {os.getpid()} \(.+\)$"):
                use()
        assert (folder / ".lock").read_bytes() == noted
    require_unused(folder)


def test_a_folder_that_does_not_exist_is_not_made(tmp_path: Path) -> None:
    require_unused(tmp_path / "missing")
    require_unused(None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b'{"process_id": "one"}', b"7"])
def test_a_holder_that_has_noted_nothing_readable_is_another_process(tmp_path: Path, content: bytes) -> None:
    with folder_lock(tmp_path):
        (tmp_path / ".lock").write_bytes(content)
        with pytest.raises(CannotRun, match=r"is in use by another process$"):
            require_unused(tmp_path)


def test_the_child_of_a_killed_process_is_waited_for(tmp_path: Path) -> None:
    read, write = os.pipe()
    command = [sys.executable, "-c", HOLDING, str(tmp_path), str(read)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, pass_fds=[read]) as holding:
        assert holding.stdout is not None
        assert int(holding.stdout.readline())
        with pytest.raises(CannotRun, match=f"is in use by process {holding.pid} "):
            require_unused(tmp_path)
        holding.send_signal(signal.SIGKILL)
        holding.wait(LIMIT_SECONDS)
    os.close(read)
    waiting = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from pathlib import Path; "
            "from streaming.embedded.folder_lock import folder_lock; print(flush=True); "
            "folder_lock(Path(sys.argv[1])).__enter__()",
            str(tmp_path),
        ],
        stdout=subprocess.PIPE,
    )
    with waiting:
        assert waiting.stdout is not None
        waiting.stdout.readline()
        # Not awaited: whether it has looked already, it must get the lock.
        os.close(write)
        assert waiting.wait(LIMIT_SECONDS) == 0
