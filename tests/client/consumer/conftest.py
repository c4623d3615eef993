"""A topic, a group and consumers of it, for each test."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from streaming.client import Consumer, RebalanceListener
from tests.client.consumer.support import PARTITIONS, App, NewConsumer
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import produce
from tests.support.topics import create_topic, unique


@pytest.fixture
def topic(coordinator: CoordinatorProcess) -> str:
    name = unique("orders")
    create_topic(coordinator.bootstrap_servers, name, PARTITIONS)
    return name


@pytest.fixture
def group_id() -> str:
    return unique("consumers")


@pytest.fixture
def new(coordinator: CoordinatorProcess, group_id: str) -> Iterator[NewConsumer]:
    """Creates consumers of the test's group, with frequent heartbeats, and closes them at the end."""
    created: list[Consumer] = []

    def new(**settings: Any) -> Consumer:
        defaults = {
            "bootstrap_servers": coordinator.bootstrap_servers,
            "topic_prefix": coordinator.topics.prefix,
            "group_id": group_id,
            # Long, so that no member is removed because the machine was slow.
            "session_timeout_ms": 60_000,
            "heartbeat_interval_ms": 300,
            "max_poll_interval_ms": 30_000,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
        }
        created.append(Consumer(**{**defaults, **settings}))
        return created[-1]

    yield new
    for consumer in created:
        consumer.close()


@pytest.fixture
def fill(coordinator: CoordinatorProcess, topic: str) -> Callable[..., None]:
    """Appends ``count`` records to each of these partitions, by default to all."""

    def fill(count: int, partitions: Sequence[int] = range(PARTITIONS)) -> None:
        values = {p: [b"%d of %d" % (number, p) for number in range(count)] for p in partitions}
        produce(coordinator.bootstrap_servers, topic, values)

    return fill


@pytest.fixture
def run(topic: str) -> Iterator[Callable[..., App]]:
    """Runs consumers as applications, and ends their loops before the consumers are closed."""
    running: list[App] = []

    def run(consumer: Consumer, listener: RebalanceListener | None = None, *, commits: bool = False) -> App:
        running.append(App(consumer, topic, listener, commits=commits))
        return running[-1]

    yield run
    for app in running:
        app.loop.end()
