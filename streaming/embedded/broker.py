"""A Kafka broker for one machine, on which the demo, the tests and the benchmark run.

Kafka's own code (see `ivy.xml`) runs in a JVM of its own, as broker and controller in one process, and listens on
127.0.0.1 only. The broker ends with the process that started it, even if that process is killed.

    with EmbeddedBroker() as broker:
        Producer({"bootstrap.servers": broker.bootstrap_servers})
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from streaming.embedded import die_with_parent
from streaming.embedded.class_archive import BROKER, archive_path, options_to_use
from streaming.embedded.folder_lock import folder_lock
from streaming.embedded.jars import java_executable, resolve_jars
from streaming.embedded.ports import HOST, free_ports

__all__ = ["BrokerStartError", "EmbeddedBroker"]

NODE_ID = "1"
PORT_ATTEMPTS = 5
PORT_FILE = "port"
"""In a given data folder: the port of its broker, which a later one takes again if it is free."""

TAIL_LINES = 25
FORMAT_LIMIT_SECONDS = 60.0
START_LIMIT_SECONDS = 60.0
STOP_LIMIT_SECONDS = 15.0
KILL_LIMIT_SECONDS = 15.0

# For a short start on a small machine: without the second compiler the broker answers a fifth sooner and warms
# up with less processor time. A broker that runs for hours may want both compilers.
JVM_OPTIONS = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")

# Properties that differ from Kafka's defaults. The timings of the group coordinator are Kafka's.
SINGLE_NODE_PROPERTIES = {
    "process.roles": "broker,controller",
    "node.id": NODE_ID,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    # One node holds all replicas.
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # With the default of 50 partitions, the first use of a group or a transaction is slow.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # A mistyped topic name should be an error, not a topic.
    "auto.create.topics.enable": "false",
    # After a kill, the controller admits the broker only once the session of its previous run has expired:
    # 3 s instead of 9 s. A broker that was stopped for 5 s continued without an error.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # The default buffer of 128 MB is a third of the heap; 4 MB suffice for 150,000 keys in a pass.
    "log.cleaner.dedupe.buffer.size": str(4 * 1024 * 1024),
}

LOGGED_ERROR = re.compile(r"\[[^\]]*\] (?:ERROR|FATAL) (.*)")
"""A line of an error, as LOG4J2_CONFIGURATION formats it."""

LOG4J2_CONFIGURATION = """\
<Configuration status="WARN" shutdownHook="disable">
  <Appenders>
    <Console name="stdout"><PatternLayout pattern="[%d] %p %m (%c)%n"/></Console>
  </Appenders>
  <Loggers>
    <Root level="INFO"><AppenderRef ref="stdout"/></Root>
  </Loggers>
</Configuration>
"""


class BrokerStartError(Exception):
    """The broker did not start. The message ends with the last lines of the broker's log."""


class _PortTakenError(BrokerStartError):
    """Another process took a port after it was chosen and before the broker bound it."""


