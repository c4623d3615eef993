"""``group-coordinator run`` as a process of its own, which tests may stop, kill and start again."""

import importlib.util
import json
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path

from coordinator_logic.messages import GroupToFetch, OffsetCommitRequest, PartitionToCommit, TopicToCommit
from streaming.client import CoordinatorClient
from streaming.contract.topics import TopicNames
from tests.support.processes import Process
from tests.support.waiting import LIMIT_SECONDS

READY_LIMIT_SECONDS = 300.0

# A JVM that lives for seconds never recovers the cost of the second compiler: half of the demo's processor time.
_JAVA_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
SHORT_LIVED_JVM = {"spark.driver.defaultJavaOptions": _JAVA_OPTIONS}
"""Options of a Spark session of a test, whichever process it is in."""
SHORT_LIVED_JVMS = {"JAVA_TOOL_OPTIONS": _JAVA_OPTIONS}
"""Environment variables for a command whose jobs take no options. Each of its JVMs prints a line about them."""

QUICK = {
    "master": "local[2]",
    "driver-memory": "512m",
    "request-partitions": 2,
    "response-partitions": 2,
    "state-partitions": 1,
    "trigger-interval-ms": 200,
    # A batch for each request, as far as the cores go, would take them from the other processes of the tests.
    "cpu-budget": 0,
    "group.initial.rebalance.delay.ms": 0,
    **SHORT_LIVED_JVM,
}
"""Options for short answer times on a small machine."""
QUICK_OF_0_1 = {name: value for name, value in QUICK.items() if name != "cpu-budget"}
"""Those that release 0.1.0 knows, and the commits before it."""


class CoordinatorProcess(Process):
    """``group-coordinator run``, on topics of its own unless ``options`` set another topic prefix.

    ``folder`` gets the checkpoint and the options file. A start after :meth:`kill` or :meth:`stop` continues from the
    checkpoint. ``defaults`` are options that ``options`` may override. ``module`` is started in place of the command
    line, with the same arguments.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        folder: Path,
        options: Mapping[str, object] | None = None,
        *,
        defaults: Mapping[str, object] = QUICK,
        module: str = "streaming.cli",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.bootstrap_servers = bootstrap_servers
        self.checkpoint = folder / "checkpoint"
        self._options_file = folder / "options.toml"
        self.options: dict[str, object] = {
            "bootstrap-servers": bootstrap_servers,
            "checkpoint": str(self.checkpoint),
            "topic-prefix": f"test-{uuid.uuid4().hex[:8]}-",
            **defaults,
            **(options or {}),
        }
        command = [sys.executable, "-m", module, "run", "--json", "--config", str(self._options_file)]
        super().__init__("coordinator", command, environment=environment)

    @property
    def topics(self) -> TopicNames:
        """The names of its topics."""
        return TopicNames(str(self.options["topic-prefix"]))

    def launch(self) -> None:
        """Start it with the present ``options``, and return at once."""
        # JSON's strings and numbers are TOML's, too.
        lines = [f"{json.dumps(key)} = {json.dumps(value)}\n" for key, value in self.options.items()]
        self._options_file.parent.mkdir(parents=True, exist_ok=True)
        self._options_file.write_text("".join(lines))
        super().start()

    def start(self, limit_seconds: float = READY_LIMIT_SECONDS) -> None:
        """Start it, and return when its first batch is complete. Raises AssertionError, with the end of its output."""
        self.launch()
        try:
            self.await_line("that it is ready", reports_ready, limit_seconds)
        except AssertionError:
            self.kill()
            raise


def reports_ready(line: str) -> bool:
    """Whether a line of ``--json`` output reports that the process serves requests."""
    return line.startswith("{") and bool(json.loads(line).get("ready"))


def linked_spark_home(folder: Path) -> Path:
    """Make a folder ``spark`` in this one, of links to pyspark's files: the workers of a cluster write into it."""
    home = folder / "spark"
    home.mkdir()
    # find_spec does not import pyspark, which would take most of a second.
    pyspark = importlib.util.find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    for entry in Path(pyspark.origin).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    return home


def patient_client(coordinator: CoordinatorProcess) -> CoordinatorClient:
    """A client that waits for answers as long as tests do: a busy machine needs a while to start an executor anew."""
    return CoordinatorClient(
        coordinator.bootstrap_servers,
        topic_prefix=coordinator.topics.prefix,
        request_timeout_ms=int(LIMIT_SECONDS * 1000),
    )


def commit_offsets(coordinator: CoordinatorProcess, group: str, *offsets: int, topic: str = "orders") -> None:
    """Commit an offset for each partition of a topic from 0 on. Fails if one is refused."""
    partitions = [PartitionToCommit(number, offset) for number, offset in enumerate(offsets)]
    with patient_client(coordinator) as client:
        answer = client.offset_commit(OffsetCommitRequest(group, [TopicToCommit(topic, partitions)]))
    assert not any(each.error_code for topic in answer.topics for each in topic.partitions)


def committed_offsets(coordinator: CoordinatorProcess, group: str) -> list[int]:
    """What a group has committed for each partition of the topic of :func:`commit_offsets`."""
    with patient_client(coordinator) as client:
        (answer,) = client.offset_fetch([GroupToFetch(group)]).groups
    (topic,) = answer.topics
    return [each.committed_offset for each in topic.partitions]
