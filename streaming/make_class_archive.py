"""Makes the archive of :mod:`streaming.class_archive`: ``python -m streaming.make_class_archive``.

It runs the job beside a broker for a moment and has Java keep the classes that this took: 50 s on two cores, 180 MB.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from coordinator_logic.messages import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from streaming.broker import BrokerStartError, EmbeddedBroker
from streaming.class_archive import class_archive_path
from streaming.client import CoordinatorClient
from streaming.errors import CannotRun
from streaming.jars import JarResolutionError, MissingPrerequisite, find_java, locked, resolve_jars
from streaming.job import finish, start
from streaming.options import load_options
from streaming.session import JVM_FLAGS, extra_class_path

__all__ = ["check_class_archive", "make_class_archive"]

BATCHES = 30
ANSWER_LIMIT_MS = 60_000
DUMP_LIMIT_SECONDS = 300.0
QUIET = {"log_level": 0}
CHECK_LIMIT_SECONDS = 60.0


def make_class_archive(report: Callable[[str], None]) -> None:
    """Make the archive, if it is not there.

    Raises CannotRun when Java made none or one that it cannot use, and what the job and the broker raise when they
    cannot start. Any number of processes may call this at once: one makes it, the others wait for it.
    """
    path = class_archive_path(extra_class_path(resolve_jars(report)))
    path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path.parent / "lock"):
        if path.is_file():
            return
        report("Making an archive of the classes that the job needs (once).")
        for left in path.parent.glob("making-*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="making-", dir=path.parent) as scratch:
            made = Path(scratch) / path.name
            _run_the_job(Path(scratch), made)
            check_class_archive(made)
            for outdated in path.parent.glob("classes-*"):
                outdated.unlink()
            made.rename(path)
        report(f"{path}: {path.stat().st_size / 1e6:.0f} MB.")


def _run_the_job(folder: Path, archive: Path) -> None:
    jvm_options = [*JVM_FLAGS, f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:disable"]
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(data_dir=folder / "kafka"))
        flags = {
            "bootstrap_servers": broker.bootstrap_servers,
            "checkpoint": str(folder / "checkpoint"),
            "profile": "latency",
            "spark.driver.extraJavaOptions": " ".join(jvm_options),
        }
        query = start(load_options(flags, {}), stack, lambda _: None, jvm_end_limit_seconds=DUMP_LIMIT_SECONDS)
        with CoordinatorClient(broker.bootstrap_servers, request_timeout_ms=ANSWER_LIMIT_MS, config=QUIET) as client:
            for offset in range(BATCHES):
                client.offset_commit(OffsetCommitRequest("g", [TopicToCommit("t", [PartitionToCommit(0, offset)])]))
        finish(query)


def check_class_archive(archive: Path) -> None:
    """Raises CannotRun when Java cannot use it: a JVM even ends with SIGBUS when half of its archive is missing."""
    if not archive.is_file():
        raise CannotRun("Java has made no archive of its classes")
    command = [find_java(), f"-XX:SharedArchiveFile={archive}", "-version"]
    # Where it would leave a report of its end.
    folder = archive.parent
    checked = subprocess.run(command, cwd=folder, capture_output=True, timeout=CHECK_LIMIT_SECONDS, check=False)
    if checked.returncode != 0:
        raise CannotRun(f"Java cannot use the archive that it made of its classes (exit code {checked.returncode})")


def _main() -> int:
    try:
        make_class_archive(lambda line: print(line, flush=True))
    except (BrokerStartError, CannotRun, JarResolutionError, MissingPrerequisite, OSError) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
