"""The server that the tests of this folder share."""

from collections.abc import Iterator

import pytest

from tests.object_store.server import S3Server


@pytest.fixture(scope="package")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A server without buckets."""
    with S3Server(tmp_path_factory.mktemp("s3")) as server:
        server.start()
        yield server
