from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.gateway.support.certificate import Certificate, new_certificate
from tests.gateway.support.guarded_broker import CreateAcl, creating_acls, guarded_broker
from tests.gateway.support.in_process import RunningGateway
from tests.support.topics import create_topic, unique

NewGateway = Callable[..., RunningGateway]


@pytest.fixture(scope="session")
def gateway(broker: EmbeddedBroker) -> Iterator[RunningGateway]:
    """A gateway in front of ``broker`` without any handler, shared by all tests that leave it running."""
    running = RunningGateway(broker.bootstrap_servers)
    try:
        running.start()
        yield running
    finally:
        running.stop()


@pytest.fixture
def new_gateway(broker: EmbeddedBroker) -> Iterator[NewGateway]:
    """Starts gateways in front of the shared broker, or of another one with ``bootstrap_servers=``.

    The other arguments are those of :class:`RunningGateway`.
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
    """A new topic with one partition on the shared broker."""
    name = unique("gateway")
    create_topic(broker.bootstrap_servers, name, 1)
    return name


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return new_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="session")
def guarded() -> Iterator[EmbeddedBroker]:
    """A broker with an authorizer, and with its own coordinator."""
    with guarded_broker() as broker:
        yield broker


@pytest.fixture
def create_acl(guarded: EmbeddedBroker) -> Iterator[CreateAcl]:
    """Creates ACLs on ``guarded`` for the duration of a test."""
    with creating_acls(guarded) as create:
        yield create
