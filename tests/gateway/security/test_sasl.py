"""The gateway relays SASL to a real broker, and learns the client's principal from the exchange."""

import asyncio
import hmac
import json
import time
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Iterator
from hashlib import pbkdf2_hmac, sha256

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.static.protocol import Entity, RequestPayload

from streaming.gateway.options import GatewayOptions
from streaming.gateway.proxy.cluster import Cluster
from streaming.gateway.transactions.coordinators import (
    CoordinatorsUnreachable,
    TransactionCoordinators,
    TransactionDescriptions,
)
from streaming.gateway.wire.client_request import ClientRequest
from tests.gateway.conftest import NewGateway
from tests.gateway.support.heartbeat_handlers import heartbeat_api, heartbeat_response
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.requests import api_versions, heartbeat, metadata
from tests.gateway.support.sasl_broker import sasl_broker
from tests.gateway.support.wire_client import WireClient
from tests.support.kafka_io import consume_all, produce_all
from tests.support.topics import create_topic
from tests.support.waiting import LIMIT_SECONDS, wait_until

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
GATEWAY_USER = {"sasl.mechanism": "PLAIN", "sasl.username": "gateway", "sasl.password": "gateway-secret"}
SECURITY = {"security.protocol": "SASL_PLAINTEXT"}
ALICE = {**SECURITY, "sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "alice-secret"}
BOB = {**SECURITY, "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "bob,=", "sasl.password": "bob-secret"}

CAROL = {
    **SECURITY,
    "sasl.mechanism": "OAUTHBEARER",
    "enable.sasl.oauthbearer.unsecure.jwt": "true",
    "sasl.oauthbearer.config": "principal=carol",
}


@pytest.fixture(scope="module")
def secured() -> Iterator[str]:
    """The address of a broker's listener that requires SASL."""
    scram = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
        # Accepts tokens without a signature.
        "oauthbearer.sasl.jaas.config": f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="broker";',
        "scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    }
    users = {"alice": "alice-secret", "gateway": "gateway-secret"}
    with sasl_broker("SASL_PLAINTEXT", users, scram) as (broker, address):
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        information = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        bob = UserScramCredentialUpsertion("bob,=", information, b"bob-secret")
        for done in admin.alter_user_scram_credentials([bob]).values():
            done.result(LIMIT_SECONDS)
        create_topic(broker.bootstrap_servers, "secured")
        yield address


class Scram:
    """The client's side of SCRAM-SHA-256 (RFC 5802)."""

    def __init__(self, user: str, password: str) -> None:
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._password = password.encode()
        self._bare = f"n={name},r=nonce".encode()

    def first(self) -> bytes:
        return b"n,," + self._bare

    def final(self, challenge: bytes) -> bytes:
        attributes = dict(part.split(b"=", 1) for part in challenge.split(b","))
        salted = pbkdf2_hmac("sha256", self._password, b64decode(attributes[b"s"]), int(attributes[b"i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        without_proof = b"c=biws,r=" + attributes[b"r"]
        signed = b",".join((self._bare, challenge, without_proof))
        signature = hmac.digest(sha256(key).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return without_proof + b",p=" + b64encode(proof)


class PrincipalRecorder:
    """A Heartbeat handler that records the principal of each request."""

    def __init__(self) -> None:
        self.principals: list[str] = []

    async def handle(self, request: ClientRequest) -> Entity:
        self.principals.append(request.caller.principal)
        return heartbeat_response()


@pytest.fixture
def recorder() -> PrincipalRecorder:
    return PrincipalRecorder()


@pytest.fixture
def running(new_gateway: NewGateway, secured: str, recorder: PrincipalRecorder) -> RunningGateway:
    options = {f"kafka.{key}": value for key, value in {**SECURITY, **GATEWAY_USER}.items()}
    return new_gateway(heartbeat_api(recorder.handle), options, bootstrap_servers=secured)


def handshake(mechanism: str) -> SaslHandshakeRequest:
    return SaslHandshakeRequest(mechanism=mechanism)


def authenticate(client: WireClient, user: str, password: str, mechanism: str = "PLAIN") -> SaslAuthenticateResponse:
    assert client.ask(handshake(mechanism)).error_code is ErrorCode.none
    token = f"\0{user}\0{password}".encode()
    response: SaslAuthenticateResponse = client.ask(SaslAuthenticateRequest(auth_bytes=token))
    return response


@pytest.mark.parametrize("user", [ALICE, BOB, CAROL], ids=["PLAIN", "SCRAM", "OAUTHBEARER"])
def test_librdkafka_authenticates_with_the_broker_through_the_gateway(
    running: RunningGateway, user: dict[str, str]
) -> None:
    produce_all(running.bootstrap_servers, "secured", [b"value"], **user)
    assert consume_all(running.bootstrap_servers, "secured", 1, **user) == [b"value"]
    wrong = {"sasl.password": "wrong"} if "sasl.password" in user else {"sasl.oauthbearer.config": "principal="}
    with pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": running.bootstrap_servers, **user, **wrong}).list_topics(timeout=1)


def test_handlers_get_the_principal_that_the_broker_authenticated(
    running: RunningGateway, recorder: PrincipalRecorder
) -> None:
    with WireClient(running.port) as client:
        client.ask(api_versions())
        assert authenticate(client, "alice", "alice-secret").error_code is ErrorCode.none
        client.ask(heartbeat())
        assert client.ask(metadata("secured")).brokers[0].port == running.port
    assert recorder.principals == ["User:alice"]


def test_a_scram_user_is_authenticated_once_the_whole_exchange_has_succeeded(
    running: RunningGateway, recorder: PrincipalRecorder
) -> None:
    scram = Scram("bob,=", "bob-secret")
    with WireClient(running.port) as client:
        client.ask(handshake("SCRAM-SHA-256"))
        first = client.ask(SaslAuthenticateRequest(auth_bytes=scram.first()))
        assert first.error_code is ErrorCode.none
        last = client.ask(SaslAuthenticateRequest(auth_bytes=scram.final(first.auth_bytes)))
        assert last.error_code is ErrorCode.none
        client.ask(heartbeat())
    assert recorder.principals == ["User:bob,="]


def test_an_incomplete_scram_exchange_authenticates_no_principal(
    running: RunningGateway, recorder: PrincipalRecorder
) -> None:
    with WireClient(running.port) as client:
        client.ask(handshake("SCRAM-SHA-256"))
        assert client.ask(SaslAuthenticateRequest(auth_bytes=Scram("bob,=", "").first())).error_code is ErrorCode.none
        client.send(heartbeat())
        assert client.is_closed_by_peer()
    assert recorder.principals == []


def bearer(claims: dict[str, object], authorization_id: str = "") -> bytes:
    """The first message of OAUTHBEARER with a token that is not signed (RFC 7628)."""
    parts = [urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "none"}, claims)]
    name = f"a={authorization_id}" if authorization_id else ""
    return f"n,{name},\x01auth=Bearer ".encode() + b".".join(parts) + b".\x01\x01"


def valid_for(seconds: int, name: str) -> dict[str, object]:
    """Claims of a token that was issued a minute ago: a broker refuses one whose issue is later than its own time."""
    return {"sub": name, "iat": time.time() - 60, "exp": time.time() + seconds}


def test_the_principal_of_an_oauth_token_is_its_subject_once_the_broker_has_accepted_it(
    running: RunningGateway, recorder: PrincipalRecorder
) -> None:
    with WireClient(running.port) as client:
        assert client.ask(handshake("OAUTHBEARER")).error_code is ErrorCode.none
        token = bearer(valid_for(600, "carol"), "carol")
        assert client.ask(SaslAuthenticateRequest(auth_bytes=token)).error_code is ErrorCode.none
        client.ask(heartbeat())
    assert recorder.principals == ["User:carol"]


@pytest.mark.parametrize(
    ("seconds", "authorization_id"), [(-30, ""), (600, "alice")], ids=["expired", "of another user"]
)
def test_an_oauth_token_that_the_broker_refuses_authenticates_no_principal(
    running: RunningGateway, recorder: PrincipalRecorder, seconds: int, authorization_id: str
) -> None:
    """The broker's first response to an expired token has no error code, but says in JSON what is wrong."""
    with WireClient(running.port) as client:
        client.ask(handshake("OAUTHBEARER"))
        token = bearer(valid_for(seconds, "carol"), authorization_id)
        client.ask(SaslAuthenticateRequest(auth_bytes=token))
        client.send(heartbeat())
        assert client.is_closed_by_peer()
    assert recorder.principals == []


@pytest.mark.parametrize(
    "token",
    [bearer({"sub": ""}), bearer({}), b"n,,\x01auth=Bearer opaque\x01\x01"],
    ids=["empty", "absent", "opaque token"],
)
def test_an_oauth_token_without_a_readable_subject_is_refused(running: RunningGateway, token: bytes) -> None:
    with WireClient(running.port) as client:
        client.ask(handshake("OAUTHBEARER"))
        client.send(SaslAuthenticateRequest(auth_bytes=token))
        assert client.is_closed_by_peer()
    assert running.metric("refused_frames_total", reason="sasl-exchange") == 1


def test_a_wrong_password_authenticates_no_principal(running: RunningGateway, recorder: PrincipalRecorder) -> None:
    with WireClient(running.port) as client:
        assert authenticate(client, "alice", "wrong").error_code is ErrorCode.sasl_authentication_failed
        client.send(heartbeat())
        assert client.is_closed_by_peer()
    assert recorder.principals == []


def test_a_pipelined_second_exchange_that_fails_does_not_change_the_principal(
    running: RunningGateway, recorder: PrincipalRecorder
) -> None:
    """The principal is the user of the exchange that the broker confirmed, not the user of the latest token."""
    with WireClient(running.port) as client:
        requests: list[RequestPayload] = [
            handshake("PLAIN"),
            SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"),
            heartbeat(),
            handshake("PLAIN"),
            SaslAuthenticateRequest(auth_bytes=b"\0gateway\0wrong"),
            heartbeat(),
        ]
        sent = [client.send(request) for request in requests]
        responses = [client.receive(request) for request in requests]
    assert [correlation_id for correlation_id, _ in responses] == sent
    assert [response.error_code for _, response in responses[3:5]] == [ErrorCode.illegal_sasl_state] * 2
    assert recorder.principals == ["User:alice", "User:alice"]


@pytest.mark.parametrize("request_", [heartbeat(), metadata("secured")], ids=["handler", "broker"])
def test_requests_before_authentication_are_refused(
    running: RunningGateway, recorder: PrincipalRecorder, request_: RequestPayload
) -> None:
    with WireClient(running.port) as client:
        assert client.ask(api_versions()).error_code is ErrorCode.none
        client.send(request_)
        assert client.is_closed_by_peer()
    assert running.metric("refused_frames_total", reason="not-authenticated") == 1
    assert recorder.principals == []


def test_a_mechanism_without_a_readable_user_name_is_refused_with_the_reason(
    running: RunningGateway, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with WireClient(running.port) as client:
        refusal = client.ask(handshake("GSSAPI"))
        assert refusal.error_code is ErrorCode.unsupported_sasl_mechanism
        assert {"PLAIN", "OAUTHBEARER"} <= set(refusal.mechanisms)
        assert client.is_closed_by_peer()
    assert "refusing SASL mechanism 'GSSAPI'" in caplog.text


def test_a_malformed_token_closes_the_connection(running: RunningGateway) -> None:
    with WireClient(running.port) as client:
        client.ask(handshake("PLAIN"))
        client.send(SaslAuthenticateRequest(auth_bytes=b"nonsense"))
        assert client.is_closed_by_peer()
    assert running.metric("refused_frames_total", reason="sasl-exchange") == 1


@pytest.mark.parametrize("user", [ALICE, BOB], ids=["PLAIN", "SCRAM"])
def test_the_gateways_own_requests_to_transaction_coordinators_are_authenticated(
    secured: str, user: dict[str, str]
) -> None:
    def described(password: str) -> TransactionDescriptions:
        options = GatewayOptions(bootstrap_servers=secured, kafka={**user, "sasl.password": password})
        return asyncio.run(TransactionCoordinators(Cluster(options, {})).describe(["nobody"]))

    # The broker creates its transaction topic at the first request.
    wait_until(lambda: described(user["sasl.password"]) == {"nobody": None}, "the coordinator answers")
    with pytest.raises(CoordinatorsUnreachable, match="SaslRefused"):
        described("wrong")
