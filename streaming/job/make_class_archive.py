"""Make the class archives (see :mod:`streaming.embedded.class_archive`).

``python -m streaming.job.make_class_archive`` runs the job on an embedded broker for a moment, and Java archives the
classes that both have loaded. This takes 50 s on two cores; the job's archive has 180 MB, the broker's 50 MB.
"""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from coordinator_logic.messages import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from streaming.client import CoordinatorClient
from streaming.contract.errors import CannotRun
from streaming.contract.output.plain import print_plain
from streaming.embedded.broker import JVM_OPTIONS, BrokerStartError, EmbeddedBroker
from streaming.embedded.class_archive import BROKER, archive_path, options_to_make
from streaming.embedded.jars import JarResolutionError, MissingPrerequisite, find_java, locked, resolve_jars
from streaming.job.lifecycle.run import start
from streaming.job.options import load_options
from streaming.job.session import JVM_FLAGS, extra_class_path
from streaming.job.spark_internals.batch_end import stop_after_batch
from streaming.job.spark_internals.class_archive import JOB, class_archive_path
from streaming.job.spark_internals.group_map.compilation import make_group_map_jar

BATCHES = 30
ANSWER_LIMIT_MS = 60_000
DUMP_LIMIT_SECONDS = 300.0
QUIET = {"log_level": 0}
CHECK_LIMIT_SECONDS = 60.0


def make_class_archive(report: Callable[[str], None]) -> None:
    """Make the archives, and the jar that the job's is for, unless they exist.

    ``report`` is called with each line for the user. When several processes call this at once, one makes the archives
    and the others wait.

    Raises:
        CannotRun: Java has made no archive, or one that it cannot use.
        BrokerStartError, JarResolutionError, MissingPrerequisite: the job or the broker cannot start.
    """
    jars = resolve_jars(report)
    # First: it is on the class path that the archive is for.
    make_group_map_jar(report)
    paths = [archive_path(BROKER, jars.broker), class_archive_path(extra_class_path(jars))]
    folder = paths[0].parent
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        if all(path.is_file() for path in paths):
            return
        report("making archives of the classes that the job and an embedded broker load (once, takes a minute)")
        for unfinished in folder.glob("making-*"):
            shutil.rmtree(unfinished, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="making-", dir=folder) as scratch:
            made = [Path(scratch) / path.name for path in paths]
            _run_the_job(Path(scratch), *made)
            for archive in made:
                check_class_archive(archive)
            for outdated in (file for kind in (BROKER, JOB) for file in folder.glob(f"{kind}-*")):
                outdated.unlink()
            for archive, path in zip(made, paths, strict=True):
                archive.rename(path)
        for path in paths:
            report(f"made {path} ({path.stat().st_size / 1e6:.0f} MB)")


def _run_the_job(folder: Path, of_broker: Path, of_job: Path) -> None:
    with ExitStack() as stack:
        broker = EmbeddedBroker(
            data_dir=folder / "kafka",
            jvm_options=[*JVM_OPTIONS, *options_to_make(of_broker)],
            stop_limit_seconds=DUMP_LIMIT_SECONDS,
        )
        stack.enter_context(broker)
        flags = {
            "bootstrap_servers": broker.bootstrap_servers,
            "checkpoint": str(folder / "checkpoint"),
            "profile": "latency",
            "spark.driver.extraJavaOptions": " ".join([*JVM_FLAGS, *options_to_make(of_job)]),
        }
        query = start(load_options(flags, {}), stack, lambda _: None, jvm_end_limit_seconds=DUMP_LIMIT_SECONDS)
        with CoordinatorClient(broker.bootstrap_servers, request_timeout_ms=ANSWER_LIMIT_MS, config=QUIET) as client:
            for offset in range(BATCHES):
                client.offset_commit(OffsetCommitRequest("g", [TopicToCommit("t", [PartitionToCommit(0, offset)])]))
        stop_after_batch(query)
        query.stop()


def check_class_archive(archive: Path) -> None:
    """Check that Java can use the archive: with half of one, for example, a JVM ends with SIGBUS.

    Raises:
        CannotRun: there is no archive, or Java cannot use it.
    """
    if not archive.is_file():
        raise CannotRun("Java has made no class archive")
    command = [find_java(), f"-XX:SharedArchiveFile={archive}", "-version"]
    # A JVM that crashes writes a report to its working directory.
    folder = archive.parent
    checked = subprocess.run(command, cwd=folder, capture_output=True, timeout=CHECK_LIMIT_SECONDS, check=False)
    if checked.returncode != 0:
        raise CannotRun(f"Java cannot use the class archive that it has made (exit code {checked.returncode})")


def _main() -> int:
    try:
        make_class_archive(print_plain)
    except (BrokerStartError, CannotRun, JarResolutionError, MissingPrerequisite, OSError) as failure:
        print_plain(str(failure), to_stderr=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
