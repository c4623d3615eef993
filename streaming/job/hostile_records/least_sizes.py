"""Lower bounds of the JSON size of messages that repeat what they refer to.

A short request can ask for one offset with its metadata, or for a whole group, a million times, and a commit repeats
the topic's name for each partition. Encoding such a message takes gigabytes, so its size is estimated first: if even
the lower bound exceeds a limit, nothing is encoded.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from coordinator_logic.messages import OffsetFetchResponse
from coordinator_logic.records import OffsetsCommitted, TransactionalOffsetsCommitted
from streaming.job.group_types import GROUP_TYPES

FETCHED_PARTITION, COMMITTED_OFFSET = 90, 100
"""Bytes of an entry without its texts: the names of its fields."""
_METADATA = attrgetter("metadata")


def least_size(message: object) -> int:
    """The least number of bytes of the message as JSON; 0 if it repeats nothing."""
    estimate = _ESTIMATES.get(type(message))
    return 0 if estimate is None else estimate(message)


def _fetched(response: OffsetFetchResponse) -> int:
    topics = [*response.topics, *(topic for group in response.groups for topic in group.topics)]
    # No line of Python runs for a partition: a request names up to 250,000.
    return sum(
        FETCHED_PARTITION * len(topic.partitions) + sum(map(len, map(_METADATA, topic.partitions))) for topic in topics
    )


def _committed(record: OffsetsCommitted | TransactionalOffsetsCommitted) -> int:
    return sum(COMMITTED_OFFSET + len(offset.topic) + len(offset.metadata) for offset in record.offsets)


_ESTIMATES: dict[type, Callable[[Any], int]] = {
    OffsetFetchResponse: _fetched,
    OffsetsCommitted: _committed,
    TransactionalOffsetsCommitted: _committed,
    **{message: least for kind in GROUP_TYPES.values() for message, least in kind.least_sizes.items()},
}
