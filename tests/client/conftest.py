from collections.abc import Iterator

import pytest

from streaming.client import CoordinatorClient
from streaming.embedded.broker import EmbeddedBroker
from tests.support.scripted_coordinator import ScriptedCoordinator
from tests.support.topics import create_topic


@pytest.fixture(scope="module")
def scripted(broker: EmbeddedBroker) -> Iterator[ScriptedCoordinator]:
    """A coordinator whose answers the test writes."""
    coordinator = ScriptedCoordinator(broker.bootstrap_servers)
    create_topic(coordinator.bootstrap_servers, coordinator.topics.coordinators, 1, {"cleanup.policy": "compact"})
    yield coordinator
    coordinator.close()


@pytest.fixture
def client(scripted: ScriptedCoordinator) -> Iterator[CoordinatorClient]:
    """A client of it."""
    with CoordinatorClient(scripted.bootstrap_servers, topic_prefix=scripted.topics.prefix, client_id="app") as client:
        yield client
