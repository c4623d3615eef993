from collections.abc import Iterator

import pytest

from streaming.broker import EmbeddedBroker


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    """One broker for all tests: use topics and groups of your own, and start another one to stop or kill."""
    with EmbeddedBroker() as started:
        yield started
