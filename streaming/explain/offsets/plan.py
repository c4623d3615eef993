"""A plan to set a group's offsets: what each partition has now, what it gets, and what that means for its records."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from coordinator_logic.committed_offsets import CommittedOffset
from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.messages import (
    NO_LEADER_EPOCH,
    NO_OFFSET,
    FetchedGroup,
    PartitionToReset,
    ResetOffsetsRequest,
    ResetOffsetsResponse,
    TopicToReset,
)
from streaming.explain.offsets.changes import OffsetChange


class Position(NamedTuple):
    """A committed offset as a client sees it; an empty ``topic_id`` is not known."""

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str = ""
    topic_id: str = ""


class Log(NamedTuple):
    """The first offset of a partition, the offset of its next record, and the id of its topic, empty if not known."""

    start: int
    end: int
    topic_id: str = ""


class PlannedOffset(msgspec.Struct, frozen=True, rename="camel"):
    """The offset of a partition now and as planned; None for none. ``log`` is None if its partition was not found."""

    topic: str
    partition: int
    current: int | None
    target: Position | None
    log: Log | None = None
    note: str = ""

    @property
    def replayed(self) -> int | None:
        """How many offsets are consumed again; None if that is not known."""
        return self._distance(-1)

    @property
    def skipped(self) -> int | None:
        """How many offsets are never consumed; None if that is not known."""
        return self._distance(1)

    @property
    def lag(self) -> int | None:
        """How far the target is from the end of the log; None if that is not known."""
        if self.target is None or self.log is None:
            return None
        return max(0, self.log.end - max(self.target.offset, self.log.start))

    def _distance(self, direction: int) -> int | None:
        """The offsets of the log between now and then, if the offset moves in this direction."""
        if self.current is None or self.target is None:
            return None
        now, then = self.current, self.target.offset
        if self.log is not None:
            now, then = (min(max(each, self.log.start), self.log.end) for each in (now, then))
        return max(0, direction * (then - now))


class Plan(msgspec.Struct, frozen=True):
    """What to do to a group. ``lists_all``: no other partition is to have an offset."""

    group_id: str
    offsets: list[PlannedOffset]
    lists_all: bool = False

    def request(self) -> ResetOffsetsRequest:
        """The request that carries it out, if the group still has the offsets that the plan knows."""
        topics: dict[tuple[str, str], list[PartitionToReset]] = {}
        for planned in self.offsets:
            target = planned.target or Position(NO_OFFSET)
            seen = NO_OFFSET if planned.current is None else planned.current
            entry = PartitionToReset(planned.partition, target.offset, seen, target.leader_epoch, target.metadata)
            topic_id = target.topic_id if planned.log is None else planned.log.topic_id or target.topic_id
            topics.setdefault((planned.topic, topic_id), []).append(entry)
        named = [TopicToReset(topic, partitions, topic_id) for (topic, topic_id), partitions in topics.items()]
        return ResetOffsetsRequest(self.group_id, named, lists_all=self.lists_all)


Logs = Mapping[TopicPartition, Log]
Positions = Mapping[TopicPartition, Position]


def positions_of(fetched: FetchedGroup) -> dict[TopicPartition, Position]:
    """The committed offsets in an answer to OffsetFetch."""
    return {
        TopicPartition(topic.name, found.partition_index): Position(
            found.committed_offset, found.committed_leader_epoch, found.metadata, topic.topic_id
        )
        for topic in fetched.topics
        for found in topic.partitions
        if found.committed_offset >= 0
    }


def position(committed: CommittedOffset) -> Position:
    """A committed offset as a client sees it."""
    epoch = NO_LEADER_EPOCH if committed.leader_epoch is None else committed.leader_epoch
    return Position(committed.offset, epoch, committed.metadata, committed.topic_id)


def is_of_namesake(found: Position, log: Log | None) -> bool:
    """Whether an offset is of a topic that was deleted, and whose name another topic has now."""
    known = log is not None and log.topic_id
    return bool(known and found.topic_id and found.topic_id != known)


def restoration(group_id: str, then: Positions, now: Positions, logs: Logs, *, is_complete: bool) -> Plan:
    """Bring back the offsets of an earlier time.

    ``is_complete``: the group had no other offsets then, so that it loses what it has now and had not then.
    """
    partitions = sorted({*then, *now} if is_complete else then)
    return Plan(group_id, [_planned(each, now, then.get(each), logs) for each in partitions], lists_all=is_complete)


def clone(group_id: str, offsets: Positions, logs: Logs) -> Plan:
    """Give a group that has no offsets those of another one."""
    return Plan(group_id, [_planned(each, {}, offsets[each], logs) for each in sorted(offsets)], lists_all=True)


def deletion(group_id: str, partitions: Iterable[TopicPartition], now: Positions, logs: Logs) -> Plan:
    """Delete the committed offsets of partitions."""
    return Plan(group_id, [_planned(each, now, None, logs) for each in sorted(partitions)])


def undoing(group_id: str, changes: Iterable[OffsetChange], now: Positions, logs: Logs) -> Plan:
    """Give each partition of these changes the offset that it had before.

    The previous offset must be known. A note names the partitions whose offset has changed since.
    """
    planned = []
    for change in sorted(changes, key=lambda each: each.partition):
        before = None if change.before is None else position(change.before)
        left = NO_OFFSET if change.after is None else change.after.offset
        current = now.get(change.partition, Position(NO_OFFSET)).offset
        one = _planned(change.partition, now, before, logs)
        if left != current:
            note = f"was {left} after the reset" if left >= 0 else "was deleted by the reset"
            one = msgspec.structs.replace(one, note=note)
        planned.append(one)
    return Plan(group_id, planned)


def differences(request: ResetOffsetsRequest, answer: ResetOffsetsResponse) -> list[tuple[TopicPartition, int, int]]:
    """The partitions because of which a request was refused: the offset that was expected, and the committed one."""
    expected = {
        TopicPartition(topic.name, partition.partition_index): partition.expected_offset
        for topic in request.topics
        for partition in topic.partitions
    }
    refused = []
    for topic in answer.topics:
        for partition in topic.partitions:
            if partition.error_code:
                place = TopicPartition(topic.name, partition.partition_index)
                seen = expected.get(place)
                refused.append((place, NO_OFFSET if seen is None else seen, partition.committed_offset))
    return refused


def _planned(partition: TopicPartition, now: Positions, target: Position | None, logs: Logs) -> PlannedOffset:
    current, log = now.get(partition), logs.get(partition)
    note = ""
    if target is not None and log is not None and not log.start <= target.offset <= log.end:
        note = f"outside of the log, which has {log.start} to {log.end}"
    return PlannedOffset(*partition, None if current is None else current.offset, target, log, note)
