import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from streaming.broker import EmbeddedBroker

# On a busy machine, an example may take longer than hypothesis likes.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def pytest_configure() -> None:
    # As with Ctrl-C, fixtures end what they have started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def broker() -> Iterator[EmbeddedBroker]:
    """One broker for all tests: use topics and groups of your own, and start another one to stop or kill."""
    with EmbeddedBroker() as started:
        yield started
