"""Command lines of Kafka's Java programs, in JVMs that start quickly and stay small."""

from streaming.jars import java_executable
from tests.clients.jars import connect_class_path, tools_class_path

__all__ = ["connect_worker", "tool"]

JVM_OPTIONS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"

CLASSES = {
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
    "kafka-verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
    "transactional-message-copier": "org.apache.kafka.tools.TransactionalMessageCopier",
}
"""What the scripts of these names in Kafka's ``bin`` folder run; the last has none, Kafka's own tests run it."""


def tool(name: str, *arguments: object) -> list[str]:
    """One of the programs above."""
    return [java_executable(), *JVM_OPTIONS, QUIET, "-cp", tools_class_path(), CLASSES[name], *map(str, arguments)]


def connect_worker(properties_file: object) -> list[str]:
    """``connect-distributed``."""
    main = "org.apache.kafka.connect.cli.ConnectDistributed"
    return [java_executable(), *JVM_OPTIONS, "-cp", connect_class_path(), main, str(properties_file)]
