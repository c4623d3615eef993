"""Members follow what becomes of their topics, and their patterns get the topics of users only."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from tests.clients.conftest import NewProcess
from tests.clients.live_consumer import LiveConsumer
from tests.clients.programs.java import tool
from tests.clients.programs.libraries import CLASSIC, CONSUMER, Library, member_command
from tests.clients.system import System
from tests.support.gateway_process import GatewayProcess
from tests.support.kafka_io import produce
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

LONG_MS = 10 * 60_000
SESSION_MS = 10_000


@pytest.fixture
def seldom_looking(system: System) -> Iterator[GatewayProcess]:
    """A gateway that looks at the topics of groups every ten minutes, unless it has a reason to do so earlier."""
    settings = {"metadata-refresh-ms": str(LONG_MS)}
    gateway = GatewayProcess(system.broker.bootstrap_servers, system.coordinator.topics.prefix, settings)
    gateway.start()
    try:
        yield gateway
    finally:
        gateway.kill()


def test_a_topic_that_is_deleted_and_created_again_is_followed_at_once(seldom_looking: GatewayProcess) -> None:
    address, topic = seldom_looking.bootstrap_servers, unique("followed")
    admin = AdminClient({"bootstrap.servers": address})
    create_topic(address, topic, 1)
    settings = {
        "bootstrap.servers": address,
        "group.id": unique("follower"),
        "client.id": "follower",
        "group.protocol": CONSUMER,
    }
    with LiveConsumer(topic, settings) as consumer:
        consumer.await_partitions(0)
        produce(address, topic, {0: [b"first"]})
        wait_until(lambda: (0, 0) in consumer.consumed, "the record of the first topic is consumed")
        assert consumer.commit(0, 1) is None
        admin.delete_topics([topic])[topic].result(LIMIT_SECONDS)
        consumer.await_partitions()
        create_topic(address, topic, 2)
        consumer.await_partitions(0, 1)
        consumer.consumed.clear()
        produce(address, topic, {0: [b"second"], 1: [b"third"]})
        wait_until(lambda: consumer.consumed == {(0, 0), (1, 0)}, "the records of the second topic are consumed")
        assert consumer.commit(1, 1) is None


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
def test_a_java_consumer_with_a_pattern_reads_the_topics_of_users(
    system: System, new_process: NewProcess, protocol: str
) -> None:
    system.produce(system.new_topic(1), [0], 1)
    where = ("--bootstrap-server", system.bootstrap_servers, "--include", ".*o.*", "--group", unique("java-pattern"))
    chosen = ("--consumer-property", f"group.protocol={protocol}", "--from-beginning")
    reader = new_process("console consumer", tool("kafka-console-consumer", *where, *chosen))
    reader.await_line("a record", lambda line: "record 0" in line)
    assert reader.is_running
    assert not [line for line in reader.output if "AuthorizationException" in line]


@pytest.mark.parametrize("protocol", [CLASSIC, CONSUMER])
def test_librdkafka_with_a_pattern_is_assigned_the_topics_of_users(
    system: System, new_process: NewProcess, tmp_path: Path, protocol: str
) -> None:
    topic = system.new_topic(1)
    options: dict[str, object] = {
        "bootstrap-server": system.bootstrap_servers,
        "topic": "^.*",
        "group-id": unique("librdkafka-pattern"),
        "session-timeout": SESSION_MS if protocol == CLASSIC else None,
    }
    member = new_process("member", member_command(Library.LIBRDKAFKA, tmp_path, None, options, protocol=protocol))
    member.await_line("its topic assigned", lambda line: "partitions_assigned" in line and topic in line)
    member.stop()
    own = system.coordinator.topics.all
    assert not [line for line in member.output if any(name in line for name in own)]
