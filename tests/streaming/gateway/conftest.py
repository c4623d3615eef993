from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from streaming.broker import EmbeddedBroker
from tests.streaming.client_support import create_topic, unique
from tests.streaming.gateway.certificate import Certificate, new_certificate
from tests.streaming.gateway.in_process import RunningGateway

NewGateway = Callable[..., RunningGateway]


@pytest.fixture(scope="session")
def gateway(broker: EmbeddedBroker) -> Iterator[RunningGateway]:
    """A gateway that answers no group API, for all tests that leave it running. ``broker`` is what it stands before."""
    running = RunningGateway(broker.bootstrap_servers)
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture
def new_gateway(broker: EmbeddedBroker) -> Iterator[NewGateway]:
    """Starts gateways before the shared broker; called with the arguments of :class:`RunningGateway` after the first.

    ``bootstrap_servers=`` names another broker.
    """
    with ExitStack() as stack:

        def make(*arguments: object, bootstrap_servers: str | None = None, **named: object) -> RunningGateway:
            running = RunningGateway(bootstrap_servers or broker.bootstrap_servers, *arguments, **named)  # type: ignore[arg-type]
            stack.callback(running.stop)
            running.start()
            return running

        yield make


@pytest.fixture
def topic(broker: EmbeddedBroker) -> str:
    """A new topic of one partition at the shared broker."""
    name = unique("gateway")
    create_topic(broker.bootstrap_servers, name, 1)
    return name


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return new_certificate(tmp_path_factory.mktemp("tls"))
