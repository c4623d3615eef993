"""The jars of the Spark job and of the embedded broker, and the Java that runs them.

The file `ivy.xml` in this folder names the jars, and `s3a.xml` those that only a checkpoint at s3a:// needs. The Ivy
that pyspark ships downloads them once, into a cache outside the source tree. Later calls find them there without a
network and without a JVM.

Environment variables:
    GROUP_COORDINATOR_CACHE         the cache folder (default: $XDG_CACHE_HOME/spark-group-coordinator, or
                                    ~/.cache/spark-group-coordinator)
    GROUP_COORDINATOR_IVY_FILE      the Ivy file (default: the one in this folder)
    GROUP_COORDINATOR_IVY_SETTINGS  an Ivy settings file, for a company's own mirror (default: Ivy's own)
"""

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from streaming.contract.output.plain import print_plain

__all__ = [
    "JarResolutionError",
    "Jars",
    "MissingPrerequisite",
    "cache_folder",
    "cached_jars",
    "find_java",
    "java_executable",
    "locked",
    "reported_version",
    "resolve_file",
    "resolve_jars",
    "resolve_s3a_jars",
]

OLDEST_JAVA = 17
JAVA_ADVICE = f"install a Java {OLDEST_JAVA} or later (a JRE will do), or set JAVA_HOME to one"
RESOLVE_LIMIT_SECONDS = 900.0
REPORT_INTERVAL_SECONDS = 1.0
TAIL_LINES = 15

Report = Callable[[str], None]


class MissingPrerequisite(Exception):
    """Something that the user has to install or set. The message is one line that names it."""


class JarResolutionError(Exception):
    """Ivy could not resolve the jars. The message ends with the last lines of Ivy's output."""


@dataclass(frozen=True)
class Jars:
    """Absolute paths of the jars, sorted by file name."""

    connector: list[Path]
    """Spark's Kafka source and sink, which are added to pyspark's own jars."""
    broker: list[Path]
    """The class path of a Kafka broker."""


def resolve_jars(report: Report | None = None) -> Jars:
    """Return the jars from the cache, and download them first if this Ivy file has not been resolved yet.

    See :func:`resolve_file` for ``report`` and the errors. Raises MissingPrerequisite also if the Ivy file is missing.
    """
    connector, broker = resolve_file(_ivy_file(), ("connector", "broker"), report)
    return Jars(connector, broker)


def resolve_s3a_jars(report: Report | None = None) -> list[Path]:
    """The jars for a checkpoint at s3a://. See :func:`resolve_file` for ``report`` and the errors."""
    return resolve_file(Path(__file__).with_name("s3a.xml"), ("s3a",), report)[0]


def cached_jars() -> Jars | None:
    """The jars if they are in the cache, else None. Downloads nothing. Raises MissingPrerequisite as above."""
    folder = _resolved_folder(_ivy_file())
    return Jars(_jars_in(folder / "connector"), _jars_in(folder / "broker")) if folder.is_dir() else None


def resolve_file(ivy_file: Path, configurations: Sequence[str], report: Report | None = None) -> list[list[Path]]:
    """Return the jars of each of these configurations of an Ivy file, and download them the first time.

    Any number of processes may call this at the same time: one downloads, and the others wait for it.

    Args:
        ivy_file: The Ivy file. A changed file is resolved again.
        configurations: Names of configurations in the file.
        report: Called with a line of progress at most once a second, and only during a download.

    Raises:
        MissingPrerequisite: Java or pyspark is missing.
        JarResolutionError: The download fails, or takes longer than RESOLVE_LIMIT_SECONDS.
    """
    resolved = _resolved_folder(ivy_file)
    if not resolved.is_dir():
        cache = resolved.parent
        cache.mkdir(parents=True, exist_ok=True)
        with locked(cache / "lock"):
            if not resolved.is_dir():
                _resolve_into(resolved, ivy_file, configurations, report or (lambda _: None))
    return [_jars_in(resolved / configuration) for configuration in configurations]


