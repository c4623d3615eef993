from collections.abc import Iterator

import pytest
from hypothesis import settings

from streaming.broker import EmbeddedBroker

# On a busy machine, an example may take longer than hypothesis likes.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    """One broker for all tests: use topics and groups of your own, and start another one to stop or kill."""
    with EmbeddedBroker() as started:
        yield started
