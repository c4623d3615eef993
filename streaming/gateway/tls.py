"""TLS towards clients, and towards the real brokers with librdkafka's own settings."""

import ssl
from collections.abc import Mapping
from pathlib import Path

from streaming.errors import CannotRun

__all__ = ["listener_context", "upstream_context"]

NOT_FOR_THE_GATEWAY = ("ssl.keystore.location", "ssl.certificate.pem", "ssl.key.pem", "ssl.ca.certificate.stores")
"""librdkafka's settings for a certificate or an authority that would be left out on the clients' connections."""


def listener_context(certificate: Path, key: Path | None) -> ssl.SSLContext:
    """What the listeners show to clients: PEM files, the chain and its key (None: in the same file).

    Raises :class:`CannotRun` when they cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ValueError) as failure:
        raise CannotRun(f"tls-cert {certificate} with tls-key {key} cannot be used: {failure}") from failure
    return context


def upstream_context(librdkafka: Mapping[str, str]) -> ssl.SSLContext | None:
    """How the connections to the brokers are secured; None where ``security.protocol`` asks for no TLS.

    Raises :class:`CannotRun`.
    """
    if "SSL" not in librdkafka.get("security.protocol", "").upper().split("_"):
        return None
    unusable = [key for key in NOT_FOR_THE_GATEWAY if key in librdkafka]
    if unusable:
        raise CannotRun(f"kafka.{unusable[0]}: use PEM files (ssl.ca.location, ssl.certificate.location)")
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
        raise CannotRun(f"the TLS settings for the brokers cannot be used: {failure}") from failure
    verifies = librdkafka.get("enable.ssl.certificate.verification", "true").lower() == "true"
    context.check_hostname = verifies and librdkafka.get("ssl.endpoint.identification.algorithm", "https") != "none"
    if not verifies:
        context.verify_mode = ssl.CERT_NONE
    return context
