"""Runs the fuzzer's targets, each in a process of its own, and reads what libFuzzer reports."""

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

TARGETS = ("frames", "envelopes", "snapshots", "subscriptions")

LONGEST_START_AND_END_SECONDS = 300
MAX_INPUT_BYTES = 4096
SLOWEST_INPUT_SECONDS = 10
MEMORY_LIMIT_MIB = 2048

_COVERAGE = re.compile(r"cov: (\d+)")
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s+(\d+)")


class Extent(NamedTuple):
    """How long a target is fuzzed: for ``seconds``, or for a number of ``inputs`` with the same ones in each run.

    ``seed`` is where libFuzzer's random numbers begin; 0 is another place in each run.
    """

    seconds: int = 0
    inputs: int = 0
    seed: int = 0

    @property
    def arguments(self) -> list[str]:
        """The arguments of libFuzzer."""
        return [f"-runs={self.inputs}" if self.inputs else f"-max_total_time={self.seconds}", f"-seed={self.seed}"]


class TargetResult(NamedTuple):
    """What fuzzing a target gave. ``coverage`` counts the edges of the instrumented code that inputs have reached.

    ``escaped`` is the end of the output if an input raised, hung or used too much memory; None if none did.
    """

    target: str
    inputs: int
    coverage: int
    escaped: str | None


def fuzz(target: str, extent: Extent, corpus: Path) -> TargetResult:
    """Fuzz a target. Inputs that reach new code are kept in ``corpus``; an escaping one, too."""
    inputs = corpus / target
    inputs.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(importlib.import_module(f"tests.fuzz.targets.{target}").seeds()):
        (inputs / f"seed-{number}").write_bytes(data)
    command = [
        sys.executable,
        *("-m", "tests.fuzz.run_target", target, str(inputs)),
        *extent.arguments,
        f"-max_len={MAX_INPUT_BYTES}",
        f"-timeout={SLOWEST_INPUT_SECONDS}",
        f"-rss_limit_mb={MEMORY_LIMIT_MIB}",
        f"-artifact_prefix={corpus}/escaped-{target}-",
        "-print_final_stats=1",
    ]
    with _running(command) as process:
        output, _ = process.communicate(timeout=extent.seconds + LONGEST_START_AND_END_SECONDS)
    executed, covered = _EXECUTED.search(output), _COVERAGE.findall(output)
    return TargetResult(
        target,
        int(executed.group(1)) if executed else 0,
        int(covered[-1]) if covered else 0,
        None if process.returncode == 0 else output[-4000:],
    )


@contextmanager
def _running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    # The order of sets of strings decides which code an input reaches, and so which inputs follow.
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=environment
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
