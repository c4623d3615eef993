"""Reads from the end of ``group-rebalances`` how far its records have come."""

from functools import reduce

import msgspec

from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.client.topic_consumer import EAGER, TopicConsumer
from streaming.contract.errors import CannotRun
from streaming.contract.records import RecordDecoder
from streaming.job.group_batch.starts import later

FIRST_LOOK = 100
"""How many offsets before the end are read at first; each transaction takes one for its end."""

SETTINGS: LibrdkafkaConfig = {**EAGER, "isolation.level": "read_committed"}


class _Positions(msgspec.Struct, rename="camel"):
    journal_positions: dict[int, int]


_decode = msgspec.json.Decoder(_Positions).decode


def published_positions(config: LibrdkafkaConfig, topic: str, client_id: str, timeout: float) -> dict[int, int] | None:
    """The highest positions in the newest records: by partition of the journal, the offset of the next entry.

    Returns:
        None if the topic never had a record, and no position if it has none any more.

    Raises:
        CannotRun: the topic has records, but none with positions.
        CoordinatorNotAvailable: the topic does not exist, or cannot be read.
        RequestTimedOut: no broker answers within ``timeout`` seconds.
    """
    with TopicConsumer(str(config["bootstrap.servers"]), topic, client_id, config, timeout, SETTINGS) as consumer:
        found = [_of_partition(consumer, partition) for partition in consumer.partitions]
    known = [positions for positions in found if positions is not None]
    return reduce(later, known) if known else None


def _of_partition(consumer: TopicConsumer, partition: int) -> dict[int, int] | None:
    begin, end = consumer.beginnings([partition])[partition], consumer.ends([partition])[partition]
    look, first, has_records = FIRST_LOOK, end, False
    decoder = RecordDecoder(consumer.topic, "published rebalance", _decode)
    while begin < first:
        first = max(begin, end - look)
        consumer.assign({partition: first})
        found = [decoder.read(record) for record in consumer.read_to_end({partition: end})]
        if readable := [published.journal_positions for published in found if published is not None]:
            return reduce(later, readable)
        look, has_records = look * 10, has_records or bool(found)
    if has_records:
        raise CannotRun(
            f"topic {consumer.topic} has records of another program, and no published rebalance: delete the topic"
        )
    return {} if begin > 0 else None
