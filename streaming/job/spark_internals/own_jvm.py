"""Start and end the JVM of a session, independently of the signals for this process's group."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, Self

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from streaming.contract.errors import CannotRun
from streaming.contract.output.plain import print_relayed
from streaming.job.spark_internals.java_objects import JVM_IS_GONE
from streaming.job.spark_internals.launch_settings import launch_settings

JVM_END_LIMIT_SECONDS = 5.0

JAVA_NOTICES = (
    b"WARNING: Using incubator modules: jdk.incubator.vector",  # Spark's launcher asks for the module
    b"Warning: Java versions > Java 11 can only operate in restricted mode",  # a library of Spark's
)
"""What Java writes at every start, which no setting suppresses and which asks nothing of the user."""

_launched: list["subprocess.Popen[bytes]"] = []
"""The JVMs that this process has launched, each until it has ended: pyspark forgets one before."""

LAUNCH_FAILURE = re.compile(r"(?:Error: |Exception in thread \"[^\"]+\" (?:[\w.$]+: )?)(.+)")
"""How Spark's launcher tells why it ends: the part that tells it."""


@contextmanager
def context_on_own_jvm(
    conf: SparkConf,
    temporary: Path,
    *,
    inherited: tuple[int, ...] = (),
    end_limit_seconds: float = JVM_END_LIMIT_SECONDS,
    in_words: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[SparkContext]:
    """A Spark context on a new JVM, which inherits these file descriptors and ends with the block.

    The JVM has a process group of its own: Ctrl-C or SIGTERM for our whole group must reach it through this process
    only, after the batch in flight. It also ends when this process is killed, because its standard input is a pipe of
    this process. Under ``spark-submit`` the JVM runs already; then that one is used, and is not ended.

    ``temporary``: the folder for the launch's temporary files. ``end_limit_seconds``: how long the JVM may take to end
    in order before it is killed. ``in_words``: a block that raises Java's failures as texts, for which it asks the JVM.

    Raises:
        CannotRun: the JVM does not start with these settings, or has ended within the block.
    """
    gateway = _launch(conf, temporary, inherited)
    jvm: subprocess.Popen[bytes] | None = gateway.proc
    try:
        with in_words():
            context = SparkContext(conf=conf, gateway=gateway)
        try:
            with in_words():
                yield context
        except CannotRun:
            # Without it, threads of pyspark print tracebacks about the JVM that ends.
            context.stop()
            raise
        context.stop()
    except JVM_IS_GONE as error:
        exit_code = None if jvm is None else _exit_code(jvm)
        if exit_code is None:
            raise
        raise CannotRun(f"Spark's JVM has ended unexpectedly, with exit code {exit_code}") from error
    finally:
        _end(gateway, jvm, end_limit_seconds)


def use_idle_processor_time() -> None:
    """Let this process and the JVM that it has launched run only while nothing else on this host wants a processor.

    For the end of a job in whose place another one continues. Without effect on systems other than Linux.
    """
    policy = getattr(os, "SCHED_IDLE", None)
    if policy is None:
        return
    for process_id in [os.getpid(), *(jvm.pid for jvm in _launched)]:
        # A thread may end meanwhile, and so may the JVM.
        with suppress(OSError):
            for thread in Path(f"/proc/{process_id}/task").iterdir():
                with suppress(OSError):
                    os.sched_setscheduler(int(thread.name), policy, os.sched_param(0))


def kill_jvm() -> None:
    """Kill the JVM that this process has launched, if there is one; also one that is ending already.

    While a broker hangs, Kafka's clients may keep a JVM from ending for half a minute.
    """
    for jvm in _launched.copy():
        jvm.kill()


def _launch(conf: SparkConf, temporary: Path, inherited: tuple[int, ...]) -> Any:
    """Launch a JVM with these settings, which its command line does not show; returns py4j's gateway to it.

    A thread launches it, because KeyboardInterrupt is raised in the main thread only: an interrupt within the launch
    would leave a JVM that no variable refers to, and that does not end.

    Raises:
        CannotRun: the JVM has ended before it could be used.
    """
    with launch_settings(dict(conf.getAll()), temporary) as descriptors, _RelayedErrors() as errors:
        popen_options = {
            "start_new_session": True,
            "pass_fds": (*inherited, *descriptors),
            "stdout": sys.stderr,
            "stderr": errors.write_end,
        }
        launch = ThreadPoolExecutor(1, "jvm-launcher").submit(_launch_gateway, popen_options)
        try:
            gateway: Any = launch.result()
        except KeyboardInterrupt:
            gateway = launch.result()
            _end(gateway, gateway.proc)
            raise
        except PySparkRuntimeError as failure:
            raise CannotRun(f"Spark does not start: {errors.reason() or failure}") from failure
        errors.relay()
        return gateway


def _launch_gateway(popen_options: dict[str, Any]) -> Any:
    gateway: Any = launch_gateway(None, popen_options)  # type: ignore[no-untyped-call]
    if gateway.proc is not None:
        _launched.append(gateway.proc)
    return gateway


class _RelayedErrors:
    """What a JVM writes to standard error: kept during its launch, and printed from then on.

    ``write_end`` is the JVM's end of the pipe, which this process closes at the end of the block.
    """

    def __init__(self) -> None:
        read_end, self.write_end = os.pipe()
        self._kept: list[bytes] | None = []
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, args=(read_end,), name="jvm-stderr", daemon=True)

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._close()

    def relay(self) -> None:
        """Print what has been kept, and each line that comes."""
        with self._lock:
            for line in self._kept or ():
                print_relayed(line)
            self._kept = None

    def reason(self) -> str | None:
        """Why the JVM has ended, in its own words, if it has told."""
        self._close()
        self._reader.join(JVM_END_LIMIT_SECONDS)
        told = (LAUNCH_FAILURE.match(line.decode(errors="replace")) for line in self._kept or ())
        return next((found[1] for found in told if found), None)

    def _close(self) -> None:
        if self.write_end >= 0:
            os.close(self.write_end)
            self.write_end = -1

    def _read(self, read_end: int) -> None:
        with os.fdopen(read_end, "rb") as lines:
            for line in lines:
                if line.startswith(JAVA_NOTICES):
                    continue
                with self._lock:
                    if self._kept is None:
                        print_relayed(line)
                    else:
                        self._kept.append(line)


def _exit_code(jvm: "subprocess.Popen[bytes]") -> int | None:
    """The exit code of a JVM that does not answer; None when it has not ended within the limit."""
    try:
        return jvm.wait(JVM_END_LIMIT_SECONDS)
    except subprocess.TimeoutExpired:
        return None


def _end(gateway: Any, jvm: "subprocess.Popen[bytes] | None", limit_seconds: float = JVM_END_LIMIT_SECONDS) -> None:
    # pyspark would use the ended JVM for the next session of this process.
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    if jvm is None:
        return
    gateway.shutdown()
    assert jvm.stdin is not None
    jvm.stdin.close()
    try:
        jvm.wait(limit_seconds)
    except subprocess.TimeoutExpired:
        jvm.kill()
        jvm.wait()
    _launched.remove(jvm)
