"""The topic whose offsets the tests commit."""

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.gateway.transactions.environment import RECORDS
from tests.support.kafka_io import produce
from tests.support.topics import create_topic, unique


@pytest.fixture(scope="module")
def topic(broker: EmbeddedBroker) -> str:
    name = unique("input")
    create_topic(broker.bootstrap_servers, name, 1)
    produce(broker.bootstrap_servers, name, {0: [b"%d" % number for number in range(RECORDS)]})
    return name
