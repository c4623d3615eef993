"""A fixed share of a core for a process and its children, by a control group of Linux. Only root can make one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import wait_until

CONTROLLER = Path("/sys/fs/cgroup/cpu")
"""That of the first version of control groups; the second one has all controllers in one folder."""

UNIFIED = Path("/sys/fs/cgroup")
PERIOD_MICROSECONDS = 20_000

ENTER = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


class ControlGroup:
    """A control group; ``enter`` are the words before a command that bring it, and what it starts, into the group."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.enter = ["sh", "-c", ENTER, str(folder)]

    def limit(self, cores: float) -> None:
        """Give its processes this share of a core together."""
        quota = round(cores * PERIOD_MICROSECONDS)
        if (self.folder / "cpu.max").exists():
            (self.folder / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}")
        else:
            (self.folder / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS))
            (self.folder / "cpu.cfs_quota_us").write_text(str(quota))


@contextmanager
def control_group(name: str) -> Iterator[ControlGroup]:
    """A group without a limit until the end of the block, by which its processes have ended.

    Raises OSError where control groups cannot be made.
    """
    folder = (CONTROLLER if CONTROLLER.is_dir() else UNIFIED) / f"{name}-{os.getpid()}"
    folder.mkdir()
    try:
        yield ControlGroup(folder)
    finally:
        wait_until(lambda: not (folder / "cgroup.procs").read_text(), f"the end of the processes of {folder}")
        folder.rmdir()
