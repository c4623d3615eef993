"""Prints the slowest test files at the end of a run, with the time of their tests on all workers.

The time of a fixture counts for the test that was first to use it, and so for that test's file. With
``--file-times=PATH``, the times are kept in that file, and those that an earlier run has kept there count, too: the
last part of a run prints the slowest files of all parts.
"""

from collections import defaultdict
from pathlib import Path

import pytest

SLOWEST = 10
OPTION = "--file-times"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option with the file that keeps the times."""
    parser.addoption(OPTION, type=Path, help="keep the time of each test file here, and add what is there already")


def pytest_configure(config: pytest.Config) -> None:
    """Sum up times in the process that prints the summary: workers send it their reports."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_FileTimes(config.getoption(OPTION)))


class _FileTimes:
    """The seconds of each file; those in the file ``kept`` and those of this run."""

    def __init__(self, kept: Path | None) -> None:
        self._kept = kept
        self._seconds: defaultdict[str, float] = defaultdict(float)
        if kept is not None and kept.exists():
            for line in kept.read_text().splitlines():
                seconds, _, file = line.partition(" ")
                self._seconds[file] += float(seconds)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        slowest = sorted(self._seconds.items(), key=lambda entry: entry[1], reverse=True)
        if self._kept is not None:
            self._kept.write_text("".join(f"{seconds:.3f} {file}\n" for file, seconds in slowest))
        terminalreporter.section(f"slowest {SLOWEST} files")
        for file, seconds in slowest[:SLOWEST]:
            terminalreporter.line(f"{seconds:8.1f}s  {file}")
