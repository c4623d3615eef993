"""Whom the brokers take a client for, when only the gateway's own certificate speaks to them."""

import pytest

from streaming.contract.errors import BadOptions
from streaming.gateway.options import load_gateway_options

CERTIFICATE = {"kafka.ssl.certificate.location": "gateway.pem", "kafka.ssl.key.location": "gateway.key"}
BROKERS = {"bootstrap-servers": "kafka:9093"}


@pytest.mark.parametrize("key", ["ssl.certificate.location", "ssl.certificate.pem", "ssl.keystore.location"])
def test_a_gateway_whose_certificate_would_speak_for_every_client_does_not_start(key: str) -> None:
    with pytest.raises(BadOptions, match="take every client of the gateway for the gateway itself"):
        load_gateway_options({**BROKERS, "kafka.security.protocol": "SSL", f"kafka.{key}": "gateway.pem"})


def test_an_operator_may_accept_the_shared_identity() -> None:
    accepted = {"kafka.security.protocol": "ssl", "allow-shared-identity": "true"}
    assert load_gateway_options({**BROKERS, **CERTIFICATE, **accepted}).shares_identity


@pytest.mark.parametrize("protocol", ["SASL_SSL", "SASL_PLAINTEXT", "PLAINTEXT"])
def test_clients_that_authenticate_or_that_no_certificate_speaks_for_share_nothing(protocol: str) -> None:
    secured = {"kafka.security.protocol": protocol}
    assert not load_gateway_options({**BROKERS, **CERTIFICATE, **secured}).shares_identity


def test_tls_without_a_certificate_of_the_gateway_shares_nothing() -> None:
    secured = {"kafka.security.protocol": "SSL", "kafka.ssl.ca.location": "authority.pem"}
    assert not load_gateway_options({**BROKERS, **secured}).shares_identity
