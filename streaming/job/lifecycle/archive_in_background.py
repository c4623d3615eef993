"""Makes the class archive while the job runs, once: the next start takes two thirds of the time.

:mod:`streaming.job.make_class_archive` runs as a process of its own, with the lowest priority, when the job has been
running for a minute. It ends with the job.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from streaming.embedded import die_with_parent
from streaming.embedded.jars import resolve_jars
from streaming.job.lifecycle.job_session import Report
from streaming.job.options import JobOptions
from streaming.job.session import extra_class_path
from streaming.job.spark_internals.class_archive import class_archive_path
from streaming.job.spark_internals.group_map.compilation import needs_group_map_jar

COMMAND = ("nice", "-n", "19", sys.executable, "-m", "streaming.job.make_class_archive")
DELAY_SECONDS = 60.0
"""A job that has just started needs the cores, and one that runs for less will hardly be started again."""

END_LIMIT_SECONDS = 10.0


def needs_class_archive(options: JobOptions) -> bool:
    """Whether the job could use an archive, may make one, and there is none; or none with all classes."""
    if not options.make_class_archive or not options.is_local:
        return False
    path = class_archive_path(extra_class_path(resolve_jars(lambda _: None)))
    folder = next(parent for parent in path.parents if parent.exists())
    return (not path.is_file() or needs_group_map_jar()) and os.access(folder, os.W_OK)


@contextmanager
def making_class_archive(
    report: Report, command: Sequence[str] = COMMAND, delay_seconds: float = DELAY_SECONDS
) -> Iterator[None]:
    """Run the command in the background after the delay, if the block lasts so long; its process ends with the block.

    ``report`` is called on a thread, with a line about the result.
    """
    ending = threading.Event()
    thread = threading.Thread(
        target=_make, args=(report, command, delay_seconds, ending), name="class-archive", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ending.set()
        thread.join()


def _make(report: Report, command: Sequence[str], delay_seconds: float, ending: threading.Event) -> None:
    if ending.wait(delay_seconds):
        return
    guard = [sys.executable, "-I", die_with_parent.__file__, str(os.getpid()), ""]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        [*guard, *command], stdin=quiet, stdout=quiet, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        waiting = threading.Thread(target=_end_with_block, args=(process, ending), daemon=True)
        waiting.start()
        _, errors = process.communicate()
    if ending.is_set():
        return
    ending.set()
    waiting.join()
    if process.returncode == 0:
        report("made an archive of the classes that the job loads: the next start takes two thirds of the time")
    else:
        last_line = (errors.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        report(f"warning: no archive of the classes that the job loads was made: {last_line}")


def _end_with_block(process: "subprocess.Popen[str]", ending: threading.Event) -> None:
    ending.wait()
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(END_LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
