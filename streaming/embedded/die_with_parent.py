"""Run a command that ends when the process that started it ends, in whatever way.

    python die_with_parent.py PARENT_PID FOLDER_OR_EMPTY COMMAND [ARGUMENT ...]

This process prints the command's process id as a line on stdout, passes the command's exit code on, and gives the
command its own stdin and stderr. If PARENT_PID ends before the command, it sends the command SIGTERM, then SIGKILL, and
removes the folder if one is named, since the parent can no longer do so.

Linux can signal a child when its parent ends (PR_SET_PDEATHSIG), but does so when the *thread* that forked ends; other
systems cannot. A process's parent id changes exactly when the parent has ended, on every system. Hence this process in
between. It forks from its main thread, so that PR_SET_PDEATHSIG covers the case that this process itself is killed, as
by `killall -9 python3`.

It imports only the standard library, because it is run by its path, without the package.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

POLL_SECONDS = 0.25
TERMINATION_SECONDS = 10.0
PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>


def _be_killed_with_the_forking_thread() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_when_orphaned(parent_pid: int, command: subprocess.Popen[bytes], orphaned: threading.Event) -> None:
    while os.getppid() == parent_pid:
        time.sleep(POLL_SECONDS)
    orphaned.set()
    command.terminate()
    try:
        command.wait(TERMINATION_SECONDS)
    except subprocess.TimeoutExpired:
        command.kill()


def main(parent_pid: int, folder: str, command_line: list[str]) -> int:
    """Run the command and return its exit code, or 128 + the signal that ended it."""
    command = subprocess.Popen(
        command_line,
        stdout=sys.stderr,
        # It inherits what this process has, and that is only what was passed on: the lock of a broker's folder.
        close_fds=False,
        # Safe: no other thread exists yet whose locks the fork could copy.
        preexec_fn=_be_killed_with_the_forking_thread,  # noqa: PLW1509
    )
    signal.signal(signal.SIGTERM, lambda _number, _frame: command.terminate())
    orphaned = threading.Event()
    watch = threading.Thread(target=_end_when_orphaned, args=(parent_pid, command, orphaned), daemon=True)
    watch.start()
    # The pipe has no reader if the parent has ended in the meantime; the thread handles that.
    try:
        print(command.pid, flush=True)
    except BrokenPipeError:
        sys.stdout = None
    exit_code = command.wait()
    if folder and orphaned.is_set():
        shutil.rmtree(folder, ignore_errors=True)
    return exit_code if exit_code >= 0 else 128 - exit_code


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
