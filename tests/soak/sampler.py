"""Takes a sample of the running system every few seconds."""

import re
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from streaming.embedded.jars import find_java
from tests.bench.latency import percentile
from tests.bench.usage import find_coordinator, memory
from tests.soak.figures import Sample
from tests.soak.members import Findings
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess

SETTLING_SECONDS = 120.0
"""How long a process has run before its figures are compared: JIT compilers and caches fill until then."""

LIVE_HEAP_SECONDS = 120.0
"""The interval of full collections of the JVM's heap, each of which takes some 0.2 s."""

JCMD_LIMIT_SECONDS = 30.0
GENERATION = re.compile(r"generation\s+total \d+K, used (\d+)K")
"""A line of jcmd's GC.heap_info, with the serial collector."""

MIB = 1024 * 1024
PROC = Path("/proc")


class Sampler:
    """Samples a coordinator and a gateway. Call :meth:`restarted` with each start of a process."""

    def __init__(
        self, coordinator: CoordinatorProcess, gateway: GatewayProcess, findings: Findings, settling_seconds: float
    ) -> None:
        self._coordinator = coordinator
        self._gateway = gateway
        self._findings = findings
        self._settling_seconds = settling_seconds
        self._began = time.monotonic()
        self._lives = {"coordinator": 1, "gateway": 1}
        self._started = {"coordinator": self._began, "gateway": self._began}
        self._live_heap_due = self._began

    def restarted(self, process: str) -> None:
        """Note that the ``coordinator`` or the ``gateway`` has been started again."""
        self._lives[process] += 1
        self._started[process] = time.monotonic()

    def sample(self) -> Sample | None:
        """Take a sample; None while a process is down."""
        try:
            roles = find_coordinator(self._coordinator.pid).by_role() | {"gateway": [self._gateway.pid]}
        except LookupError:
            return None
        now = time.monotonic()
        sizes = [file.stat().st_size for file in self._checkpoint_files() if file.exists()]
        taken = self._findings.take_seconds()
        heartbeats, commits = taken.get("heartbeat", []), taken.get("commit", [])
        return Sample(
            at=round(now - self._began, 1),
            lives={role: self._lives[_process_of(role)] for role in roles},
            settled=[role for role in roles if now - self._started[_process_of(role)] > self._settling_seconds],
            memory_mib={role: memory(pids).rss_mib for role, pids in roles.items()},
            live_heap_mib=self._live_heap_mib(roles["driver JVM"], now),
            descriptors={role: _entries(pids, "fd") for role, pids in roles.items()},
            threads={role: _entries(pids, "task") for role, pids in roles.items()},
            checkpoint_files=len(sizes),
            checkpoint_mib=round(sum(sizes) / MIB, 2),
            heartbeat_p50_ms=_milliseconds(heartbeats, 50),
            heartbeat_p99_ms=_milliseconds(heartbeats, 99),
            commit_p50_ms=_milliseconds(commits, 50),
        )

    def _live_heap_mib(self, jvms: list[int], now: float) -> float | None:
        if now < self._live_heap_due:
            return None
        self._live_heap_due = now + LIVE_HEAP_SECONDS
        (jvm,) = jvms
        _jcmd(jvm, "GC.run")
        used = GENERATION.findall(_jcmd(jvm, "GC.heap_info"))
        return round(sum(map(int, used)) / 1024, 1) if used else None

    def _checkpoint_files(self) -> list[Path]:
        files: list[Path] = []
        # Spark removes folders while they are listed.
        with suppress(FileNotFoundError):
            files.extend(file for file in self._coordinator.checkpoint.rglob("*") if file.is_file())
        return files


def _process_of(role: str) -> str:
    return "gateway" if role == "gateway" else "coordinator"


def _jcmd(pid: int, command: str) -> str:
    """The output of a diagnostic command of a JVM; empty if the JVM has ended, or Java came without its tools."""
    jcmd = Path(find_java()).resolve().with_name("jcmd")
    if not jcmd.exists():
        return ""
    done = subprocess.run(
        [jcmd, str(pid), command], capture_output=True, text=True, timeout=JCMD_LIMIT_SECONDS, check=False
    )
    return done.stdout


def _entries(pids: list[int], folder: str) -> int:
    count = 0
    for pid in pids:
        with suppress(FileNotFoundError, ProcessLookupError):
            count += len(list((PROC / str(pid) / folder).iterdir()))
    return count


def _milliseconds(seconds: list[float], percent: float) -> float | None:
    return round(percentile(seconds, percent) * 1000, 1) if seconds else None
