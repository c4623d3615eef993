"""Whether another process has ended, if this host can tell.

A job that is killed cannot say so. Another one on the same host sees it in the table of processes, and need not wait
for the end of the lease.
"""

import os
import re
from pathlib import Path

PROC = Path("/proc")

IDENTITY = re.compile(r"(?P<namespace>.+)/(?P<process_id>[1-9][0-9]{0,8})/(?P<started_at>[0-9]{1,20})", re.ASCII)
"""What :func:`process_identity` returns."""

STATE, START_TIME = 0, 19
"""Positions in ``/proc/PID/stat`` after the command's name, which may contain spaces (proc(5))."""

ENDED_STATES = ("Z", "X")
"""A zombie has ended, whether or not its parent has noticed."""


def process_identity() -> str | None:
    """This process among all of all hosts, also in containers; None where the system does not tell."""
    namespace, statistics = _namespace(), _statistics(os.getpid())
    if namespace is None or statistics is None:
        return None
    return f"{namespace}/{os.getpid()}/{statistics[START_TIME]}"


def has_ended(identity: str | None) -> bool:
    """Whether a process certainly has ended. A process of another host or container may have, but this is False."""
    if identity is None:
        return False
    # It comes from a topic: another writer may have put anything there.
    found = IDENTITY.fullmatch(identity)
    if found is None or found["namespace"] != _namespace():
        return False
    process_id, started_at = int(found["process_id"]), found["started_at"]
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    # Unreadable where a host hides the processes of other users: then it is not known to have ended.
    statistics = _statistics(process_id)
    return statistics is not None and (statistics[STATE] in ENDED_STATES or statistics[START_TIME] != started_at)


def _namespace() -> str | None:
    """The kernel's start and the namespace in which process ids are unique."""
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{(PROC / 'self/ns/pid').stat().st_ino}"
    except OSError:
        return None


def _statistics(process_id: int) -> list[str] | None:
    """The fields of ``/proc/PID/stat`` after the command's name."""
    try:
        return (PROC / str(process_id) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
