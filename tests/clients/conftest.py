from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from streaming.broker import EmbeddedBroker
from tests.clients.group import WatchedGroup
from tests.clients.process import Process
from tests.clients.system import System

NewGroup = Callable[..., WatchedGroup]
NewProcess = Callable[..., Process]


@pytest.fixture(scope="package")
def system(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """One coordinator and one gateway for all tests of clients: leave them running, and use topics of your own."""
    started = System(broker, tmp_path_factory.mktemp("system"))
    try:
        started.start()
        yield started
    finally:
        started.kill()


@pytest.fixture
def new_group(system: System, tmp_path: Path) -> Iterator[NewGroup]:
    """Makes groups, each with a topic of its own; called with the number of its partitions and settings.

    The members connect to the gateway unless ``bootstrap_servers`` says otherwise.
    """
    with ExitStack() as stack:

        def make(partitions: int, **settings: Any) -> WatchedGroup:
            group = system.new_group(tmp_path, partitions, **settings)
            stack.callback(group.kill_all)
            return group

        yield make


@pytest.fixture
def new_process() -> Iterator[NewProcess]:
    """Starts processes; called with a name and a command."""
    with ExitStack() as stack:

        def start(name: str, command: list[str]) -> Process:
            process = Process(name, command)
            stack.callback(process.kill)
            process.start()
            return process

        yield start
