"""Says in words why brokers have not answered, from librdkafka's errors, which are meant for its own log."""

import os
import re
from collections.abc import Sequence

from confluent_kafka import KafkaError

NO_ANSWER = frozenset({KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE})
"""The codes of errors that say no more than that no broker has answered."""

_BROKER = re.compile(r"^\S+/(?:bootstrap|\d+): ")
_CONNECT = re.compile(r"^Connect to \S+ failed: ")
_STATE = re.compile(r" \(after \d+ms in state .*\)$")


def brokers_failed(servers: str, error: KafkaError, causes: Sequence[KafkaError]) -> str:
    """One line for a request to brokers that has failed.

    servers: their addresses. causes: what librdkafka has reported meanwhile, in order.
    """
    telling = [cause.str() for cause in causes if cause.code() != KafkaError._ALL_BROKERS_DOWN]
    if error.code() not in NO_ANSWER:
        return f"Kafka at {servers}: {error.str()}"
    reason = f": {_in_words(telling[-1])}" if telling else ""
    return f"Kafka at {servers} does not answer{reason}"


def connection_failed(failure: BaseException) -> str:
    """Why a connection of this process's own to a broker has failed."""
    if isinstance(failure, OSError) and failure.errno is not None:
        return os.strerror(failure.errno)
    return str(failure) or type(failure).__name__


def _in_words(cause: str) -> str:
    return _CONNECT.sub("", _BROKER.sub("", _STATE.sub("", cause)))
