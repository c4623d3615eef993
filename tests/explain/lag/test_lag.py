"""Lag over time, from given commits and logs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.records import GroupCreated, JournalEntry, OffsetCommitted, OffsetsCommitted, TimerCause
from streaming.explain.lag import (
    MAX_LOOKUPS,
    MAX_SAMPLES,
    NO_LOGS,
    NO_OFFSETS,
    Committed,
    CommittedOverTime,
    Lag,
    PartitionLag,
    lag_of,
)
from streaming.explain.offsets.plan import Log

BEGIN = 1_764_000_000_000
ZERO = TopicPartition("orders", 0)
ONE = TopicPartition("orders", 1)
SECOND = 1_000


def commits(*commits: tuple[int, int]) -> CommittedOverTime:
    """A group that was created at :data:`BEGIN`, with commits of ``orders-0``: ms later, and offset."""
    over_time = CommittedOverTime()
    cause = TimerCause("heartbeat", "", BEGIN)
    over_time.on_entry(JournalEntry("billing", "0-0", 1, BEGIN, GroupCreated(), cause))
    for place, (after, offset) in enumerate(commits, 2):
        record = OffsetsCommitted([OffsetCommitted("orders", 0, offset, None, "", BEGIN + after, None)])
        over_time.on_entry(JournalEntry("billing", "0-0", place, BEGIN + after, record, cause))
    return over_time


class Topic:
    """Partitions whose records have these times, in their order; the records before ``starts`` are deleted."""

    def __init__(
        self, times: Mapping[TopicPartition, Sequence[int]], starts: Mapping[TopicPartition, int] | None = None
    ) -> None:
        self._times = times
        self._starts = starts or {}
        self.looked_up = 0

    @property
    def logs(self) -> dict[TopicPartition, Log]:
        return {one: Log(self._starts.get(one, 0), len(times)) for one, times in self._times.items()}

    def first_records(self, wanted: Collection[TopicPartition], time: int) -> dict[TopicPartition, int | None]:
        self.looked_up += len(wanted)
        return {one: self._first(one, time) for one in wanted}

    def _first(self, partition: TopicPartition, time: int) -> int | None:
        times, start = self._times[partition], self._starts.get(partition, 0)
        return next((offset for offset in range(start, len(times)) if times[offset] >= time), None)

    def lag(self, samples: Sequence[Committed]) -> Lag:
        return lag_of(samples, self.logs, self.first_records)


def every_second(count: int) -> list[int]:
    """A record at each second since :data:`BEGIN`."""
    return [BEGIN + number * SECOND for number in range(count)]


def sample(seconds: float, *offsets: int) -> Committed:
    """So long after :data:`BEGIN`, these offsets of ``orders`` were committed."""
    return Committed(BEGIN + round(seconds * SECOND), {("orders", place): one for place, one in enumerate(offsets)})


def records_of(lag: Lag) -> list[int | None]:
    assert not lag.absent
    return [one.records for one in lag.samples]


def test_samples_have_the_offsets_of_their_time() -> None:
    samples = commits((500, 3), (1_500, 5), (3_700, 9)).samples()
    assert [(one.time - BEGIN, one.offsets.get(ZERO)) for one in samples] == [
        (1_000, 3),
        (2_000, 5),
        (3_000, 5),
        (3_700, 9),
    ]


def test_a_group_without_entries_has_no_samples() -> None:
    assert CommittedOverTime().samples() == []


@given(st.lists(st.integers(0, 10**10), max_size=60))
def test_samples_are_few_regular_and_have_the_last_commit_before_them(after: list[int]) -> None:
    ordered = sorted(after)
    samples = commits(*((time, place) for place, time in enumerate(ordered))).samples()
    assert len(samples) <= MAX_SAMPLES
    if ordered and ordered[-1] > MAX_SAMPLES * SECOND:
        assert len(samples) >= MAX_SAMPLES // 2
    times = [one.time - BEGIN for one in samples]
    assert times == sorted(times)
    assert times[-1] == max(ordered, default=0)
    assert len({later - time for time, later in pairwise(times[:-1])}) <= 1
    for one in samples[:-1]:
        before = [place for place, time in enumerate(ordered) if BEGIN + time <= one.time]
        assert one.offsets.get(ZERO) == (before[-1] if before else None)


def test_the_lag_is_the_records_that_were_there_and_not_committed() -> None:
    topic = Topic({ZERO: every_second(10)})
    lag = topic.lag([sample(2.5, 1), sample(4.5, 5), sample(9, 6)])
    # After 2.5 s the log had the records of 0, 1 and 2 s.
    assert records_of(lag) == [2, 0, 4]
    assert lag.now == [PartitionLag("orders", 0, 6, 10)]


def test_a_time_after_all_records_has_the_present_end() -> None:
    assert records_of(Topic({ZERO: every_second(3)}).lag([sample(60, 1), sample(70, 2)])) == [2, 1]


def test_partitions_add_up_and_one_counts_from_its_first_commit() -> None:
    topic = Topic({ZERO: every_second(10), ONE: every_second(10)})
    assert records_of(topic.lag([sample(5.5, 1), sample(5.5, 1, 2), sample(9, 10, 9)])) == [5, 9, 1]


def test_an_offset_beyond_the_end_is_no_negative_lag() -> None:
    topic = Topic({ZERO: every_second(3), ONE: every_second(3)})
    assert records_of(topic.lag([sample(60, 9, 1), sample(61, 9, 1)])) == [2, 2]


def test_what_retention_has_deleted_makes_a_time_unknown_unless_it_was_committed() -> None:
    topic = Topic({ZERO: every_second(10)}, {ZERO: 6})
    assert records_of(topic.lag([sample(2.5, 1), sample(3.5, 6), sample(7.5, 6), sample(9, 8)])) == [None, 0, 2, 2]
    emptied = Topic({ZERO: every_second(10)}, {ZERO: 10})
    assert records_of(emptied.lag([sample(2.5, 1), sample(60, 10)])) == [None, 0]


def test_a_time_without_committed_offsets_is_unknown() -> None:
    assert records_of(Topic({ZERO: every_second(3)}).lag([sample(1), sample(60, 1)])) == [None, 2]


def test_a_partition_that_the_brokers_do_not_tell_is_left_out_and_named() -> None:
    lag = Topic({ZERO: every_second(3)}).lag([sample(60, 1, 0), sample(61, 1, 0)])
    assert records_of(lag) == [2, 2]
    assert lag.now[1] == PartitionLag("orders", 1, 0, None)
    assert lag.now[1].records is None


def test_a_partition_whose_leader_goes_away_meanwhile_makes_a_time_unknown() -> None:
    topic = Topic({ZERO: every_second(3)})
    lag = lag_of([sample(60, 1), sample(61, 1)], topic.logs, lambda _wanted, _time: {})
    assert records_of(lag) == [None, 2]


def test_absent_lag_says_why() -> None:
    topic = Topic({})
    assert topic.lag([]).absent == topic.lag([sample(1)]).absent == NO_OFFSETS
    assert topic.lag([sample(1, 5)]).absent == NO_LOGS


def test_of_many_partitions_fewer_samples_are_taken() -> None:
    partitions = [TopicPartition("orders", number) for number in range(1_000)]
    topic = Topic(dict.fromkeys(partitions, every_second(2)))
    samples = [sample(seconds, *[1] * len(partitions)) for seconds in range(30)]
    assert len(topic.lag(samples).samples) == 5
    assert topic.looked_up <= MAX_LOOKUPS


@given(st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 20)), max_size=20), st.integers(0, 20))
def test_lag_is_the_number_of_records_from_the_offset_on(committed: list[tuple[int, int]], count: int) -> None:
    """As counted in the log itself."""
    times = every_second(count)
    samples = commits(*sorted(committed)).samples()
    lag = Topic({ZERO: times}).lag(samples)
    if lag.absent:
        assert not committed
        return
    for one, told in zip(samples[:-1], lag.samples, strict=False):
        offset = one.offsets.get(ZERO)
        assert told.records == (None if offset is None else len(_uncommitted(times, one.time, offset)))


def _uncommitted(times: Iterable[int], time: int, offset: int) -> list[int]:
    return [place for place, one in enumerate(times) if one < time and place >= offset]
