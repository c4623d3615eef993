"""A profile's tests on a cluster of their own: Kafka's tests in one JVM, the job and the gateway beside it."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, NamedTuple

from streaming.embedded.jars import MissingPrerequisite, cache_folder, java_executable, locked, resolve_file
from streaming.embedded.ports import free_address
from tests.kafka_tests.profiles import HEARTBEAT_INTERVAL, PROFILES, Profile
from tests.support.coordinator_process import reports_ready
from tests.support.processes import Process
from tests.support.waiting import wait_until

HERE = Path(__file__).parent
CLUSTER_LIMIT_SECONDS, READY_LIMIT_SECONDS = 120.0, 300.0
PROFILE_LIMIT_SECONDS = 3_600.0
LAUNCHER = "org.junit.platform.console.ConsoleLauncher"
JVM_OPTIONS = ("-Xmx1500m", "-XX:+UseSerialGC")

Outcome = Literal["passed", "failed", "aborted"]


class Result(NamedTuple):
    """What became of a test. ``why`` is the message of a failure, or why it was aborted."""

    profile: str
    test: str
    outcome: Outcome
    seconds: float
    why: str


def play(
    name: str, only: str, folder: Path, report: Callable[[str], None], *, at_brokers: bool = False
) -> Iterator[Result]:
    """Run a profile's tests whose class matches the pattern ``only``. ``at_brokers``: without job and gateway."""
    profile = PROFILES[name]
    chosen = [each for each in profile.classes if re.search(only, each)]
    if not chosen:
        return
    folder.mkdir(parents=True)
    with ExitStack() as stack:
        address = free_address()
        told, ready = folder / "brokers", folder / "ready"
        target = [] if at_brokers else [f"-Dtold={told}", f"-Dready={ready}", f"-Daddress={address}"]
        tests = stack.enter_context(Process("kafka-tests", _tests(profile, chosen, folder, target)))
        tests.start()
        if not at_brokers:
            wait_until(told.exists, "the brokers' address", CLUSTER_LIMIT_SECONDS, describe=tests.tail)
            command = _job(profile, told.read_text(), address, folder)
            job = stack.enter_context(Process("job", command, environment=profile.gateway_variables))
            job.start()
            job.await_line("that it is ready", _is_jobs_ready_line, READY_LIMIT_SECONDS)
            ready.touch()
        tests.wait(PROFILE_LIMIT_SECONDS)
        results = list(_results(name, folder))
        report(f"{name}: {counted(results) if results else tests.tail()}")
    yield from results


def counted(results: Sequence[Result]) -> str:
    """How many results there are of each outcome."""
    return ", ".join(
        f"{count} {outcome}" for outcome, count in sorted(Counter(each.outcome for each in results).items())
    )


def _is_jobs_ready_line(line: str) -> bool:
    return reports_ready(line) and "append requests to" in line


def _tests(profile: Profile, chosen: Sequence[str], folder: Path, target: Sequence[str]) -> list[str]:
    (jars,) = resolve_file(HERE / "ivy.xml", ("tests",))
    class_path = os.pathsep.join(map(str, jars))
    selected = [word for each in chosen for word in ("--select-method" if "#" in each else "--select-class", each)]
    return [
        java_executable(),
        *JVM_OPTIONS,
        f"-Dbrokers={profile.brokers}",
        f"-Dsettings={' '.join(f'{key}={value}' for key, value in _settings(profile).items())}",
        *target,
        "-Djunit.jupiter.extensions.autodetection.enabled=true",
        # The extension has a limit of its own for each test.
        "-Djunit.jupiter.execution.timeout.mode=disabled",
        *("-cp", os.pathsep.join([str(_compiled(class_path)), class_path]), LAUNCHER, "execute", *selected),
        *("--include-classname", ".*", "--details", "tree", "--disable-banner", "--disable-ansi-colors"),
        *("--reports-dir", str(folder)),
    ]


def _job(profile: Profile, brokers: str, address: str, folder: Path) -> list[str]:
    # As at a broker, whose members keep their heartbeat interval while their group changes.
    own = {"group.consumer.reconciling.heartbeat.interval.ms": profile.settings.get(HEARTBEAT_INTERVAL, "5000")}
    settings = [word for key, value in (_settings(profile) | own).items() for word in ("--set", f"{key}={value}")]
    return [
        *(sys.executable, "-m", "streaming.cli", "run", "--json", "-b", brokers),
        *("--checkpoint", str(folder / "checkpoint"), "--profile", "latency", "--replication-factor", "1"),
        *("--gateway", "--gateway-listen", address, *settings),
    ]


def _settings(profile: Profile) -> dict[str, str]:
    # No check for what has expired may delete a group of a test that has just become empty.
    common = {"group.min.session.timeout.ms": "100", "offsets.retention.check.interval.ms": str(24 * 3_600_000)}
    return common | dict(profile.settings)


def _compiled(class_path: str) -> Path:
    """The folder with the compiled extension, in the cache."""
    sources = sorted((HERE / "java").glob("*.java"))
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in sources) + class_path.encode()).hexdigest()[:16]
    folder = cache_folder() / f"kafka-tests-{digest}"
    with locked(cache_folder() / "lock"):
        if not (folder / "compiled").exists():
            compiler = shutil.which("javac")
            if compiler is None:
                raise MissingPrerequisite("Kafka's tests need javac: install a JDK")
            command = [compiler, "-nowarn", "-d", str(folder), "-cp", class_path, *map(str, sources)]
            subprocess.run(command, check=True, capture_output=True)
            (folder / "compiled").touch()
    return folder


def _results(profile: str, folder: Path) -> Iterator[Result]:
    """What JUnit's reports say."""
    for file in sorted(folder.glob("TEST-*.xml")):
        for case in ET.parse(file).getroot().iter("testcase"):
            bad = next((found for kind in ("failure", "error") if (found := case.find(kind)) is not None), None)
            skipped = case.find("skipped")
            outcome: Outcome = "failed" if bad is not None else "passed" if skipped is None else "aborted"
            why = "" if bad is None else bad.get("message") or bad.get("type") or ""
            if skipped is not None:
                why = skipped.text or ""
            test = f"{case.get('classname', '').rpartition('.')[2]}#{_method(case)}"
            yield Result(profile, test, outcome, float(case.get("time", 0)), " ".join(why.split())[:200])


def _method(case: ET.Element) -> str:
    """The name of the method. In a report, a test made from a template has the display name of its template."""
    name = (case.get("name") or "").partition("(")[0]
    shown = [
        line.removeprefix("display-name: ")
        for out in case.iter("system-out")
        for line in (out.text or "").splitlines()
        if line.startswith("display-name: ")
    ]
    return shown[0] if shown and name in ("", case.get("classname")) else name
