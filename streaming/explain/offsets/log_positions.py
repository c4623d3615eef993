"""The offsets at the beginning, at the end and at any time of the logs of partitions, from the brokers."""

import logging
from collections.abc import Iterable

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from coordinator_logic import embedded_protocols as consumer_protocol
from streaming.explain.offsets.plan import Log

log = logging.getLogger(__name__)

Partition = consumer_protocol.TopicPartition


def logs_of(admin: AdminClient, partitions: Iterable[Partition], timeout: float) -> dict[Partition, Log]:
    """The logs of those partitions that exist and whose leader answers within ``timeout`` seconds."""
    wanted = list(partitions)
    starts = listed_offsets(admin, wanted, OffsetSpec.earliest(), timeout)  # type: ignore[no-untyped-call]
    ends = listed_offsets(admin, starts, OffsetSpec.latest(), timeout)  # type: ignore[no-untyped-call]
    return {partition: Log(starts[partition], end) for partition, end in ends.items()}


def offsets_at(
    admin: AdminClient, partitions: Iterable[Partition], time: int, timeout: float
) -> dict[Partition, int | None]:
    """The first offset of each partition whose record is not older than ``time`` (ms since the epoch).

    None if all its records are older. A partition whose leader does not answer is left out.
    """
    found = listed_offsets(admin, partitions, OffsetSpec.for_timestamp(time), timeout)
    return {partition: offset if offset >= 0 else None for partition, offset in found.items()}


def listed_offsets(
    admin: AdminClient,
    partitions: Iterable[tuple[str, int]],
    spec: OffsetSpec,
    timeout: float,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[Partition, int]:
    """The offset that ``spec`` names in each partition; one that does not exist or does not answer is left out."""
    wanted = {TopicPartition(*partition): spec for partition in partitions}
    if not wanted:
        return {}
    found: dict[Partition, int] = {}
    answers = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=timeout)
    for partition, answer in answers.items():
        try:
            found[Partition(partition.topic, partition.partition)] = answer.result().offset
        except KafkaException as failure:
            log.debug("the offset of %s is not known: %s", partition, failure)
    return found
