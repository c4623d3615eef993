from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.clients.group import WatchedGroup
from tests.clients.system import System
from tests.support.processes import Process

NewGroup = Callable[..., WatchedGroup]
NewProcess = Callable[..., Process]


@pytest.fixture(scope="package")
def system(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """The coordinator and gateway that all tests of clients share. Leave both running, and use your own topics."""
    started = System(broker, tmp_path_factory.mktemp("system"))
    try:
        started.start()
        yield started
    finally:
        started.kill()


@pytest.fixture
def new_group(system: System, tmp_path: Path) -> Iterator[NewGroup]:
    """Creates groups, each with its own topic, from a number of partitions and the settings of :class:`WatchedGroup`.

    Members connect to the shared gateway unless ``bootstrap_servers`` is given.
    """
    with ExitStack() as stack:

        def create(partitions: int, **settings: Any) -> WatchedGroup:
            group = system.new_group(tmp_path, partitions, **settings)
            stack.callback(group.kill_all)
            return group

        yield create


@pytest.fixture
def new_process() -> Iterator[NewProcess]:
    """Starts processes from a name and a command; kills them after the test."""
    with ExitStack() as stack:

        def start(name: str, command: list[str]) -> Process:
            process = Process(name, command)
            stack.callback(process.kill)
            process.start()
            return process

        yield start