class EmbeddedBroker:
    """A broker that runs between `start` and `stop`, or inside a `with` block.

    Args:
        data_dir: Folder of the data and of the log (`broker.log`). The folder is kept, and a later broker on it
            has the same cluster id, topics and records. None: a temporary folder, which `stop` removes.
        port: Port on 127.0.0.1, or 0 for the last one of a given data folder, or any free one. `restart` keeps it.
        properties: Broker properties that add to or replace SINGLE_NODE_PROPERTIES and Kafka's defaults.
        jvm_options: Options of the broker's JVM. None: JVM_OPTIONS, and the class archive if there is one.
        environment: Adds to the variables of this process; a change of the attribute applies from the next start.
        stop_limit_seconds: How long `stop` waits after SIGTERM before it sends SIGKILL.
    """

    def __init__(
        self,
        *,
        data_dir: Path | None = None,
        port: int = 0,
        properties: Mapping[str, str] | None = None,
        jvm_options: Sequence[str] | None = None,
        environment: Mapping[str, str] | None = None,
        stop_limit_seconds: float = STOP_LIMIT_SECONDS,
    ) -> None:
        self._given_data_dir = data_dir.absolute() if data_dir else None
        self._given_port = port
        self._properties = dict(properties or {})
        self._jvm_options = jvm_options
        self.environment = dict(environment or {})
        self._stop_limit_seconds = stop_limit_seconds
        self._data_dir: Path | None = None
        self._ports: tuple[int, int] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None
        self._lock = ExitStack()
        self._inherited: tuple[int, ...] = ()
        self._serves = False
        self._log_start = 0

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    @property
    def bootstrap_servers(self) -> str:
        """`127.0.0.1:<port>`. Raises RuntimeError before the first start."""
        return f"{HOST}:{self._listening_on()[0]}"

    @property
    def data_dir(self) -> Path:
        """The folder of data and log. Raises RuntimeError before the start and after a temporary folder is removed."""
        if self._data_dir is None:
            raise RuntimeError("the broker has no data folder: it has not started, or has stopped")
        return self._data_dir

    @property
    def log_file(self) -> Path:
        """The broker's log, with all runs on this data folder one after the other."""
        return self.data_dir / "broker.log"

    @property
    def cluster_id(self) -> str:
        """Kafka's cluster id, which belongs to the data folder."""
        lines = (self.data_dir / "log" / "meta.properties").read_text().splitlines()
        return next(line.removeprefix("cluster.id=") for line in lines if line.startswith("cluster.id="))

    @property
    def pid(self) -> int:
        """The process id of the broker's JVM. Raises RuntimeError if the broker is not running."""
        if self._pid is None or not self.is_running:
            raise RuntimeError("the broker is not running")
        return self._pid

    @property
    def is_running(self) -> bool:
        """Whether the broker's process is running."""
        return self._guard is not None and self._guard.poll() is None

    @property
    def failure(self) -> str | None:
        """Why the broker ended although nobody has stopped it, on one line; None if it has not."""
        guard = self._guard
        # In this order: whoever stops the broker clears `_serves` first.
        if guard is None or guard.poll() is None or not self._serves:
            return None
        return _last_words(self.log_file, self._log_start) or _exit(guard.returncode)

    def start(self) -> None:
        """Start the broker, and return when it answers.

        Raises:
            MissingPrerequisite, JarResolutionError: see `streaming.embedded.jars`.
            BrokerStartError: the broker ended at its start, or did not answer in time.
            CannotRun: another process uses the data folder.
        """
        if self.is_running:
            raise RuntimeError("the broker is already running")
        with ExitStack() as on_failure:
            on_failure.callback(self.stop)
            # What is missing is reported before a folder is made.
            java_executable()
            resolve_jars()
            self._make_data_dir()
            if self._ports is None:
                self._launch_on_free_ports()
            else:
                self._launch()
            self._remember_port()
            self._serves = True
            on_failure.pop_all()

    def stop(self) -> None:
        """Shut the broker down (SIGTERM, then SIGKILL) and remove a temporary data folder.

        Does nothing if the broker is not running.
        """
        self._end(signal.SIGTERM)
        if self._data_dir is not None and self._given_data_dir is None:
            shutil.rmtree(self._data_dir, ignore_errors=True)
            self._data_dir = None

    def kill(self) -> None:
        """Kill the broker with SIGKILL. The data folder stays, for `restart`."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop the broker if it is running, and start it on the same ports and data. Raises what `start` raises."""
        self._end(signal.SIGTERM)
        self.start()

    def _make_data_dir(self) -> None:
        if self._given_data_dir is not None:
            try:
                self._given_data_dir.mkdir(parents=True, exist_ok=True)
            except OSError as failure:
                raise BrokerStartError(f"{self._given_data_dir} cannot be created: {failure.strerror}") from None
            self._inherited = (self._lock.enter_context(folder_lock(self._given_data_dir)),)
            self._data_dir = self._given_data_dir
        elif self._data_dir is None:
            self._data_dir = Path(tempfile.mkdtemp(prefix="embedded-broker-"))

    def _launch_on_free_ports(self) -> None:
        for attempt in range(1, PORT_ATTEMPTS + 1):
            self._ports = _free_ports(self._given_port or self._last_port())
            try:
                self._launch()
            except _PortTakenError:
                self._ports = None
                if attempt == PORT_ATTEMPTS:
                    raise
            else:
                return

    def _last_port(self) -> int:
        """The port that a broker on a given data folder listened on before, or else one that stays free; 0 for any.

        Clients of the folder's broker keep its address. A port that the system gives to connections would be taken
        sooner or later.
        """
        if self._given_data_dir is None:
            return 0
        with suppress(OSError, ValueError, BrokerStartError):
            return _free_ports(int((self.data_dir / PORT_FILE).read_text()))[0]
        with suppress(OSError):
            return free_ports(1)[0]
        return 0

    def _remember_port(self) -> None:
        if self._given_data_dir is not None and (self._given_port or not (self.data_dir / PORT_FILE).exists()):
            (self.data_dir / PORT_FILE).write_text(f"{self._listening_on()[0]}\n")

    def _launch(self) -> None:
        jars = resolve_jars().broker
        options = self._jvm_options
        if options is None:
            options = [*JVM_OPTIONS, *options_to_use(archive_path(BROKER, jars))]
        properties_file = self._write_configuration()
        logging = f"-Dlog4j2.configurationFile={self.data_dir / 'log4j2.xml'}"
        kafka = [java_executable(), *options, logging, "-cp", os.pathsep.join(map(str, jars))]
        if not (self.data_dir / "log" / "meta.properties").exists():
            self._format(kafka, properties_file)
        self._log_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        self._run([*kafka, "kafka.Kafka", str(properties_file)])
        self._await_answer()

    def _write_configuration(self) -> Path:
        port, controller_port = self._listening_on()
        properties = {
            **SINGLE_NODE_PROPERTIES,
            "log.dirs": str(self.data_dir / "log"),
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "controller.quorum.voters": f"{NODE_ID}@{HOST}:{controller_port}",
            **self._properties,
        }
        (self.data_dir / "log4j2.xml").write_text(LOG4J2_CONFIGURATION)
        properties_file = self.data_dir / "server.properties"
        properties_file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        return properties_file

    def _format(self, kafka: list[str], properties_file: Path) -> None:
        """Format the folder with Kafka's tool. It writes the feature levels, which the APIs of consumer groups need."""
        tool = [*kafka, "kafka.tools.StorageTool", "format", "-c", str(properties_file)]
        outcome = subprocess.run(
            [*tool, "-t", _new_cluster_id()],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=FORMAT_LIMIT_SECONDS,
            check=False,
            pass_fds=self._inherited,
        )
        if outcome.returncode != 0:
            raise BrokerStartError(f"Kafka's tool could not format {self.data_dir}:\n{outcome.stdout}")

    def _run(self, command: list[str]) -> None:
        removed_with_us = "" if self._given_data_dir else str(self.data_dir)
        guard = [sys.executable, "-I", die_with_parent.__file__, str(os.getpid()), removed_with_us]
        with self.log_file.open("ab") as log:
            self._guard = subprocess.Popen(
                [*guard, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **self.environment},
                # Ctrl-C in a terminal reaches the whole process group. It should reach this process only,
                # which then shuts the broker down.
                start_new_session=True,
                # The guard and the broker hold the folder's lock, too, if this process is killed.
                pass_fds=self._inherited,
            )
        assert self._guard.stdout is not None
        with self._guard.stdout as pid:
            self._pid = int(pid.readline() or 0) or None

    def _await_answer(self) -> None:
        admin = AdminClient(
            {
                "bootstrap.servers": self.bootstrap_servers,
                "reconnect.backoff.ms": 50,
                "reconnect.backoff.max.ms": 50,
                # Connections are refused until the broker listens.
                "log_level": 0,
            }
        )
        deadline = time.monotonic() + START_LIMIT_SECONDS
        while time.monotonic() < deadline:
            if not self.is_running:
                raise self._failure("The broker ended at its start")
            with suppress(KafkaException):
                metadata = admin.list_topics(timeout=0.5)
                # The answer may come from another broker that took the port.
                if metadata.brokers and metadata.cluster_id == self.cluster_id:
                    return
            time.sleep(0.02)
        raise self._failure(f"The broker did not answer within {START_LIMIT_SECONDS:g} s")

    def _failure(self, what: str) -> BrokerStartError:
        lines = _lines_since(self.log_file, self._log_start)
        kind = _PortTakenError if any("failed to bind to" in line for line in lines) else BrokerStartError
        return kind("\n".join([f"{what}. Its log ends with:", *lines[-TAIL_LINES:]]))

    def _end(self, with_signal: signal.Signals) -> None:
        self._serves = False
        if self._guard is not None:
            self._signal(with_signal)
            try:
                self._guard.wait(self._stop_limit_seconds)
            except subprocess.TimeoutExpired:
                self._signal(signal.SIGKILL)
                self._guard.wait(KILL_LIMIT_SECONDS)
        self._guard = self._pid = None
        self._lock.close()
        self._inherited = ()

    def _signal(self, number: signal.Signals) -> None:
        if self._guard is None or self._guard.poll() is not None:
            return
        if self._pid is None:
            # The guard has not reported the broker's process id yet; it passes SIGTERM on.
            self._guard.terminate()
            return
        # The id cannot belong to another process while the guard, its parent, is running.
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _listening_on(self) -> tuple[int, int]:
        if self._ports is None:
            raise RuntimeError("the broker has no address yet: it has not started")
        return self._ports


