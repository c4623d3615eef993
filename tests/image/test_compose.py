"""The services of compose.yaml in containers of the image: a consumer group through the gateway, a kill, commands."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

from tests.image.compose import GATEWAY_PORT, METRICS_PORTS, Compose, services
from tests.image.engine import IMAGE, LIMIT_SECONDS, Container, Engine
from tests.support import waiting
from tests.support.kafka_io import produce_all
from tests.support.topics import create_topic

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(1200)]

INTERNAL_PORT = "29092"
GROUP, TOPIC = "billing", "orders"
READY = "ready"


class Running(NamedTuple):
    """The services, with the address of the gateway and that of the brokers for containers."""

    job: Container
    gateway: Container
    clients_connect_to: str
    brokers: str


@pytest.fixture(scope="module")
def running(engine: Engine) -> Iterator[Running]:
    compose = Compose()
    with ExitStack() as stack:
        stack.enter_context(compose.broker())
        volume = engine("volume", "create").strip()
        stack.callback(engine, "volume", "rm", volume)
        job = stack.enter_context(Container(engine, compose.service("coordinator"), {"checkpoint": volume}))
        gateway = stack.enter_context(Container(engine, compose.service("gateway")))
        for container in (job, gateway):
            container.start()
        for container in (job, gateway):
            await_ready(container)
        yield Running(job, gateway, compose.address(GATEWAY_PORT), compose.address(INTERNAL_PORT))


def await_ready(container: Container) -> None:
    container.await_line("that it is ready", lambda line: line.startswith(READY), LIMIT_SECONDS)


def command_line(engine: Engine, running: Running, *command: str) -> str:
    """What a command prints in a container of its own. Fails if it does."""
    address = f"--env=GROUP_COORDINATOR_BOOTSTRAP_SERVERS={running.brokers}"
    return engine("run", "--rm", "--network", "host", "--read-only", address, IMAGE, *command)


def consume(gateway: str, count: int) -> list[bytes | None]:
    """The next records for a member of the group, which commits behind them."""
    consumer = Consumer({"bootstrap.servers": gateway, "group.id": GROUP, "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([TOPIC])
        records = [record.value() for record in consumer.consume(count, waiting.LIMIT_SECONDS)]
        consumer.commit(asynchronous=False)
        return records
    finally:
        consumer.close()


def test_a_member_continues_where_the_group_was_before_the_job_was_killed(running: Running) -> None:
    create_topic(running.clients_connect_to, TOPIC)
    produce_all(running.clients_connect_to, TOPIC, [b"one", b"two"])
    assert consume(running.clients_connect_to, 2) == [b"one", b"two"]

    running.job.kill()
    produce_all(running.clients_connect_to, TOPIC, [b"three"])
    running.job.start()
    await_ready(running.job)
    assert consume(running.clients_connect_to, 1) == [b"three"]


def test_the_gateway_advertises_the_port_that_compose_publishes(running: Running) -> None:
    brokers = AdminClient({"bootstrap.servers": running.clients_connect_to}).list_topics(timeout=10).brokers.values()
    published = {running.clients_connect_to.partition(":")[2]}
    assert services()["gateway"]["ports"] == [f"{GATEWAY_PORT}:{GATEWAY_PORT}"]
    assert {str(broker.port) for broker in brokers} == published


def test_commands_in_a_container_of_their_own_see_the_group(engine: Engine, running: Running) -> None:
    command_line(engine, running, "offsets", "commit", "of-a-command", "group-directory:0=0", "--execute")
    listed = json.loads(command_line(engine, running, "groups", "list", "--json"))
    assert "of-a-command" in json.dumps(listed)
    checks = command_line(engine, running, "doctor")
    assert "Java" in checks


@pytest.mark.parametrize("service", ["job", "gateway"])
def test_the_user_has_a_number_and_no_rights_and_nothing_outside_the_volume_and_tmp_is_written(
    engine: Engine, running: Running, service: str
) -> None:
    container: Container = getattr(running, service)
    assert container.execute("id", "-u").strip() == "10001"
    assert "CapEff:\t0000000000000000" in container.execute("cat", "/proc/1/status")
    refused = engine.run("exec", "--user", "0", container.id, "touch", "/opt/file")
    assert "Read-only file system" in refused.stderr
    # The engine mounts files there.
    assert set(engine("diff", container.id).splitlines()) <= {"C /etc"}


def test_the_job_uses_the_class_archive(running: Running) -> None:
    maps = running.job.execute("sh", "-c", "cat /proc/[0-9]*/maps")
    assert "/share/spark-group-coordinator/classes-" in maps


@pytest.mark.parametrize("service", ["job", "gateway"])
def test_the_health_check_holds_while_the_service_runs_and_fails_without_it(
    engine: Engine, running: Running, service: str
) -> None:
    container: Container = getattr(running, service)
    check = health_check(engine)
    container.execute(*check)
    # Nothing listens at these ports.
    without = [f"--env={name}=1" for name in METRICS_PORTS]
    failed = engine.run("exec", *without, container.id, *check)
    assert failed.returncode == 1
    assert "neither the job nor the gateway answers" in failed.stderr


def health_check(engine: Engine) -> list[str]:
    """The command of the image's health check."""
    (configuration,) = json.loads(engine("image", "inspect", IMAGE))
    found = configuration.get("Healthcheck") or configuration["Config"]["Healthcheck"]
    kind, *command = found["Test"]
    assert kind == "CMD"
    return list(command)


@pytest.mark.parametrize("service", ["gateway", "job"])
def test_sigterm_ends_a_service_in_order(engine: Engine, running: Running, service: str) -> None:
    container: Container = getattr(running, service)
    engine("stop", "--time", "60", container.id)
    assert container.wait() == 0
    container.start()
    await_ready(container)
