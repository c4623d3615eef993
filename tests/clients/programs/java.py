"""Commands of Kafka's Java programs, with JVM options for a quick start and little memory."""

from collections.abc import Iterable
from pathlib import Path

from streaming.embedded.jars import java_executable
from tests.clients.programs.jars import connect_class_path, tools_class_path

__all__ = ["connect_worker", "program", "tool"]

JVM_OPTIONS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"

CLASSES = {
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "transactional-message-copier": "org.apache.kafka.tools.TransactionalMessageCopier",
}
"""The classes behind the scripts in Kafka's ``bin`` folder; the last one has no script, Kafka's tests run it."""


def tool(name: str, *arguments: object) -> list[str]:
    """The command of one of :data:`CLASSES`."""
    return _with_tools(CLASSES[name], arguments)


def program(source: Path, *arguments: object) -> list[str]:
    """The command of a program in one source file, which the JDK compiles at each start (JEP 330)."""
    return _with_tools(str(source), arguments)


def connect_worker(properties_file: object) -> list[str]:
    """The command of ``connect-distributed``."""
    main = "org.apache.kafka.connect.cli.ConnectDistributed"
    return [java_executable(), *JVM_OPTIONS, "-cp", connect_class_path(), main, str(properties_file)]


def _with_tools(main: str, arguments: Iterable[object]) -> list[str]:
    return [java_executable(), *JVM_OPTIONS, QUIET, "-cp", tools_class_path(), main, *map(str, arguments)]