def _lines_since(log_file: Path, start: int) -> list[str]:
    with log_file.open("rb") as log:
        log.seek(start)
        return log.read().decode(errors="replace").splitlines()


def _last_words(log_file: Path, start: int) -> str | None:
    """The last error in a broker's log, without its time; None if there is none."""
    with suppress(OSError):
        errors = [found[1] for line in _lines_since(log_file, start) if (found := LOGGED_ERROR.match(line))]
        return errors[-1] if errors else None
    return None


def _exit(code: int) -> str:
    """How a process has ended, by the exit code of its guard."""
    number = code - 128 if code > 128 else -code
    with suppress(ValueError):
        return f"killed by {signal.Signals(number).name}" if number > 0 else f"exit code {code}"
    return f"exit code {code}"


def _new_cluster_id() -> str:
    """A cluster id of 22 characters, as Kafka creates them. One that begins with a dash would be read as an option."""
    while True:
        cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not cluster_id.startswith("-"):
            return cluster_id


def _free_ports(port: int) -> tuple[int, int]:
    """Choose free ports for clients (``port``, or any if it is 0) and for the controller."""
    with socket.socket() as clients, socket.socket() as controller:
        # Like Kafka, use a port whose last connections are in TIME_WAIT.
        clients.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            clients.bind((HOST, port))
        except OSError as failure:
            raise BrokerStartError(f"The broker cannot listen on {HOST}:{port}: {failure.strerror}") from None
        controller.bind((HOST, 0))
        return clients.getsockname()[1], controller.getsockname()[1]