def find_java() -> str:
    """The path of the user's Java: the one of JAVA_HOME if that is set, else the first on the PATH.

    Raises MissingPrerequisite if there is none.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        java = shutil.which(str(Path(home) / "bin" / "java"))
        if java is None:
            raise MissingPrerequisite(f"JAVA_HOME is {home}, which has no bin/java: {JAVA_ADVICE}.")
    else:
        java = shutil.which("java")
        if java is None:
            raise MissingPrerequisite(f"Java was not found: {JAVA_ADVICE}.")
    return java


def java_executable() -> str:
    """The Java of :func:`find_java`. Raises MissingPrerequisite also if it is older than OLDEST_JAVA."""
    java = find_java()
    version = _java_version(java)
    if version is None:
        raise MissingPrerequisite(f"{java} does not report its version: {JAVA_ADVICE}.")
    if version < OLDEST_JAVA:
        raise MissingPrerequisite(f"{java} is Java {version}, but Spark needs {OLDEST_JAVA} or later: {JAVA_ADVICE}.")
    return java


def reported_version(java: str) -> str:
    """The version that a Java reports, for example 17.0.9; empty if it reports none."""
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return found[1] if found else ""


@cache
def _java_version(java: str) -> int | None:
    found = re.match(r"(\d+)(?:\.(\d+))?", reported_version(java))
    if found is None:
        return None
    major, minor = found.groups(default="0")
    # Java 8 and earlier report 1.8.
    return int(minor) if major == "1" else int(major)


def _ivy_file() -> Path:
    chosen = os.environ.get("GROUP_COORDINATOR_IVY_FILE")
    ivy_file = Path(chosen) if chosen else Path(__file__).with_name("ivy.xml")
    if not ivy_file.is_file():
        raise MissingPrerequisite(
            f"{ivy_file} does not exist: unset GROUP_COORDINATOR_IVY_FILE, or set it to an Ivy file that exists."
        )
    return ivy_file


def cache_folder() -> Path:
    """The folder that keeps the jars."""
    chosen = os.environ.get("GROUP_COORDINATOR_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "spark-group-coordinator"


def _resolved_folder(ivy_file: Path) -> Path:
    """Where the jars of this Ivy file are kept; a changed file gets a folder of its own."""
    return cache_folder() / f"jars-{hashlib.sha256(ivy_file.read_bytes()).hexdigest()[:16]}"


def _ivy_jar() -> Path:
    # find_spec does not import pyspark, which would take most of a second.
    pyspark = importlib.util.find_spec("pyspark")
    folders = pyspark.submodule_search_locations if pyspark else None
    for folder in folders or []:
        for jar in sorted(Path(folder, "jars").glob("ivy-*.jar")):
            return jar
    raise MissingPrerequisite("pyspark was not found: pip install 'spark-group-coordinator[job]'.")


def _jars_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jar"))


@contextmanager
def locked(lock_file: Path) -> Iterator[None]:
    """Wait for a lock and hold it. The kernel releases it if this process ends, in whatever way."""
    with lock_file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _resolve_into(resolved: Path, ivy_file: Path, configurations: Sequence[str], report: Report) -> None:
    """Resolve into a scratch folder and rename it, so that `resolved` is complete or absent. Needs the lock."""
    for abandoned in resolved.parent.glob("resolving-*"):
        shutil.rmtree(abandoned, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix="resolving-", dir=resolved.parent))
    try:
        _run_ivy(ivy_file, configurations, scratch, resolved.parent / "ivy", report)
        for conf in configurations:
            if not _jars_in(scratch / conf):
                raise JarResolutionError(f"{ivy_file} resolved to no jars for the configuration {conf}.")
        # mkdtemp gives access to the owner only, but other users read a cache in an image.
        scratch.chmod(0o755)
        scratch.rename(resolved)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run_ivy(ivy_file: Path, configurations: Sequence[str], destination: Path, ivy_cache: Path, report: Report) -> None:
    # Ivy's own cache keeps the files of an interrupted download.
    command = [java_executable(), "-jar", str(_ivy_jar()), "-ivy", str(ivy_file), "-cache", str(ivy_cache)]
    settings = os.environ.get("GROUP_COORDINATOR_IVY_SETTINGS")
    if settings:
        command += ["-settings", settings]
    command += ["-confs", *configurations]
    command += ["-retrieve", str(destination / "[conf]" / "[artifact]-[revision](-[classifier]).[ext]")]

    report(f"Downloading the jars of {ivy_file} (first start only).")
    last_lines: deque[str] = deque(maxlen=TAIL_LINES)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        limit = threading.Timer(RESOLVE_LIMIT_SECONDS, ivy.kill)
        limit.start()
        try:
            assert ivy.stdout is not None
            for line in _reporting(ivy.stdout, report):
                last_lines.append(line.rstrip())
            ivy.wait()
        except BaseException:
            ivy.kill()
            raise
        finally:
            limit.cancel()
    if ivy.returncode != 0:
        tail = "\n".join(last_lines)
        raise JarResolutionError(f"Ivy could not resolve {ivy_file} (exit code {ivy.returncode}):\n{tail}")


def _reporting(ivy_output: Iterator[str], report: Report) -> Iterator[str]:
    """Yield Ivy's lines, and report the progress of its two phases: finding modules, then downloading them."""
    found = downloaded = 0
    next_report = 0.0
    for line in ivy_output:
        yield line
        found += line.startswith("\tfound ")
        downloaded += "[SUCCESSFUL ]" in line
        if found and time.monotonic() >= next_report:
            next_report = time.monotonic() + REPORT_INTERVAL_SECONDS
            report(f"Jars downloaded: {downloaded} of {found}" if downloaded else f"Jars found: {found}")
    if downloaded:
        report(f"Jars downloaded: {downloaded} of {found}")


def _main() -> int:
    try:
        jars = resolve_jars(print_plain)
    except (MissingPrerequisite, JarResolutionError) as failure:
        print_plain(str(failure), to_stderr=True)
        return 1
    print_plain(f"{len(jars.connector)} connector jars and {len(jars.broker)} broker jars are in {cache_folder()}.")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
