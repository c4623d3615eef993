"""A fatal error of the producer of request events does not outlast its cause."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AclOperation, AclPermissionType, ResourceType

from coordinator_logic.messages import HeartbeatRequest
from streaming.client import CoordinatorNotAvailable
from streaming.client.request_reply import RequestReply
from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from tests.gateway.support.guarded_broker import CreateAcl, creating_acls
from tests.support.gateway_process import GatewayProcess
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

GROUP = "group"


@pytest.fixture
def topics(guarded: EmbeddedBroker) -> TopicNames:
    names = TopicNames(f"{unique('fatal')}-")
    for topic in (names.requests, names.responses, names.directory, names.transactions):
        create_topic(guarded.bootstrap_servers, topic, 1)
    return names


def forbid_producing(create: CreateAcl) -> None:
    """A broker then gives no producer an id: for librdkafka, a fatal error."""
    # A resource with an ACL is not open any more.
    create("kafka-cluster", AclOperation.ALL, resource=ResourceType.BROKER)
    create("kafka-cluster", AclOperation.IDEMPOTENT_WRITE, AclPermissionType.DENY, resource=ResourceType.BROKER)
    create("*", AclOperation.ALL, resource=ResourceType.TOPIC)
    create("*", AclOperation.WRITE, AclPermissionType.DENY, resource=ResourceType.TOPIC)


def test_requests_are_sent_again_when_the_producer_may_write_again(guarded: EmbeddedBroker, topics: TopicNames) -> None:
    appended: list[str] = []

    def send(group_id: str) -> BaseException | None:
        """Send a heartbeat, and wait until it is appended or has failed."""
        future = channel.send(
            group_id,
            "Heartbeat",
            4,
            HeartbeatRequest(group_id, 1, "m"),
            LIMIT_SECONDS,
            on_appended=lambda: appended.append(group_id),
        )
        wait_until(lambda: future.done() or group_id in appended, "the request is appended or has failed")
        return future.exception() if future.done() else None

    with creating_acls(guarded) as create:
        forbid_producing(create)
        channel = RequestReply(guarded.bootstrap_servers, topics, "fatal", "", {}, LIMIT_SECONDS, stall_timeout=1.0)
        failure = send("before")
        assert isinstance(failure, CoordinatorNotAvailable)
        wait_until(lambda: "do not allow Write" in str(channel.failure), "the reason is known")
    try:
        wait_until(lambda: send("after") is None, "a request is sent again")
        assert appended == ["after"]
        assert channel.failure is None
    finally:
        channel.close()


def test_a_gateway_that_cannot_send_requests_is_not_ready_and_says_why(
    guarded: EmbeddedBroker, topics: TopicNames
) -> None:
    with GatewayProcess(guarded.bootstrap_servers, topics.prefix, {"metrics-port": "0"}) as gateway:
        with creating_acls(guarded) as create:
            forbid_producing(create)
            gateway.start()
            line = next(line for line in gateway.output if "metrics at port" in line)
            port = int(line.split("metrics at port ")[1].split('"')[0])
            failing = failing_checks(port)
            wait_until(
                lambda: failing() == ["requests"], "only requests cannot be sent", describe=lambda: str(failing())
            )
        wait_until(lambda: failing() == [], "the gateway is ready again", describe=lambda: str(failing()))


def failing_checks(port: int) -> Callable[[], list[str]]:
    """The names of the checks that keep a gateway from being ready."""

    def failing() -> list[str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health/ready", timeout=10) as answer:
                page = answer.read()
        except urllib.error.HTTPError as refused:
            with refused:
                page = refused.read()
        return [check["name"] for check in json.loads(page)["checks"] if not check["ok"]]

    return failing
