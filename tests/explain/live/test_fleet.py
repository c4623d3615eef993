"""The fleet: rows of groups from the journal's last minutes and the directory."""

from collections.abc import Sequence

from coordinator_logic.group.record import Record
from coordinator_logic.groups.classic.records import StateChanged
from coordinator_logic.records import (
    GroupDirectoryEntry,
    JournalEntry,
    OffsetCommitted,
    OffsetsCommitted,
    OffsetsDeleted,
    TimerCause,
    TopicPartitions,
    TransactionalOffsetsCommitted,
    TransactionEnded,
)
from streaming.explain.live.fleet import Fleet, FleetRow

MINUTE = 60_000
NOW = 1_000 * MINUTE
CAUSE = TimerCause("heartbeat", "member", NOW)
STABLE, PREPARING, COMPLETING = "Stable", "PreparingRebalance", "CompletingRebalance"


def entry(minutes_ago: float, record: Record, sequence: int, *, job_epoch: int = 1) -> JournalEntry:
    return JournalEntry("billing", "first", sequence, NOW - round(minutes_ago * MINUTE), record, CAUSE, job_epoch)


def row(entries: Sequence[JournalEntry], state: str = STABLE, **ends: int) -> FleetRow:
    """The row of a group with these entries, whose topic ``orders`` ends at ``p0``, ``p1``, ..."""
    fleet = Fleet()
    for one in entries:
        fleet.note(one)
    directory = GroupDirectoryEntry("billing", state, "classic", "consumer", generation=7, members=3)
    offsets = {("orders", int(partition[1:])): end for partition, end in ends.items()}
    return fleet.rows([directory], NOW, offsets)[0]


def rebalance(begin: float, end: float, first_sequence: int, **more: int) -> list[JournalEntry]:
    """A rebalance from so many minutes ago until so many minutes ago."""
    middle = (begin + end) / 2
    return [
        entry(begin, StateChanged(STABLE, PREPARING, "a member left"), first_sequence, **more),
        entry(middle, StateChanged(PREPARING, COMPLETING, ""), first_sequence + 1, **more),
        entry(end, StateChanged(COMPLETING, STABLE, ""), first_sequence + 2, **more),
    ]


def committed(offset: int, partition: int = 0) -> OffsetCommitted:
    return OffsetCommitted("orders", partition, offset, None, "", NOW, None)


def test_a_group_without_entries_is_what_the_directory_says() -> None:
    found = row([])
    assert (found.state, found.generation, found.members) == (STABLE, 7, 3)
    assert (found.rebalances, found.rebalancing_share, found.since, found.reason, found.lag) == (0, 0, None, None, None)


def test_rebalances_in_the_window_are_counted_with_their_time_and_the_last_reason() -> None:
    found = row([*rebalance(8, 7, 1), *rebalance(3, 2, 4)])
    assert (found.rebalances, found.rebalances_a_minute) == (2, 0.2)
    assert found.rebalancing_share == 0.2
    assert (found.since, found.reason) == (NOW - 2 * MINUTE, "a member left")


def test_a_rebalance_that_began_before_the_window_counts_with_its_part_in_it() -> None:
    found = row(rebalance(14, 9, 1))
    assert found.rebalances == 0
    assert found.rebalancing_share == 0.1


def test_a_rebalance_that_goes_on_counts_until_now() -> None:
    assert row(rebalance(4, 0, 1)[:1], PREPARING).rebalancing_share == 0.4
    assert row([], PREPARING).rebalancing_share == 1


def test_entries_that_a_job_writes_again_count_once_and_those_of_a_later_job_count() -> None:
    assert row([*rebalance(8, 7, 1), *rebalance(8, 7, 1)]).rebalances == 1
    # A job that went on from an older checkpoint numbers its entries from there.
    assert row([*rebalance(8, 7, 1), *rebalance(5, 4, 1, job_epoch=2)]).rebalances == 2


def test_a_journal_that_is_ahead_of_this_hosts_clock_is_the_present() -> None:
    assert row(rebalance(-5, -7, 1)).rebalancing_share == 0.2


def test_the_lag_is_that_of_the_offsets_committed_since() -> None:
    entries = [entry(1, OffsetsCommitted([committed(10), committed(5, partition=1)]), 1)]
    assert row(entries, p0=12, p1=5).lag == 2
    assert row(entries, p1=50).lag == 45
    assert row(entries).lag is None
    # An offset beyond the end, as after a topic was made again, is no negative lag.
    assert row(entries, p0=3).lag == 0


def test_deleted_offsets_have_no_lag() -> None:
    deleted = OffsetsDeleted([TopicPartitions("orders", [0])], "expired")
    assert row([entry(2, OffsetsCommitted([committed(10)]), 1), entry(1, deleted, 2)], p0=20).lag is None


def test_offsets_of_a_transaction_count_when_it_is_committed() -> None:
    pending = entry(3, TransactionalOffsetsCommitted("t", 7, 0, [committed(10)]), 1)
    assert row([pending], p0=20).lag is None
    assert row([pending, entry(2, TransactionEnded(7, 0, committed=False), 2)], p0=20).lag is None
    assert row([pending, entry(2, TransactionEnded(7, 0, committed=True), 2)], p0=20).lag == 10
