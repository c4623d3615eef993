"""The engine, for all tests of the image."""

import pytest

from tests.image.engine import Engine


@pytest.fixture(scope="package")
def engine() -> Engine:
    """Docker or podman."""
    return Engine()
