"""The jars that the Spark job and the embedded broker need, and the Java that runs them.

`deploy/ivy.xml` names the jars; the Ivy that pyspark ships downloads them once into a cache outside the
source tree. After that, finding them takes neither a network nor a JVM.

Environment variables:
    GROUP_COORDINATOR_CACHE         the cache folder (default: $XDG_CACHE_HOME/spark-group-coordinator, or
                                    ~/.cache/spark-group-coordinator)
    GROUP_COORDINATOR_IVY_FILE      the Ivy file (default: deploy/ivy.xml of the source tree)
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
from pathlib import Path

__all__ = [
    "JarResolutionError",
    "Jars",
    "MissingPrerequisite",
    "find_java",
    "java_executable",
    "locked",
    "resolve_file",
    "resolve_jars",
]

OLDEST_JAVA = 17
JAVA_ADVICE = f"install a Java {OLDEST_JAVA} or later (a JRE will do), or set JAVA_HOME to one"
RESOLVE_LIMIT_SECONDS = 900.0
REPORT_INTERVAL_SECONDS = 1.0
TAIL_LINES = 15

Report = Callable[[str], None]


class MissingPrerequisite(Exception):
    """Something that the user has to install or set. The message is one line that says what."""


class JarResolutionError(Exception):
    """Ivy could not get the jars. The message ends with the last lines of Ivy's output."""


@dataclass(frozen=True)
class Jars:
    """Absolute paths of the jars, sorted by file name."""

    connector: list[Path]
    """Spark's Kafka source and sink, to be added to pyspark's own jars."""
    broker: list[Path]
    """The whole class path of a Kafka broker."""

    @property
    def local_file_system(self) -> Path:
        """The Hadoop file system for local checkpoints, one of `connector`. It has to be on the driver's
        extra class path, where `fs.file.impl` is looked up."""
        return next(jar for jar in self.connector if jar.name.startswith("hadoop-bare-naked-local-fs-"))


def resolve_jars(report: Report | None = None) -> Jars:
    """Find the jars in the cache; download them first when this Ivy file was never resolved.

    See :func:`resolve_file` for ``report`` and the errors; MissingPrerequisite also when the Ivy file is missing.
    """
    connector, broker = resolve_file(_ivy_file(), ("connector", "broker"), report)
    return Jars(connector, broker)


def resolve_file(ivy_file: Path, configurations: Sequence[str], report: Report | None = None) -> list[list[Path]]:
    """The jars of each of these configurations of an Ivy file, from the cache or, the first time, downloaded.

    `report` is given a line about the progress at most once a second, and only while there is something
    to download. Any number of processes may call this at once: one downloads, the others wait for it.

    Raises MissingPrerequisite when Java or pyspark is missing, JarResolutionError when the download fails or
    takes longer than RESOLVE_LIMIT_SECONDS.
    """
    cache = _cache_folder()
    resolved = cache / f"jars-{hashlib.sha256(ivy_file.read_bytes()).hexdigest()[:16]}"
    if not resolved.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with locked(cache / "lock"):
            if not resolved.is_dir():
                _resolve_into(resolved, ivy_file, configurations, report or (lambda _: None))
    return [_jars_in(resolved / configuration) for configuration in configurations]


def find_java() -> str:
    """The absolute path of the user's Java: that of JAVA_HOME when it is set, else the first on the PATH.

    Raises MissingPrerequisite when there is none.
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
    """What :func:`find_java` finds. Raises MissingPrerequisite also when it is older than OLDEST_JAVA."""
    java = find_java()
    version = _java_version(java)
    if version is None:
        raise MissingPrerequisite(f"{java} does not say which Java it is: {JAVA_ADVICE}.")
    if version < OLDEST_JAVA:
        raise MissingPrerequisite(f"{java} is Java {version}, Spark needs {OLDEST_JAVA} or later: {JAVA_ADVICE}.")
    return java


def _java_version(java: str) -> int | None:
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)
    found = re.search(r'version "(\d+)(?:\.(\d+))?', answer.stderr + answer.stdout)
    if found is None:
        return None
    major, minor = found.groups(default="0")
    # Java 8 and earlier called themselves 1.8.
    return int(minor) if major == "1" else int(major)


def _ivy_file() -> Path:
    chosen = os.environ.get("GROUP_COORDINATOR_IVY_FILE")
    ivy_file = Path(chosen) if chosen else Path(__file__).resolve().parent.parent / "deploy" / "ivy.xml"
    if not ivy_file.is_file():
        raise MissingPrerequisite(
            f"{ivy_file} was not found: set GROUP_COORDINATOR_IVY_FILE to the project's deploy/ivy.xml."
        )
    return ivy_file


def _cache_folder() -> Path:
    chosen = os.environ.get("GROUP_COORDINATOR_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser() / "spark-group-coordinator"


def _ivy_jar() -> Path:
    # find_spec does not import pyspark, which would take most of a second.
    pyspark = importlib.util.find_spec("pyspark")
    folders = pyspark.submodule_search_locations if pyspark else None
    for folder in folders or []:
        for jar in sorted(Path(folder, "jars").glob("ivy-*.jar")):
            return jar
    raise MissingPrerequisite("pyspark was not found: install this package with its `job` extra.")


def _jars_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jar"))


@contextmanager
def locked(lock_file: Path) -> Iterator[None]:
    """Wait for, then hold, a lock that the kernel takes back when this process ends in any way."""
    with lock_file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _resolve_into(resolved: Path, ivy_file: Path, configurations: Sequence[str], report: Report) -> None:
    """Call with the lock held. `resolved` appears whole or not at all."""
    for left_by_a_killed_process in resolved.parent.glob("resolving-*"):
        shutil.rmtree(left_by_a_killed_process, ignore_errors=True)
    scratch = Path(tempfile.mkdtemp(prefix="resolving-", dir=resolved.parent))
    try:
        _run_ivy(ivy_file, configurations, scratch, resolved.parent / "ivy", report)
        for conf in configurations:
            if not _jars_in(scratch / conf):
                raise JarResolutionError(f"{ivy_file} resolved to no jars for the configuration {conf}.")
        # mkdtemp's folder is its owner's alone; a cache in an image is read by other users.
        scratch.chmod(0o755)
        scratch.rename(resolved)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _run_ivy(ivy_file: Path, configurations: Sequence[str], destination: Path, ivy_cache: Path, report: Report) -> None:
    # Ivy's own cache keeps what an interrupted download had already got.
    command = [java_executable(), "-jar", str(_ivy_jar()), "-ivy", str(ivy_file), "-cache", str(ivy_cache)]
    settings = os.environ.get("GROUP_COORDINATOR_IVY_SETTINGS")
    if settings:
        command += ["-settings", settings]
    command += ["-confs", *configurations]
    command += ["-retrieve", str(destination / "[conf]" / "[artifact]-[revision].[ext]")]

    report(f"Resolving the jars that {ivy_file} names (once).")
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
    """Pass Ivy's lines on, reporting its two phases: finding the modules, then downloading them."""
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
        jars = resolve_jars(lambda line: print(line, flush=True))
    except (MissingPrerequisite, JarResolutionError) as failure:
        print(failure, file=sys.stderr)
        return 1
    print(f"{len(jars.connector)} connector jars and {len(jars.broker)} broker jars are in the cache.")
    return 0


if __name__ == "__main__":
    sys.exit(_main())
