"""The newest epoch that an active job has announced: the source against which claims of others are checked.

Only the job may write to the topic of announcements, and only the newest one can: their transactional id fences the
others. A response that names an epoch may be anybody's who may write to the topic of responses.
"""

import msgspec

from coordinator_logic.messages import JobEpoch
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.client.topic_consumer import EAGER, TopicConsumer
from streaming.contract.records import RecordDecoder

KEY = b"active"
"""The key of every announcement of the active job: compaction keeps the newest."""

PARTITION = 0
"""The topic has one."""

FIRST_LOOK = 100
"""How many offsets before the end are read at first. An active job adds four a second, with ends of transactions."""

SETTINGS: LibrdkafkaConfig = {**EAGER, "isolation.level": "read_committed"}


class _Announcement(msgspec.Struct):
    epoch: JobEpoch


_decode = msgspec.json.Decoder(_Announcement).decode


def announced_epoch(
    bootstrap_servers: str, topic: str, client_id: str, config: LibrdkafkaConfig, timeout: float
) -> int:
    """The epoch of the newest announcement on ``topic``; 0 if there is none. ``timeout`` of each request, in seconds.

    Raises:
        CoordinatorError: the topic does not exist, or cannot be read.
    """
    decoder = RecordDecoder(topic, "announcement of the active job", _decode)
    with TopicConsumer(bootstrap_servers, topic, client_id, config, timeout, SETTINGS) as consumer:
        begin, end = consumer.beginnings([PARTITION])[PARTITION], consumer.ends([PARTITION])[PARTITION]
        look, first = FIRST_LOOK, end
        while begin < first:
            first = max(begin, end - look)
            consumer.assign({PARTITION: first})
            found = [decoder.read(record) for record in consumer.read_to_end(within=timeout) if record.key() == KEY]
            if epochs := [announcement.epoch for announcement in found if announcement is not None]:
                return epochs[-1]
            look *= 10
    return 0
