"""Offsets from partition leaders, also while a leader changes or a partition is new."""

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ListOffsetsResultInfo, OffsetSpec

from streaming.client.librdkafka import NO_LEADER_YET
from streaming.job.topics.inspection import ADMIN_LIMIT_SECONDS

AnswerT = TypeVar("AnswerT")

# The last one is what librdkafka makes of it if no partition has a leader.
NOT_YET_LEADER = NO_LEADER_YET | {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._NOENT}
"""Errors of ListOffsets for a topic that exists, although a broker may not know that yet."""

_PAUSE_SECONDS = 0.1


def list_offsets(
    admin: AdminClient,
    topic: str,
    partitions: Iterable[int],
    spec: OffsetSpec,
    limit_seconds: float = ADMIN_LIMIT_SECONDS,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[int, ListOffsetsResultInfo]:
    """The offset that ``spec`` asks for, by partition. Raises KafkaException."""
    asked = {TopicPartition(topic, partition): spec for partition in partitions}
    listed = admin.list_offsets(asked, isolation_level=isolation, request_timeout=limit_seconds)
    return {partition.partition: future.result() for partition, future in listed.items()}


def once_leaders_answer(ask: Callable[[], AnswerT], limit_seconds: float = ADMIN_LIMIT_SECONDS) -> AnswerT:
    """What ``ask`` returns; it is called again after an error of :data:`NOT_YET_LEADER`, until the limit is over.

    Raises KafkaException: another error, or the last one before the limit.
    """
    deadline = time.monotonic() + limit_seconds
    while True:
        try:
            return ask()
        except KafkaException as failure:
            if failure.args[0].code() not in NOT_YET_LEADER or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_SECONDS)
