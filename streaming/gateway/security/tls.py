"""TLS contexts for clients' connections, and for connections to brokers from librdkafka's properties."""

import logging
import ssl
from collections.abc import Mapping
from pathlib import Path

from streaming.contract.errors import CannotRun

log = logging.getLogger(__name__)

UNSUPPORTED_PROPERTIES = ("ssl.keystore.location", "ssl.certificate.pem", "ssl.key.pem", "ssl.ca.certificate.stores")
"""librdkafka's properties for certificates and authorities that Python's TLS cannot apply."""


class ListenerCertificate:
    """The listeners' certificate, and their TLS context. Raises :class:`CannotRun` if the files cannot be loaded.

    certificate: a PEM file with the certificate chain.
    key: a PEM file with the private key; None if ``certificate`` contains it.
    """

    def __init__(self, certificate: Path, key: Path | None) -> None:
        self._certificate = certificate
        self._key = key
        self._seen = self._versions()
        try:
            self.context = self._new_context()
        except (OSError, ValueError) as failure:
            files = f"tls-cert {certificate}" if key is None else f"tls-cert {certificate} with tls-key {key}"
            raise CannotRun(f"{files} cannot be loaded: {failure}") from failure

    def reload_if_changed(self) -> None:
        """Use changed files for the handshakes from now on; connections that exist go on.

        Files that do not fit together, as in the middle of their replacement, are tried again when they change.
        """
        versions = self._versions()
        if versions == self._seen:
            return
        self._seen = versions
        try:
            # A context that fails to load keeps the new certificate without its key, so another one tries first.
            self._new_context()
            self.context.load_cert_chain(self._certificate, self._key)
        except (OSError, ValueError) as failure:
            log.warning("tls-cert %s has changed and cannot be loaded: %s", self._certificate, failure)
        else:
            log.info("tls-cert %s is loaded again", self._certificate)

    def _new_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self._certificate, self._key)
        return context

    def _versions(self) -> list[tuple[int, int, int] | None]:
        return [_version(each) for each in (self._certificate, self._key) if each is not None]


def _version(file: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file, or the target of a link, is written or replaced; None without a file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size


def upstream_context(librdkafka: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return the TLS context of connections to brokers; None if ``security.protocol`` does not include SSL.

    Raises :class:`CannotRun` for unsupported properties and for files that cannot be loaded.
    """
    if "SSL" not in librdkafka.get("security.protocol", "").upper().split("_"):
        return None
    unsupported = [key for key in UNSUPPORTED_PROPERTIES if key in librdkafka]
    if unsupported:
        raise CannotRun(
            f"kafka.{unsupported[0]} is not supported: use PEM files (ssl.ca.location, ssl.certificate.location)"
        )
    try:
        context = ssl.create_default_context(
            cafile=librdkafka.get("ssl.ca.location"), cadata=librdkafka.get("ssl.ca.pem")
        )
        if "ssl.certificate.location" in librdkafka:
            context.load_cert_chain(
                librdkafka["ssl.certificate.location"],
                librdkafka.get("ssl.key.location"),
                librdkafka.get("ssl.key.password"),
            )
    except (OSError, ValueError) as failure:
        raise CannotRun(f"the TLS properties for the brokers (kafka.ssl.*) cannot be applied: {failure}") from failure
    verifies = librdkafka.get("enable.ssl.certificate.verification", "true").lower() == "true"
    context.check_hostname = verifies and librdkafka.get("ssl.endpoint.identification.algorithm", "https") != "none"
    if not verifies:
        context.verify_mode = ssl.CERT_NONE
    return context
