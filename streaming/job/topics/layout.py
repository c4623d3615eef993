"""Which topics the job needs, with their partitions and settings."""

from collections.abc import Mapping
from dataclasses import dataclass

from streaming.contract.topics import (
    BATCH_OVERHEAD_BYTES,
    LONGEST_GROUP_ID_BYTES,
    MAX_REQUEST_BYTES,
    MAX_ROW_BYTES,
    TopicNames,
)

DEFAULT_REQUEST_PARTITIONS = 1
"""With one state partition, a batch reads the request partitions in sequence, at about 10 ms each; a single one
sustains more than 10,000 requests/s. With several state partitions, use as many as there are cores or executors."""
DEFAULT_RESPONSE_PARTITIONS = 8
DEFAULT_JOURNAL_PARTITIONS = 4

TIMESTAMP_TYPE, LOG_APPEND_TIME = "message.timestamp.type", "LogAppendTime"

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True)
class TopicLayout:
    """The user's choices. None accepts what an existing topic has, and gives a new one the default."""

    request_partitions: int | None = None
    response_partitions: int | None = None
    replication_factor: int | None = None


@dataclass(frozen=True)
class Partitions:
    """The number of partitions of the topics where other components depend on it."""

    requests: int
    responses: int
    directory: int
    journal: int = DEFAULT_JOURNAL_PARTITIONS


@dataclass(frozen=True)
class RequiredTopic:
    """The layout of a topic.

    A new topic gets all settings; an ``initial`` one may exceed its ``minimum``. On an existing topic, ``required``
    settings must be equal, ``minimum`` settings must not be lower, and ``initial`` settings are not checked.
    """

    name: str
    partitions: int
    required: Mapping[str, str]
    initial: Mapping[str, str]
    minimum: Mapping[str, int]


def required_topics(names: TopicNames, layout: TopicLayout) -> list[RequiredTopic]:
    """The topics of a job with these names."""
    written = {"max.message.bytes": MAX_ROW_BYTES + BATCH_OVERHEAD_BYTES}
    # The job appends deadline checks, whose key is a group id, and the id may have come compressed.
    checked = {"max.message.bytes": LONGEST_GROUP_ID_BYTES + BATCH_OVERHEAD_BYTES}
    # With CreateTime, brokers refuse the records of a writer whose clock is an hour ahead, and delete those of a writer
    # whose clock is behind by the retention time.
    append_time = {TIMESTAMP_TYPE: LOG_APPEND_TIME}
    # Responses expire once their clients have timed out; operators read the journal and the rejects later.
    delete, week = {"cleanup.policy": "delete"}, {"retention.ms": str(7 * DAY_MS), **append_time}
    # Tombstones are kept for a day, so that a reader that was disconnected still sees them.
    compact, tombstones = {"cleanup.policy": "compact"}, {"delete.retention.ms": str(DAY_MS), **append_time}
    return [
        RequiredTopic(
            names.requests,
            layout.request_partitions or DEFAULT_REQUEST_PARTITIONS,
            # The append time is the coordinator's clock. A producer's wrong clock could expel members.
            {**delete, **append_time},
            {**week, "max.message.bytes": str(MAX_REQUEST_BYTES)},
            checked,
        ),
        RequiredTopic(
            names.responses,
            layout.response_partitions or DEFAULT_RESPONSE_PARTITIONS,
            delete,
            {"retention.ms": str(HOUR_MS), **append_time},
            written,
        ),
        RequiredTopic(
            names.journal,
            DEFAULT_JOURNAL_PARTITIONS,
            delete,
            {"retention.ms": str(365 * DAY_MS), **append_time},
            written,
        ),
        RequiredTopic(names.directory, 1, compact, tombstones, written),
        # One partition, so that a reader at its end has a consistent view of all transactions.
        RequiredTopic(names.transactions, 1, compact, tombstones, {}),
        # Small segments: the newest one is not compacted, and two announcements a second are 20 MB a day.
        RequiredTopic(names.coordinators, 1, compact, {"segment.ms": str(HOUR_MS // 6), **tombstones}, {}),
        RequiredTopic(names.rejects, 1, delete, week, written),
    ]


def rebalances_topic(names: TopicNames) -> RequiredTopic:
    """The topic of rebalances, which the job does not need.

    It keeps its records as long as the journal: a publisher learns from them what it has published.
    """
    return RequiredTopic(
        names.rebalances,
        1,
        {"cleanup.policy": "delete"},
        {"retention.ms": str(365 * DAY_MS), TIMESTAMP_TYPE: LOG_APPEND_TIME},
        {"max.message.bytes": MAX_ROW_BYTES + BATCH_OVERHEAD_BYTES},
    )
