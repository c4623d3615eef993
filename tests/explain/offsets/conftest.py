import pytest

from tests.logic.driver import Driven


@pytest.fixture
def driven() -> Driven:
    """A group that does not exist yet, with the harness' configuration."""
    return Driven()
