"""SASL goes through to a real broker, and the gateway learns from its answers who a client is."""

import asyncio
import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import pbkdf2_hmac, sha256

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest
from kio.static.protocol import Entity, RequestPayload

from streaming.gateway.addresses import Address
from streaming.gateway.request import ClientRequest
from streaming.gateway.transactions.coordinators import CoordinatorsUnreachable, Standing, TransactionCoordinators
from tests.streaming.client_support import wait_until
from tests.streaming.gateway.clients import LIMIT_SECONDS, consume_all, produce_all
from tests.streaming.gateway.conftest import NewGateway
from tests.streaming.gateway.in_process import RunningGateway
from tests.streaming.gateway.requests import api_versions, heartbeat, metadata
from tests.streaming.gateway.sasl_broker import sasl_broker
from tests.streaming.gateway.test_proxy import answer, heartbeats
from tests.streaming.gateway.wire_client import WireClient

SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
GATEWAY_USER = {"sasl.mechanism": "PLAIN", "sasl.username": "gateway", "sasl.password": "gateway-secret"}
SECURITY = {"security.protocol": "SASL_PLAINTEXT"}
ALICE = {**SECURITY, "sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "alice-secret"}
BOB = {**SECURITY, "sasl.mechanism": "SCRAM-SHA-256", "sasl.username": "bob,=", "sasl.password": "bob-secret"}


@pytest.fixture(scope="module")
def secured() -> Iterator[str]:
    """The address where a broker wants SASL. It has another listener, which does not."""
    scram = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        "scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
    }
    users = {"alice": "alice-secret", "gateway": "gateway-secret"}
    with sasl_broker("SASL_PLAINTEXT", users, scram) as (broker, address):
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        information = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
        bob = UserScramCredentialUpsertion("bob,=", information, b"bob-secret")
        for done in admin.alter_user_scram_credentials([bob]).values():
            done.result(LIMIT_SECONDS)
        admin.create_topics([NewTopic("secured", 1, 1)])["secured"].result(LIMIT_SECONDS)
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
        told = dict(part.split(b"=", 1) for part in challenge.split(b","))
        salted = pbkdf2_hmac("sha256", self._password, b64decode(told[b"s"]), int(told[b"i"]))
        key = hmac.digest(salted, b"Client Key", "sha256")
        without_proof = b"c=biws,r=" + told[b"r"]
        signed = b",".join((self._bare, challenge, without_proof))
        signature = hmac.digest(sha256(key).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
        return without_proof + b",p=" + b64encode(proof)


class Witness:
    """Remembers who asked."""

    def __init__(self) -> None:
        self.principals: list[str] = []

    async def handle(self, request: ClientRequest) -> Entity:
        self.principals.append(request.caller.principal)
        return answer()


@pytest.fixture
def witness() -> Witness:
    return Witness()


@pytest.fixture
def running(new_gateway: NewGateway, secured: str, witness: Witness) -> RunningGateway:
    options = {f"kafka.{key}": value for key, value in {**SECURITY, **GATEWAY_USER}.items()}
    return new_gateway(heartbeats(witness.handle), options, bootstrap_servers=secured)


def handshake(mechanism: str) -> SaslHandshakeRequest:
    return SaslHandshakeRequest(mechanism=mechanism)


def authenticate(client: WireClient, user: str, password: str, mechanism: str = "PLAIN") -> SaslAuthenticateResponse:
    assert client.ask(handshake(mechanism)).error_code is ErrorCode.none
    token = f"\0{user}\0{password}".encode()
    response: SaslAuthenticateResponse = client.ask(SaslAuthenticateRequest(auth_bytes=token))
    return response


@pytest.mark.parametrize("user", [ALICE, BOB], ids=["PLAIN", "SCRAM"])
def test_librdkafka_authenticates_with_the_broker_through_the_gateway(
    running: RunningGateway, user: dict[str, str]
) -> None:
    produce_all(running.bootstrap_servers, "secured", [b"value"], **user)
    assert consume_all(running.bootstrap_servers, "secured", 1, **user) == [b"value"]
    with pytest.raises(KafkaException):
        AdminClient({"bootstrap.servers": running.bootstrap_servers, **user, "sasl.password": "wrong"}).list_topics(
            timeout=1
        )


def test_handlers_are_told_whom_the_broker_has_authenticated(running: RunningGateway, witness: Witness) -> None:
    with WireClient(running.port) as client:
        client.ask(api_versions())
        assert authenticate(client, "alice", "alice-secret").error_code is ErrorCode.none
        client.ask(heartbeat())
        assert client.ask(metadata("secured")).brokers[0].port == running.port
    assert witness.principals == ["User:alice"]


def test_a_scram_user_is_known_when_the_whole_exchange_has_succeeded(running: RunningGateway, witness: Witness) -> None:
    scram = Scram("bob,=", "bob-secret")
    with WireClient(running.port) as client:
        client.ask(handshake("SCRAM-SHA-256"))
        first = client.ask(SaslAuthenticateRequest(auth_bytes=scram.first()))
        assert first.error_code is ErrorCode.none
        last = client.ask(SaslAuthenticateRequest(auth_bytes=scram.final(first.auth_bytes)))
        assert last.error_code is ErrorCode.none
        client.ask(heartbeat())
    assert witness.principals == ["User:bob,="]


def test_half_an_exchange_authenticates_nobody(running: RunningGateway, witness: Witness) -> None:
    with WireClient(running.port) as client:
        client.ask(handshake("SCRAM-SHA-256"))
        assert client.ask(SaslAuthenticateRequest(auth_bytes=Scram("bob,=", "").first())).error_code is ErrorCode.none
        client.send(heartbeat())
        assert client.is_closed_by_peer()
    assert witness.principals == []


def test_a_wrong_password_authenticates_nobody(running: RunningGateway, witness: Witness) -> None:
    with WireClient(running.port) as client:
        assert authenticate(client, "alice", "wrong").error_code is ErrorCode.sasl_authentication_failed
        client.send(heartbeat())
        assert client.is_closed_by_peer()
    assert witness.principals == []


def test_a_name_that_is_sent_behind_a_good_one_is_not_believed(running: RunningGateway, witness: Witness) -> None:
    """Nothing waits for an answer: who asks is who the broker's answer is about, not whom the last token names."""
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
        answers = [client.receive(request) for request in requests]
    assert [correlation_id for correlation_id, _ in answers] == sent
    assert [answered.error_code for _, answered in answers[3:5]] == [ErrorCode.illegal_sasl_state] * 2
    assert witness.principals == ["User:alice", "User:alice"]


@pytest.mark.parametrize("request_", [heartbeat(), metadata("secured")], ids=["handler", "broker"])
def test_who_did_not_authenticate_is_refused(
    running: RunningGateway, witness: Witness, request_: RequestPayload
) -> None:
    with WireClient(running.port) as client:
        assert client.ask(api_versions()).error_code is ErrorCode.none
        client.send(request_)
        assert client.is_closed_by_peer()
    assert running.metric("refused_frames_total", reason="not-authenticated") == 1
    assert witness.principals == []


def test_a_mechanism_that_tells_no_name_is_refused(running: RunningGateway) -> None:
    with WireClient(running.port) as client:
        refusal = client.ask(handshake("GSSAPI"))
        assert refusal.error_code is ErrorCode.unsupported_sasl_mechanism
        assert "PLAIN" in refusal.mechanisms
        assert client.is_closed_by_peer()


def test_a_token_that_is_none_closes_the_connection(running: RunningGateway) -> None:
    with WireClient(running.port) as client:
        client.ask(handshake("PLAIN"))
        client.send(SaslAuthenticateRequest(auth_bytes=b"nonsense"))
        assert client.is_closed_by_peer()
    assert running.metric("refused_frames_total", reason="sasl-exchange") == 1


@pytest.mark.parametrize("user", [ALICE, BOB], ids=["PLAIN", "SCRAM"])
def test_the_gateways_own_questions_about_transactions_are_authenticated(secured: str, user: dict[str, str]) -> None:
    def described(password: str) -> Standing:
        host, _, port = secured.partition(":")
        properties = {**user, "sasl.password": password}
        brokers = [Address(host, int(port))]
        coordinators = TransactionCoordinators(lambda: brokers, properties, None, "gateway", LIMIT_SECONDS)
        return asyncio.run(coordinators.describe(["nobody"]))

    # The broker makes its topic of transactions when it is first asked.
    wait_until(lambda: described(user["sasl.password"]) == {"nobody": None}, "the coordinator answers")
    with pytest.raises(CoordinatorsUnreachable, match="SaslRefused"):
        described("wrong")
