from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from streaming.broker import EmbeddedBroker
from tests.streaming.coordinator_process import CoordinatorProcess


@pytest.fixture(scope="session")
def coordinator(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    """One coordinator for all tests that leave it running: use groups of your own."""
    options = {
        "metrics-port": 0,
        # It is idle most of the time, and should leave the cores to others then.
        "trigger-interval-ms": 200,
        # A group that is left without anything is deleted at the next check, and a test may still look at it.
        "offsets.retention.check.interval.ms": 2**31 - 1,
    }
    process = CoordinatorProcess(broker.bootstrap_servers, tmp_path_factory.mktemp("coordinator"), options)
    try:
        process.start()
        yield process
    finally:
        process.kill()


@pytest.fixture
def new_coordinator(broker: EmbeddedBroker, tmp_path: Path) -> Iterator[Callable[..., CoordinatorProcess]]:
    """Makes coordinators to stop and kill (not started yet); called with options."""
    with ExitStack() as stack:

        def make(options: Mapping[str, object] | None = None) -> CoordinatorProcess:
            process = CoordinatorProcess(broker.bootstrap_servers, tmp_path, options)
            stack.callback(process.kill)
            return process

        yield make
