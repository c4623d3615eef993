"""Run a command that cannot outlive the process that started it, however that one ends.

    python die_with_parent.py PARENT_PID FOLDER_OR_EMPTY COMMAND [ARGUMENT ...]

The command's process id is printed on stdout, as a line; the command itself writes to this process's
stderr, and its exit code is passed on. When PARENT_PID is gone before the command has ended, the command
is sent SIGTERM, then SIGKILL, and the folder (when one is named) is removed, since nobody else is left
to do it.

Linux can send a signal at a parent's death (PR_SET_PDEATHSIG), but it does so when the *thread* that
forked ends, and other systems cannot. A process's parent id changes exactly when its parent has died,
everywhere; hence this process in between. It forks from the one thread that lives as long as it does, so
that Linux's way covers the case that this process is killed too, as in `killall -9 python3`.

Nothing but the standard library is imported: the file is run by its path, without the package.
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
    """Returns the command's exit code, or 128 + the signal that ended it."""
    command = subprocess.Popen(
        command_line,
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        # Safe, since there is no other thread yet whose locks the fork could copy.
        preexec_fn=_be_killed_with_the_forking_thread,  # noqa: PLW1509
    )
    signal.signal(signal.SIGTERM, lambda _number, _frame: command.terminate())
    orphaned = threading.Event()
    watch = threading.Thread(target=_end_when_orphaned, args=(parent_pid, command, orphaned), daemon=True)
    watch.start()
    # The pipe has no reader any more when the parent died in the meantime; the thread takes care of that.
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
