"""The listeners' certificate is replaced while the gateway runs."""

import shutil
import ssl
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from tests.gateway.conftest import NewGateway
from tests.gateway.support.certificate import Certificate, new_certificate
from tests.gateway.support.requests import metadata
from tests.gateway.support.wire_client import WireClient
from tests.support.waiting import wait_until


@pytest.fixture
def issued(tmp_path: Path) -> list[Certificate]:
    """Two certificates of different authorities."""
    folders = [tmp_path / name for name in ("old", "new")]
    for folder in folders:
        folder.mkdir()
    return [new_certificate(folder) for folder in folders]


def accepts(port: int, certificate: Certificate, topic: str) -> bool:
    """Whether a client that trusts this certificate's authority can connect."""
    try:
        with WireClient(port, ssl.create_default_context(cafile=certificate.authority)) as client:
            return client.ask(metadata(topic)).topics[0].error_code is ErrorCode.none
    except ssl.SSLError:
        return False


def test_new_connections_use_a_replaced_certificate_and_others_go_on(
    new_gateway: NewGateway, issued: list[Certificate], tmp_path: Path, topic: str
) -> None:
    old, new = issued
    files = {name: tmp_path / f"{name}.pem" for name in ("chain", "key")}

    def install(certificate: Certificate, *which: str) -> None:
        for name in which:
            shutil.copyfile(getattr(certificate, name), files[name])

    install(old, "chain", "key")
    options = {"tls-cert": str(files["chain"]), "tls-key": str(files["key"]), "metadata-refresh-ms": 50}
    running = new_gateway(None, options)
    with WireClient(running.port, ssl.create_default_context(cafile=old.authority)) as client:
        assert client.ask(metadata(topic)).topics[0].error_code is ErrorCode.none

        # A certificate without its key does not replace the one that works.
        install(new, "chain")
        with pytest.raises(AssertionError):
            wait_until(lambda: not accepts(running.port, old, topic), "the old certificate is gone", 0.5)

        install(new, "key")
        wait_until(lambda: accepts(running.port, new, topic), "the new certificate is used")
        assert not accepts(running.port, old, topic)
        assert client.ask(metadata(topic)).topics[0].error_code is ErrorCode.none
