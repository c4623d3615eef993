"""Expire offsets after their retention time, abort transactions that nobody ends, and delete groups without either.

A transaction ends with its producer's request, or by its timeout at a broker's transaction coordinator. A group learns
of that from a request, which may never come: its sender has died, or nothing follows the transactions of who sends
requests over topics. So a transaction to which no offset was added for ``transactional.id.expiration.ms`` is aborted.
After that time a broker forgets what became of a transaction, so nobody could tell the group any more.

A broker checks all its groups every ``offsets.retention.check.interval.ms``. Here each group has its own ticks at that
interval. A hash of the group id shifts them, so that not all groups are checked at once. The timer is armed only for
a tick at which an offset or the group can expire. Source: KIP-211.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from coordinator_logic.committed_offsets import CommittedOffset
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.group import Group
from coordinator_logic.group.record import Record
from coordinator_logic.group.timer import EXPIRY, Effect, Timer
from coordinator_logic.offsets.deletion import deletions
from coordinator_logic.partitioning import java_string_hash
from coordinator_logic.records import EXPIRED, OffsetsCommitted, TopicPartitions, TransactionEnded
from coordinator_logic.states import State
from coordinator_logic.turn import Turn

LATEST_EXPIRY_MS = 2**62
"""Offsets that would expire at this time (ms since the epoch) or later never expire.

A request may ask for any time in an int64. A later one, plus the interval of the checks and the allowance, would no
longer fit into the int64 in which Spark stores a group's timeout.
"""


def expire(turn: Turn) -> None:
    """Abort and delete what has expired, and delete the group if it is Empty and has no offsets left."""
    group = turn.group
    for producer_id, due in list(_transaction_expirations(group, turn.config)):
        if due <= turn.now:
            epoch = group.open_transactions[producer_id].producer_epoch
            turn.record(TransactionEnded(producer_id, epoch, committed=False))
    expired: dict[str, list[int]] = {}
    for topic, partition, due in _expirations(group, turn.config):
        if due <= turn.now:
            expired.setdefault(topic, []).append(partition)
    for record in deletions([TopicPartitions(*entry) for entry in expired.items()], EXPIRED):
        turn.record(record)
    if _is_obsolete(group):
        turn.delete_group(EXPIRED)
    else:
        _arm(turn, _earliest(group, turn.config))


def reschedule(turn: Turn, records: Sequence[Record]) -> None:
    """Arm the expiry timer for the next tick at which something can expire, after these records were applied.

    All offsets are examined after a record that changes from when they are retained, when none is left, and when an
    open transaction would be examined too late. A commit can make the tick earlier only through its own offsets; the
    end of a transaction makes it the next tick, which examines all offsets at once for many transactions. Other records
    do not make it earlier, and a tick that is too early expires nothing.
    """
    group = turn.group
    is_unwatched = bool(group.open_transactions) and _has_unwatched(turn)
    if is_unwatched or _is_obsolete(group) or any(record.changes_retention for record in records):
        schedule(turn)
        return
    base = group.part.retention_base
    if base is None:
        if "expiry" in group.timers and not group.open_transactions:
            turn.cancel("expiry")
        return
    dues = [
        _due(group.offsets[entry.topic][entry.partition], base, turn.config)
        for record in records
        if isinstance(record, OffsetsCommitted)
        for entry in record.offsets
        if not group.part.is_subscribed_to(entry.topic)
    ]
    if any(isinstance(record, TransactionEnded) for record in records):
        dues.append(turn.now)
    earliest = min(dues, default=None)
    armed = group.timers.get("expiry")
    if earliest is not None and (armed is None or armed.armed_at + armed.timeout_ms > earliest):
        _arm(turn, earliest)


def schedule(turn: Turn) -> None:
    """Arm the expiry timer for the next tick at which something can expire, by all offsets of the group."""
    turn.cancel("expiry")
    _arm(turn, _earliest(turn.group, turn.config))


def _has_unwatched(turn: Turn) -> bool:
    """Whether the timer is too late for an open transaction, or missing, as in a group of an earlier release."""
    group, config = turn.group, turn.config
    if not config.aborts_transactions:
        return False
    armed = group.timers.get("expiry")
    latest = turn.now + config.transactional_id_expiration_ms + config.offsets_retention_check_interval_ms
    return armed is None or armed.armed_at + armed.timeout_ms > latest


def _is_obsolete(group: Group) -> bool:
    # In Kafka, the configuration of a group that does not exist is kept until somebody deletes it.
    is_empty = group.part.state is State.EMPTY and not group.configs
    return is_empty and not group.offsets and not group.open_transactions


def _earliest(group: Group, config: CoordinatorConfig) -> int | None:
    """Return when the first offset or the group can expire, ms since the epoch; None if nothing can."""
    if _is_obsolete(group):
        return group.clock
    of_offsets = (due for _, _, due in _expirations(group, config))
    of_transactions = (due for _, due in _transaction_expirations(group, config))
    return min(chain(of_offsets, of_transactions), default=None)


def _arm(turn: Turn, earliest: int | None) -> None:
    """Arm the timer for the group's first tick at or after a time, but not for now."""
    if earliest is not None and earliest < LATEST_EXPIRY_MS:
        time = max(earliest, turn.now + 1)
        interval = turn.config.offsets_retention_check_interval_ms
        tick = time + (java_string_hash(turn.group_id) - time) % interval
        turn.arm("expiry", Timer(EXPIRY, turn.now, tick - turn.now, effect=Effect.EXPIRES_OFFSETS))


def _expirations(group: Group, config: CoordinatorConfig) -> Iterator[tuple[str, int, int]]:
    """Yield (topic, partition, time of expiry in ms since the epoch) of each offset that can expire in this state.

    A committed offset cannot expire while an open transaction has a pending one for its partition.
    """
    base = group.part.retention_base
    if base is None:
        return
    pending = group.pending_offsets
    # Only the offsets of these topics are decoded.
    unsubscribed = [topic for topic in group.offsets if not group.part.is_subscribed_to(topic)]
    for topic in unsubscribed:
        for partition, committed in group.offsets[topic].items():
            if (topic, partition) not in pending:
                yield topic, partition, _due(committed, base, config)


def _transaction_expirations(group: Group, config: CoordinatorConfig) -> Iterator[tuple[int, int]]:
    """Yield (producer id, time of the abort in ms since the epoch) of each open transaction, in any state of the group.

    The time counts from the newest offset; a transaction whose offsets were all deleted can end at once.
    """
    if config.aborts_transactions:
        for producer_id, transaction in group.open_transactions.items():
            pending = (one for partitions in transaction.offsets.values() for one in partitions.values())
            newest = max((one.commit_timestamp for one in pending), default=None)
            yield producer_id, 0 if newest is None else newest + config.transactional_id_expiration_ms


def _due(committed: CommittedOffset, base: int, config: CoordinatorConfig) -> int:
    if committed.expire_timestamp is not None:
        return committed.expire_timestamp
    return (base or committed.commit_timestamp) + config.offsets_retention_ms
