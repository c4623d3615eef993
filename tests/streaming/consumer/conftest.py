"""A topic, a group and consumers of it, for each test."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from streaming.client import (
    Consumer,
    RebalanceListener,
)
from tests.streaming.client_support import (
    RunningCoordinator,
    create_topic,
    produce,
    unique,
)
from tests.streaming.consumer.support import PARTITIONS, App, NewConsumer


@pytest.fixture
def topic(coordinator: RunningCoordinator) -> str:
    name = unique("orders")
    create_topic(coordinator.bootstrap_servers, name, PARTITIONS)
    return name


@pytest.fixture
def group_id() -> str:
    return unique("consumers")


@pytest.fixture
def new(coordinator: RunningCoordinator, group_id: str) -> Iterator[NewConsumer]:
    """Makes consumers of the test's group, with frequent heartbeats; closes them in the end."""
    made: list[Consumer] = []

    def new(**settings: Any) -> Consumer:
        defaults = {
            "bootstrap_servers": coordinator.bootstrap_servers,
            "topic_prefix": coordinator.topics.prefix,
            "group_id": group_id,
            # Nobody may be expelled because the machine stood still for a while.
            "session_timeout_ms": 60_000,
            "heartbeat_interval_ms": 300,
            "max_poll_interval_ms": 30_000,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
        }
        made.append(Consumer(**{**defaults, **settings}))
        return made[-1]

    yield new
    for consumer in made:
        consumer.close()


@pytest.fixture
def fill(coordinator: RunningCoordinator, topic: str) -> Callable[..., None]:
    """Appends ``count`` records to each of the given partitions, or to all."""

    def fill(count: int, partitions: Sequence[int] = range(PARTITIONS)) -> None:
        values = {p: [b"%d of %d" % (number, p) for number in range(count)] for p in partitions}
        produce(coordinator.bootstrap_servers, topic, values)

    return fill


@pytest.fixture
def run(topic: str) -> Iterator[Callable[..., App]]:
    """Runs consumers as applications; ends their loops before the consumers are closed."""
    running: list[App] = []

    def run(consumer: Consumer, listener: RebalanceListener | None = None, *, commits: bool = False) -> App:
        running.append(App(consumer, topic, listener, commits=commits))
        return running[-1]

    yield run
    for app in running:
        app.loop.end()
