import pytest

from streaming.contract.topics import TopicNames
from tests.gateway.conftest import NewGateway
from tests.gateway.support.in_process import RunningGateway


@pytest.fixture
def guarding(new_gateway: NewGateway, names: TopicNames) -> RunningGateway:
    """A gateway that keeps the topics of the fixture ``names`` from all clients."""
    return new_gateway(None, {"topic-prefix": names.prefix})


@pytest.fixture
def permitting(new_gateway: NewGateway, names: TopicNames) -> RunningGateway:
    """A gateway at which anonymous clients may use them."""
    options = {"topic-prefix": names.prefix, "internal-topic-principals": "User:operator;User:ANONYMOUS"}
    return new_gateway(None, options)
