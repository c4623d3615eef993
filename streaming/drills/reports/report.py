"""The report of drills: what was done when, where, with which versions, and what came of it."""

import os
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

import msgspec

from streaming.contract.output.text import json_text
from streaming.drills.recording import Episode
from streaming.drills.reports.figures import Figures, Noticed
from streaming.drills.reports.verdict import Expectation
from streaming.embedded.jars import JarResolutionError, MissingPrerequisite, cached_jars, find_java, reported_version

DISTRIBUTIONS = ("spark-group-coordinator", "pyspark", "confluent-kafka")
GIB = 2**30


class DrillReport(msgspec.Struct, kw_only=True, rename="camel"):
    """One drill's part. ``failure`` says why it was not finished, ``skipped`` why it was not begun; both may be empty.

    began_at: the time of the first step, UTC. fault_at: that of the fault; times of the episode count from it.
    generations: each group's generation before the fault and at the end.
    acknowledged: the commits that were acknowledged until the end of the drill.
    """

    drill: str
    title: str
    what: str
    began_at: datetime
    fault_at: datetime | None = None
    seconds: float = 0.0
    failure: str = ""
    skipped: str = ""
    expectations: list[Expectation] = []
    figures: Figures | None = None
    noticed: Noticed | None = None
    generations: dict[str, tuple[int, int]] = {}
    acknowledged: int = 0
    episode: Episode | None = None

    @property
    def passed(self) -> bool:
        """Whether it was finished and met every expectation."""
        return not self.failure and bool(self.expectations) and all(each.met for each in self.expectations)

    @property
    def verdict(self) -> str:
        """One word."""
        return "skipped" if self.skipped else "passed" if self.passed else "FAILED"


class Report(msgspec.Struct, kw_only=True, rename="camel"):
    """All drills of one run. ``coordinator`` says which coordinator it was."""

    coordinator: str
    began_at: datetime
    ended_at: datetime
    passed: bool
    machine: dict[str, str]
    versions: dict[str, str]
    drills: list[DrillReport]


def report_of(coordinator: str, began_at: datetime, drills: list[DrillReport]) -> Report:
    """The report of drills that have ended now, on this machine. A skipped drill does not fail the run."""
    return Report(
        coordinator=coordinator,
        began_at=began_at,
        ended_at=datetime.now(UTC),
        passed=any(each.passed for each in drills) and all(each.passed or each.skipped for each in drills),
        machine=machine(),
        versions=versions(),
        drills=drills,
    )


def as_json(report: Report) -> str:
    """The report as JSON, for programs: the requests of each episode included."""
    return json_text(report) + "\n"


def machine() -> dict[str, str]:
    """This machine, as far as it matters for figures."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    return {
        "host": platform.node(),
        "system": platform.platform(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory:.0f} GiB",
    }


def versions() -> dict[str, str]:
    """The versions of everything that takes part, as far as they are known."""
    found = {"Python": platform.python_version(), "Java": _java(), "Kafka": _kafka()}
    for name in DISTRIBUTIONS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return {name: each for name, each in found.items() if each}


def _java() -> str:
    try:
        return reported_version(find_java())
    except MissingPrerequisite:
        return ""


def _kafka() -> str:
    """The version of the embedded broker."""
    try:
        jars = cached_jars()
    except (MissingPrerequisite, JarResolutionError):
        return ""
    names = [jar.name for jar in jars.broker] if jars else []
    found = [match[1] for name in names if (match := re.fullmatch(r"kafka_[\d.]+-([\d.]+)\.jar", name))]
    return found[0] if found else ""
