"""Where a reset moves the offset of each partition: the choices that Kafka's ``--reset-offsets`` has.

Source: KIP-122 and KIP-1087; as there, an offset outside of the log becomes the nearest one in it.
"""

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import NamedTuple

from coordinator_logic.embedded_protocols import TopicPartition
from streaming.explain.offsets.plan import Log, Plan, PlannedOffset, Position


class TargetKind(Enum):
    """The options of a reset; the value is the option's name."""

    EARLIEST = "--to-earliest"
    LATEST = "--to-latest"
    OFFSET = "--to-offset"
    TIME = "--to-datetime"
    SHIFT = "--shift-by"


class ResetTarget(NamedTuple):
    """Where to move. ``value`` is an offset, a number of offsets to shift by, or a time in ms since the epoch."""

    kind: TargetKind
    value: int = 0


def reset_plan(
    group_id: str,
    partitions: Iterable[TopicPartition],
    target: ResetTarget,
    now: Mapping[TopicPartition, Position],
    logs: Mapping[TopicPartition, Log],
    at_time: Mapping[TopicPartition, int | None],
) -> Plan:
    """Plan a reset of partitions, each of which must be in ``logs``.

    ``at_time`` has the first offset of each partition from the target's time on, None if all its records are older. A
    partition without a committed offset cannot be shifted, and is left out.
    """
    planned = []
    for partition in sorted(partitions):
        log, current = logs[partition], now.get(partition)
        wanted = _wanted(target, None if current is None else current.offset, log, at_time.get(partition))
        if wanted is not None:
            planned.append(_planned(partition, current, wanted, log))
    return Plan(group_id, planned)


def plan_of_positions(
    group_id: str,
    wanted: Mapping[TopicPartition, Position],
    now: Mapping[TopicPartition, Position],
    logs: Mapping[TopicPartition, Log],
) -> Plan:
    """Plan to set given offsets, as those in a file, each of whose partitions must be in ``logs``."""
    planned = []
    for partition in sorted(wanted):
        target = wanted[partition]
        planned.append(_planned(partition, now.get(partition), target.offset, logs[partition], target))
    return Plan(group_id, planned)


def _wanted(target: ResetTarget, current: int | None, log: Log, at_time: int | None) -> int | None:
    match target.kind:
        case TargetKind.EARLIEST:
            return log.start
        case TargetKind.LATEST:
            return log.end
        case TargetKind.OFFSET:
            return target.value
        case TargetKind.SHIFT:
            return None if current is None else current + target.value
        case TargetKind.TIME:
            return log.end if at_time is None else at_time


def _planned(
    partition: TopicPartition, current: Position | None, wanted: int, log: Log, position: Position | None = None
) -> PlannedOffset:
    offset = min(max(wanted, log.start), log.end)
    note = ""
    if offset != wanted:
        note = f"{wanted} is {'before the first offset' if wanted < offset else 'after the last offset'}"
    target = Position(offset) if position is None else position._replace(offset=offset)
    return PlannedOffset(*partition, None if current is None else current.offset, target, log, note)
