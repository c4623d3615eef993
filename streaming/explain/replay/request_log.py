"""Reads the requests of one group from the requests topic."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from confluent_kafka import Message

from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.client.topic_consumer import TopicConsumer
from streaming.contract.records import RecordDecoder
from streaming.explain.replay.case import RecordedRequest

CLIENT_ID = "group-coordinator-replay"

_raw_json = msgspec.json.Decoder(msgspec.Raw).decode


class Stretch(NamedTuple):
    """A part of a partition: from ``begin`` to before ``end``; ``kept_from`` is the first offset that is kept."""

    partition: int
    begin: int
    end: int
    kept_from: int

    @property
    def records(self) -> int:
        """How many records it has at most."""
        return max(0, self.end - self.begin)


class Kept(NamedTuple):
    """Requests of a group, and when the first record of any group was appended: None if there was none."""

    requests: list[RecordedRequest]
    first: int | None


class RequestLog(TopicConsumer):
    """The requests topic. Records that are no JSON are left out; the coordinator rejects them.

    Arguments and errors are those of :class:`TopicConsumer`.
    """

    def __init__(
        self, bootstrap_servers: str, config: LibrdkafkaConfig, topic: str, timeout: float, client_id: str = CLIENT_ID
    ) -> None:
        super().__init__(bootstrap_servers, topic, client_id, config, timeout)

    def stretch(self, partition: int, since: int = 0, until: int | None = None) -> Stretch:
        """What was appended to a partition from ``since`` to ``until`` (ms since the epoch)."""
        low, high = self.beginnings([partition])[partition], self.ends([partition])[partition]
        begin = low if since <= 0 else self.offsets_at({partition: since})[partition]
        end = high if until is None else self.offsets_at({partition: until + 1})[partition]
        return Stretch(partition, begin, end, low)

    def read(
        self, stretches: Sequence[Stretch], group_id: str, on_read: Callable[[int], object] = lambda _count: None
    ) -> Kept:
        """The requests of a group; ``on_read`` is called with the number of records that were read since last."""
        ends = {one.partition: one.end for one in stretches}
        self.assign({one.partition: one.begin for one in stretches})
        key, kept, first = group_id.encode(), list[RecordedRequest](), None
        decoder = RecordDecoder(self.topic, "request", _raw_json)
        for record in self.read_to_end(ends, on_read=on_read):
            if (record.offset() or 0) < ends[record.partition() or 0]:
                time = record.timestamp()[1]
                first = time if first is None else min(first, time)
                if record.key() == key and (raw := decoder.read(record)) is not None:
                    kept.append(_recorded(record, raw))
        return Kept(kept, first)


def requests_of(
    bootstrap_servers: str, config: LibrdkafkaConfig, topic: str, group_id: str, timeout: float
) -> list[RecordedRequest]:
    """The requests of a group that the topic still holds; arguments and errors as of :class:`RequestLog`.

    All partitions are read: a producer other than the clients and the gateway may use any.
    """
    with RequestLog(bootstrap_servers, config, topic, timeout) as log:
        return log.read([log.stretch(partition) for partition in log.partitions], group_id).requests


def _recorded(record: Message, raw: msgspec.Raw) -> RecordedRequest:
    # The message's buffer ends with the message.
    return RecordedRequest(record.timestamp()[1], record.partition() or 0, record.offset() or 0, raw.copy())
