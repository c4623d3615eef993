"""Forgetting: offsets that nobody has renewed for the retention time, and groups of which nothing is left.

A broker looks at all its groups every ``offsets.retention.check.interval.ms``. So does a group here, at ticks of its
own: they are spread over the interval by its id, lest all groups wake at once, and only a tick at which
something can expire is armed. Source: KIP-211.
"""

from collections.abc import Iterable, Iterator

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.group import CONSUMER_PROTOCOL_TYPE, Group
from coordinator_logic.offsets import CommittedOffset
from coordinator_logic.partitioning import java_string_hash
from coordinator_logic.records import (
    EXPIRED,
    OffsetsCommitted,
    OffsetsDeleted,
    Record,
    TopicPartitions,
    TransactionalOffsetsCommitted,
)
from coordinator_logic.states import State
from coordinator_logic.turn import Turn


def expire(turn: Turn) -> None:
    """Forget the offsets whose time is over, and the group if it is Empty and keeps none."""
    group = turn.group
    expired: dict[str, list[int]] = {}
    for topic, partition, due in _expirations(group, turn.config):
        if due <= turn.now:
            expired.setdefault(topic, []).append(partition)
    if expired:
        turn.record(OffsetsDeleted([TopicPartitions(*entry) for entry in expired.items()], EXPIRED))
    if _holds_nothing(group):
        turn.delete_group(EXPIRED)
    elif not expired:
        # Otherwise the record that was just made has it rescheduled.
        _arm(turn, _earliest(group, turn.config))


def reschedule(turn: Turn, records: Iterable[Record]) -> None:
    """Arm the tick at which the group must look again, after these records have changed it.

    A commit can only bring that tick nearer by its own offsets, and one in a transaction not at all; whatever else
    happens, all offsets are looked at. (An offset that is renewed leaves a tick behind that finds nothing to do.)
    """
    if not all(isinstance(record, OffsetsCommitted | TransactionalOffsetsCommitted) for record in records):
        turn.cancel_expiry()
        _arm(turn, _earliest(turn.group, turn.config))
        return
    committed = [entry for record in records if isinstance(record, OffsetsCommitted) for entry in record.offsets]
    base = _retention_base(turn.group)
    if base is None:
        return
    group = turn.group
    dues = (
        _due(group.offsets[entry.topic][entry.partition], base, turn.config)
        for entry in committed
        if not group.is_subscribed_to(entry.topic)
    )
    earliest = min(dues, default=None)
    armed = group.timers.get("expiry")
    if earliest is not None and (armed is None or armed.armed_at + armed.timeout_ms > earliest):
        _arm(turn, earliest)


def _holds_nothing(group: Group) -> bool:
    return group.state is State.EMPTY and not group.offsets and not group.open_transactions


def _earliest(group: Group, config: CoordinatorConfig) -> int | None:
    """When the first offset, or the group, can be forgotten (ms since the epoch); None while nothing can."""
    if _holds_nothing(group):
        return group.clock
    return min((due for _, _, due in _expirations(group, config)), default=None)


def _arm(turn: Turn, earliest: int | None) -> None:
    if earliest is not None:
        turn.arm_expiry(_next_tick(turn.group_id, max(earliest, turn.now + 1), turn.config))


def _next_tick(group_id: str, time: int, config: CoordinatorConfig) -> int:
    """The group's first tick at or after a time."""
    interval = config.offsets_retention_check_interval_ms
    phase = java_string_hash(group_id) % interval
    return time + (phase - time) % interval


def _expirations(group: Group, config: CoordinatorConfig) -> Iterator[tuple[str, int, int]]:
    """(topic, partition, when it expires) of every offset that can expire while the group stays as it is.

    A position in an open transaction keeps the committed one; the end of the transaction is looked at anew.
    """
    base = _retention_base(group)
    if base is None:
        return
    for topic, partitions in group.offsets.items():
        if group.is_subscribed_to(topic):
            continue
        pending = {
            partition for open_ in group.open_transactions.values() for partition in open_.offsets.get(topic, ())
        }
        for partition, committed in partitions.items():
            if partition not in pending:
                yield topic, partition, _due(committed, base, config)


def _retention_base(group: Group) -> int | None:
    """From when the retention time counts: a time, or 0 for each offset's own commit; None while nothing expires.

    A group that had members keeps its offsets for the retention time after the last one has gone, one that only
    stores offsets each for the time after its commit; and so does a Stable consumer group, but only offsets of topics
    that it does not read. While a group rebalances, and where nobody knows what it reads, nothing expires.
    """
    if group.state is State.EMPTY:
        return 0 if group.protocol_type is None else group.state_timestamp
    knows_topics = group.protocol_type == CONSUMER_PROTOCOL_TYPE and group.subscribed_topics is not None
    return 0 if group.state is State.STABLE and knows_topics else None


def _due(committed: CommittedOffset, base: int, config: CoordinatorConfig) -> int:
    if committed.expire_timestamp is not None:
        return committed.expire_timestamp
    return (base or committed.commit_timestamp) + config.offsets_retention_ms
