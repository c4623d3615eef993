"""Why brokers have not answered, in words."""

import asyncio

import pytest
from confluent_kafka import KafkaError

from streaming.contract.output.broker_failures import brokers_failed, connection_failed

NO_METADATA = KafkaError(KafkaError._TRANSPORT, "Failed to get metadata: Local: Broker transport failure")
ALL_DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")


@pytest.mark.parametrize(
    ("cause", "reason"),
    [
        (
            "10.0.0.1:9092/bootstrap: Connect to ipv4#10.0.0.1:9092 failed: Connection refused "
            "(after 0ms in state CONNECT, 1 identical error(s) suppressed)",
            "Connection refused",
        ),
        (
            "kafka-1:9092/2: Failed to resolve 'kafka-1:9092': Name or service not known (after 3ms in state CONNECT)",
            "Failed to resolve 'kafka-1:9092': Name or service not known",
        ),
        (
            "ssl://kafka-1:9092/bootstrap: SSL handshake failed: certificate verify failed "
            "(after 5ms in state SSL_HANDSHAKE)",
            "SSL handshake failed: certificate verify failed",
        ),
    ],
)
def test_the_last_cause_counts_without_the_words_of_a_log(cause: str, reason: str) -> None:
    causes = [KafkaError(KafkaError._TRANSPORT, "x/1: another"), KafkaError(KafkaError._TRANSPORT, cause), ALL_DOWN]
    assert brokers_failed("a:1,b:2", NO_METADATA, causes) == f"Kafka at a:1,b:2 does not answer: {reason}"


def test_without_a_cause_no_more_is_said() -> None:
    assert brokers_failed("a:1", NO_METADATA, [ALL_DOWN]) == "Kafka at a:1 does not answer"


def test_an_answer_of_the_brokers_is_told_as_it_is() -> None:
    refused = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed")
    assert brokers_failed("a:1", refused, []) == "Kafka at a:1: Topic authorization failed"


def test_a_failed_connection_is_told_in_the_words_of_the_system() -> None:
    assert (
        connection_failed(ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 9)")) == "Connection refused"
    )
    assert connection_failed(asyncio.IncompleteReadError(b"", 4)) == "0 bytes read on a total of 4 expected bytes"
    assert connection_failed(TimeoutError()) == "TimeoutError"
