"""How a batch was planned: Spark's offset log, the folder ``offsets`` of a checkpoint."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from streaming.contract.errors import CannotRun
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

    def offsets_of(self, topic: str, owner: object) -> dict[int, int]:
        """The offset after the batch's last record of a topic, by partition; ``owner`` is what the plan belongs to.

        Raises:
            CannotRun: the batch has read another topic.
        """
        if topic not in self.offsets:
            raise CannotRun(f"{owner} belongs to {', '.join(self.offsets)}, not to {topic}: set its topic-prefix")
        return self.offsets[topic]


def read_batch_plan(text: str) -> BatchPlan:
    """Parse a file of the offset log: a line with its version, one with settings, one for each source.

    Raises:
        UnreadablePlan: the text has another format.
    """
    if not text:
        raise UnreadablePlan(
            'it is empty, as after a power failure (see "Power failures" in docs/operations/recovery.md)'
        )
    try:
        _version, metadata, offsets = text.split("\n")[:3]
        planned = msgspec.json.decode(metadata)
        settings = planned["conf"]
        ends = msgspec.json.decode(offsets, type=dict[str, dict[int, int]])
        return BatchPlan(int(settings[STATE_PARTITIONS]), ends, settings[PROVIDER], int(planned["batchTimestampMs"]))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise UnreadablePlan(str(error)) from error


def time_of_batch(text: str) -> int:
    """The time of a batch, ms since the epoch, whatever its query reads.

    Raises:
        UnreadablePlan: the text has another format.
    """
    try:
        return int(msgspec.json.decode(text.split("\n")[1])["batchTimestampMs"])
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise UnreadablePlan(str(error)) from error


def with_offsets(text: str, topic: str, ends: Mapping[int, int], time: int) -> str:
    """A file of the offset log of a query with one source, with the offsets of a topic in place of that source's.

    ``time`` is the batch's, ms since the epoch.
    """
    version, metadata, _ = text.split("\n")
    planned = {**msgspec.json.decode(metadata), "batchTimestampMs": time}
    return "\n".join([version, *(msgspec.json.encode(line).decode() for line in (planned, {topic: ends}))])
