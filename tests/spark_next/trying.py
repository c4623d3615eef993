"""A trial of Spark's internals with one version of pyspark: names, plays, and the existing tests of each internal."""

import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import msgspec

from streaming.job.spark_internals.trials import Trial
from tests.spark_next.entries import BOUND_TO_VERSIONS, PREREQUISITES, TESTS, tests_of
from tests.spark_next.environments import BUILD, Environment

NAMES_LIMIT_SECONDS = 600.0
PLAY_LIMIT_SECONDS = 1_800.0
TESTS_LIMIT_SECONDS = 7_200.0

LOGS = BUILD / "logs"

Report = Callable[[str], None]


class Attempt(NamedTuple):
    """A version of pyspark with which internals are tried; ``names`` says which."""

    environment: Environment
    version: str
    connector: str
    names: tuple[str, ...]
    report: Report

    def log(self, step: str) -> Path:
        """The file for the output of a step."""
        return LOGS / self.version / f"{step}.log"

    def trial(self, failed: Mapping[str, str]) -> Trial:
        """All internals of the attempt: those that failed, and the others."""
        held = tuple(name for name in self.names if name not in failed)
        return Trial(self.connector, held, {name: failed[name] for name in self.names if name in failed})


def try_internals(attempt: Attempt, *, with_job: bool = True) -> Trial:
    """Check the names of each internal, then play to a job that uses them, then run the tests of each.

    Without a job, there is no play, and only tests that need no JVM run.
    """
    attempt.report("names")
    failed = failed_names(attempt)
    attempt.environment.list_as_tried(attempt.version, attempt.trial(failed))
    if with_job:
        failed |= failed_plays(attempt, failed)
        attempt.environment.list_as_tried(attempt.version, attempt.trial(failed))
    failed |= failed_tests(attempt, failed, with_job=with_job)
    return attempt.trial(failed)


def failed_names(attempt: Attempt) -> dict[str, str]:
    """The internals of which this pyspark lacks a name; all, if it cannot start a session."""
    log = attempt.log("names")
    if why := _failure(attempt, log, "-m", "tests.spark_next.names", limit_seconds=NAMES_LIMIT_SECONDS):
        return dict.fromkeys(attempt.names, f"no session starts: {why}")
    missing = msgspec.json.decode(log.read_text().splitlines()[-1], type=dict[str, list[str]])
    return {name: f"there is no {missing[name][0]}" for name in attempt.names if missing[name]}


def failed_plays(attempt: Attempt, failed: Mapping[str, str]) -> dict[str, str]:
    """The internals with which a job does not answer as without them: of those that are not in ``failed``."""
    bound = [name for name in BOUND_TO_VERSIONS if name in attempt.names]
    candidates = {name for name in bound if name not in failed}
    attempt.report("a job without any of them")
    if why := _play(attempt, set()):
        return dict.fromkeys(attempt.names, f"without any internal, the job does not answer: {why}")
    attempt.report(f"a job with {len(candidates)} of them")
    if not candidates or not (why := _play(attempt, candidates)):
        return {}
    alone = {}
    for name in sorted(candidates):
        attempt.report(f"a job with {name} alone")
        if why_alone := _play(attempt, {name, *PREREQUISITES.get(name, ())} & candidates):
            alone[name] = why_alone
    return alone or dict.fromkeys(candidates, f"with all of them, the job does not answer: {why}")


def _play(attempt: Attempt, used: set[str]) -> str | None:
    """Play to a job that uses these internals; returns why it failed."""
    off = ",".join(sorted(set(BOUND_TO_VERSIONS) - used))
    arguments = ("-m", "tests.spark_next.play", "--off", off)
    return _failure(attempt, attempt.log(f"play-{len(used)}"), *arguments, limit_seconds=PLAY_LIMIT_SECONDS)


def failed_tests(attempt: Attempt, failed: Mapping[str, str], *, with_job: bool) -> dict[str, str]:
    """The internals of which a test fails: of those that are not in ``failed``."""
    names = tuple(name for name in attempt.names if name not in failed)
    tests = tests_of(names)
    if not tests:
        return {}
    attempt.report(f"tests of {', '.join(name for name in names if name in TESTS)}")
    log = attempt.log("tests")
    results = log.with_suffix(".xml")
    results.unlink(missing_ok=True)
    selection = [] if with_job else ["-m", "not jvm"]
    arguments = ("-m", "pytest", "-v", "-p", "no:cacheprovider", f"--junitxml={results}", *selection, *tests)
    why = _failure(attempt, log, *arguments, limit_seconds=TESTS_LIMIT_SECONDS)
    return failed_of(names, results) if results.exists() else dict.fromkeys(names, f"the tests do not run: {why}")


def failed_of(names: Iterable[str], results: Path) -> dict[str, str]:
    """The internals of which a test has failed, by pytest's file of results in JUnit's format."""
    broken = list(_broken(results))
    found = {}
    for name in names:
        problems = [problem for test, problem in broken if any(_is_of(test, each) for each in TESTS.get(name, ()))]
        if problems:
            found[name] = problems[0]
    return found


def _broken(results: Path) -> Iterator[tuple[str, str]]:
    """The tests that failed, as node ids without parameters, each with its name and the first line of its error."""
    for case in ElementTree.parse(results).iter("testcase"):
        for problem in (*case.iter("failure"), *case.iter("error")):
            file, name = (case.get("classname") or "").replace(".", "/"), (case.get("name") or "").partition("[")[0]
            # A file that cannot be imported has its error under its own name.
            node = f"{file}.py::{name}" if file else f"{name.replace('.', '/')}.py"
            yield node, f"{name}: {_first_line(problem.get('message') or '')}"


def _is_of(test: str, node: str) -> bool:
    return test == node or test.startswith(f"{node}::")


def _failure(attempt: Attempt, log: Path, *arguments: str, limit_seconds: float) -> str | None:
    """Run Python in the environment of the attempt; returns the reason if it fails."""
    try:
        exit_code = attempt.environment.run(*arguments, log=log, limit_seconds=limit_seconds)
    except subprocess.TimeoutExpired:
        return f"it takes more than {limit_seconds:.0f} s"
    if exit_code == 0:
        return None
    attempt.report(f"exit code {exit_code}, see {log}")
    return _last_error(log.read_text().splitlines())


def _last_error(lines: Iterable[str]) -> str:
    """The last line of a traceback, or of the output."""
    meaningful = [line.strip() for line in lines if line.strip()]
    errors = [line for line in meaningful if "Error" in line.partition(":")[0]]
    return (errors or meaningful or ["without a message"])[-1]


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
