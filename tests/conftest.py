import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.properties import load_profile

pytest_plugins = ["tests.support.plugins.file_times", "tests.support.plugins.shares"]

JVM_FIXTURES = frozenset({"broker", "broker_in_a_rack", "guarded", "secured", "spark"})
"""Fixtures that start a broker or Spark."""

load_profile()


def pytest_configure() -> None:
    # Fixtures then stop their processes, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # A shell starts what runs in the background with Ctrl-C disabled, and so would the tests start their commands.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that use a broker or Spark, so that ``make check`` leaves them out."""
    for item in items:
        if not JVM_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("jvm")


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    """One broker for all tests. Use topics and groups of your own; to stop or kill a broker, start another."""
    with EmbeddedBroker() as started:
        yield started


SHARED_COORDINATOR = {
    "metrics-port": 0,
    # Without this, an empty group is deleted at the next check, even if its test still uses it.
    "offsets.retention.check.interval.ms": 2**31 - 1,
}


@pytest.fixture(scope="session")
def coordinator(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    """One coordinator for all tests that leave it running. Use groups of your own."""
    folder = tmp_path_factory.mktemp("coordinator")
    with CoordinatorProcess(broker.bootstrap_servers, folder, SHARED_COORDINATOR) as process:
        process.start()
        yield process


@pytest.fixture(scope="session")
def young_coordinator(broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    """The same with a short journal, for tests whose queries read all of it several times."""
    folder = tmp_path_factory.mktemp("young-coordinator")
    with CoordinatorProcess(broker.bootstrap_servers, folder, SHARED_COORDINATOR) as process:
        process.start()
        yield process


@pytest.fixture
def new_coordinator(broker: EmbeddedBroker, tmp_path: Path) -> Iterator[Callable[..., CoordinatorProcess]]:
    """Creates coordinators that a test may stop and kill, not started yet; called with options."""
    with ExitStack() as stack:

        def make(options: Mapping[str, object] | None = None) -> CoordinatorProcess:
            process = CoordinatorProcess(broker.bootstrap_servers, tmp_path, options)
            stack.callback(process.kill)
            return process

        yield make
