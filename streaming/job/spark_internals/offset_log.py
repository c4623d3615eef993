"""Read how a batch was planned from Spark's offset log, the folder ``offsets`` of a checkpoint."""

from typing import NamedTuple

import msgspec

from streaming.job.state_stores import PROVIDER

STATE_PARTITIONS = "spark.sql.shuffle.partitions"


class UnreadablePlan(Exception):
    """A file of the offset log has another format than the one of Spark 4.2."""


class BatchPlan(NamedTuple):
    """What Spark has planned a batch with."""

    state_partitions: int
    offsets: dict[str, dict[int, int]]
    """The offset after the batch's last record, by topic and partition."""
    state_store_class: str
    time: int
    """The batch's time, ms since the epoch."""

    @property
    def request_partitions(self) -> dict[str, int]:
        """The number of partitions of each topic that is read."""
        return {topic: len(by_partition) for topic, by_partition in self.offsets.items()}


def read_batch_plan(text: str) -> BatchPlan:
    """Parse a file of the offset log: a line with its version, one with settings, one for each source.

    Raises:
        UnreadablePlan: the text has another format.
    """
    if not text:
        raise UnreadablePlan('it is empty, as after a power failure (see "Power failures" in docs/operations.md)')
    try:
        _version, metadata, offsets = text.split("\n")[:3]
        planned = msgspec.json.decode(metadata)
        settings = planned["conf"]
        ends = msgspec.json.decode(offsets, type=dict[str, dict[int, int]])
        return BatchPlan(int(settings[STATE_PARTITIONS]), ends, settings[PROVIDER], int(planned["batchTimestampMs"]))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise UnreadablePlan(str(error)) from error
