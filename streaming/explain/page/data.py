"""The data of a page: a story and its lanes as compact JSON.

Times are ms since the story's first entry; within a list they are differences. Lanes, partitions and sets of partitions
are named by their place in a list, so that a page of hundreds of members and rebalances stays small.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise

import msgspec

from coordinator_logic.embedded_protocols import TopicPartition
from streaming.contract.output.text import printable
from streaming.explain.lag import Lag
from streaming.explain.page.lanes import Held, Lane, Lanes
from streaming.explain.story.model import Cause, Rebalance, Refused, RefusedRequest, Story
from streaming.explain.story.words import entries_in_words, moves_in_words, sender_line

MARKS = 30_000
"""The most marks of commits on a page."""
FINEST_MARKS = 4_000
COARSEST_MARKS = 100
"""Into how many intervals the time is divided at most and at least; a lane has a mark for each with a commit."""

REFUSALS = 1_000
"""The most refusals on a page; of more, the newest ones."""

OUTSIDE = -1
"""In place of a lane: no member."""


class PageCause(msgspec.Struct, frozen=True, rename="camel"):
    """A possible cause; ``entries`` are the sequence numbers of the first and the last entry that shows it."""

    trigger: str
    is_certain: bool
    lane: int
    member: str
    text: str
    entries: tuple[int, int]


class PageRebalance(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A rebalance; ``moves`` says how many partitions moved.

    ``waits`` are the lane that was waited for, what it was to do, begin and end.
    """

    began: int
    causes: list[PageCause]
    joined: int | None = None
    ended: int | None = None
    is_interrupted: bool = False
    was_empty: bool = False
    group_type: str = ""
    generation: int | None = None
    came: list[int] = []
    went: list[tuple[int, str]] = []
    moves: str | None = None
    waits: list[tuple[int, str, int, int | None]] = []


class PageLane(msgspec.Struct, frozen=True, rename="camel"):
    """A lane: ``stays`` are member id, begin, end, reason, 1 if it was expelled, 1 if it began before the page.

    ``owned`` alternates places in the page's times and sets, both as differences; ``commits`` alternates times and
    numbers of commits.
    """

    name: str
    instance: str
    stays: list[tuple[str, int, int | None, str, int, int]]
    owned: list[int]
    commits: list[int]


class PageLag(msgspec.Struct, frozen=True, rename="camel"):
    """The lag: why it is absent, samples as time and records, and partitions as topic, number, committed and end.

    ``records`` of a sample and ``end`` are null if they are not known.
    """

    absent: str
    samples: list[tuple[int, int | None]]
    partitions: list[tuple[str, int, int, int | None]]


class PageRefusal(msgspec.Struct, frozen=True, rename="camel"):
    """Refused requests that are alike: ``what`` is the API and the error, ``place`` where the first one and the
    entries are that show why."""

    first: int
    last: int
    count: int
    lane: int
    what: str
    sender: str
    text: str
    place: str


class Page(msgspec.Struct, frozen=True, rename="camel"):
    """All data of a page. ``first`` and ``last`` are ms since the epoch. ``times`` are those at which owners changed.

    ``partitions`` are topic and number. A set is a list of differences: a positive number goes on to the partition that
    is so many places later, a negative one adds so many that follow. ``now`` has lines about the group after its last
    entry, ``outside`` commits of no member, as those of a lane. ``lag`` is null if it was not asked for. ``refused``
    are the figures of all refused requests and ``notes`` about them, null if the requests were not read.
    """

    group: str
    group_type: str
    first: int
    last: int
    is_complete: bool
    summary: dict[str, object]
    now: list[str]
    partitions: list[tuple[str, int]]
    sets: list[list[int]]
    times: list[int]
    lanes: list[PageLane]
    outside: list[int]
    rebalances: list[PageRebalance]
    refusals: list[PageRefusal]
    refused: dict[str, object] | None
    lag: PageLag | None = None


class _Sets:
    """Gives each set of partitions a number, in the order in which the lanes own them, and each time of a change."""

    def __init__(self, lanes: Iterable[Lane]) -> None:
        every: set[TopicPartition] = set()
        numbers: dict[Held, int] = {}
        every_change = list(chain.from_iterable(lane.owned for lane in lanes))
        for _, held in every_change:
            if held not in numbers:
                numbers[held] = len(numbers)
                every |= held
        self.numbers = numbers
        self.times = {time: place for place, time in enumerate(sorted({time for time, _ in every_change}))}
        self.partitions = sorted(every)

    def differences(self) -> list[list[int]]:
        place = {partition: number for number, partition in enumerate(self.partitions)}
        return [_differences(sorted(place[partition] for partition in held)) for held in self.numbers]


def page_of(story: Story, lanes: Lanes, now: Sequence[str], lag: Lag | None = None) -> Page:
    """The page of a story and its lanes; ``now`` are lines about the group after its last entry."""
    first, sets = _first(story), _Sets(lanes.lanes)
    place = {stay.member_id: number for number, lane in enumerate(lanes.lanes) for stay in lane.stays}
    figures, busiest = msgspec.to_builtins(story.summary), story.summary.busiest
    width = _interval(story.last - first, len(lanes.lanes) + 1)
    return Page(
        group=printable(story.group_id),
        group_type=story.group_type,
        first=first,
        last=max([story.last, *(one.last for one in _refusals(story))]),
        is_complete=story.is_complete,
        summary={**figures, "busiest": None if busiest is None else printable(busiest)},
        now=[printable(line) for line in now],
        partitions=[(printable(topic), number) for topic, number in sets.partitions],
        sets=sets.differences(),
        times=_steps([time - first for time in sets.times]),
        lanes=[_lane(lane, first, sets, width) for lane in lanes.lanes],
        outside=_marks(lanes.outside, first, width),
        rebalances=[_rebalance(one, first, place) for one in story.rebalances],
        refusals=[_refusal(one, first, lanes.lanes, place) for one in _refusals(story)[-REFUSALS:]],
        refused=_refused(story.refused),
        lag=None if lag is None else _lag(lag, first),
    )


def _lag(lag: Lag, first: int) -> PageLag:
    return PageLag(
        printable(lag.absent),
        [(sample.time - first, sample.records) for sample in lag.samples],
        [(printable(one.topic), one.partition, one.committed, one.end) for one in lag.now],
    )


def _refusals(story: Story) -> Sequence[RefusedRequest]:
    return () if story.refused is None else story.refused.refusals


def _first(story: Story) -> int:
    """The beginning of the page: a request may have been refused, or a rebalance begun, before that of the story."""
    return min([story.first, *(one.began for one in story.rebalances), *(one.first for one in _refusals(story))])


def _refused(refused: Refused | None) -> dict[str, object] | None:
    if refused is None:
        return None
    left_out = len(refused.refusals) - REFUSALS
    notes = [*refused.notes, *([f"{left_out} earlier refusals are not on the page."] if left_out > 0 else [])]
    return {
        "requests": refused.requests,
        "commits": refused.commits,
        "busiest": None if refused.busiest is None else printable(refused.busiest),
        "busiestCount": refused.busiest_count,
        "notes": [printable(note) for note in notes],
    }


def _refusal(one: RefusedRequest, first: int, lanes: Sequence[Lane], place: dict[str, int]) -> PageRefusal:
    entries = f"; {entries_in_words(one.evidence)}" if one.evidence else ""
    lane = place.get(one.member)
    if lane is None:
        lane = next((number for number, each in enumerate(lanes) if each.name == one.name), OUTSIDE)
    return PageRefusal(
        one.first - first,
        one.last - first,
        one.count,
        lane,
        f"{one.api}: {one.error}",
        printable(sender_line(one)),
        printable(one.text),
        f"request {one.partition}:{one.offset}{entries}",
    )


def _lane(lane: Lane, first: int, sets: _Sets, width: int) -> PageLane:
    stays = [
        (
            printable(stay.member_id),
            stay.since - first,
            None if stay.until is None else stay.until - first,
            printable(stay.reason or ""),
            int(stay.was_expelled),
            int(stay.began_before),
        )
        for stay in lane.stays
    ]
    times = _steps([sets.times[time] for time, _ in lane.owned])
    numbers = _steps([sets.numbers[held] for _, held in lane.owned])
    owned = list(chain.from_iterable(zip(times, numbers, strict=True)))
    return PageLane(
        printable(lane.name), printable(lane.instance_id or ""), stays, owned, _marks(lane.commits, first, width)
    )


def _rebalance(one: Rebalance, first: int, place: dict[str, int]) -> PageRebalance:
    return PageRebalance(
        began=one.began - first,
        causes=[_cause(cause, place) for cause in one.causes],
        joined=None if one.joined is None else one.joined - first,
        ended=None if one.ended is None else one.ended - first,
        is_interrupted=one.is_interrupted,
        was_empty=one.was_empty,
        group_type=one.group_type,
        generation=one.generation,
        came=[place.get(change.member, OUTSIDE) for change in one.came],
        went=[(place.get(change.member, OUTSIDE), printable(change.reason or "")) for change in one.went],
        moves=None if one.moves is None else moves_in_words(one, one.moves),
        waits=[
            (
                place.get(wait.member, OUTSIDE),
                printable(wait.what),
                wait.since - first,
                None if wait.until is None else wait.until - first,
            )
            for wait in one.waited_for
        ],
    )


def _cause(cause: Cause, place: dict[str, int]) -> PageCause:
    member = cause.member or ""
    return PageCause(
        cause.trigger.value,
        cause.is_certain,
        place.get(member, OUTSIDE),
        printable(member),
        printable(cause.text),
        (cause.evidence[0].sequence, cause.evidence[-1].sequence),
    )


def _interval(span: int, lanes: int) -> int:
    """The width of an interval in ms, within which the commits of a lane are one mark."""
    return max(1, span // max(COARSEST_MARKS, min(FINEST_MARKS, MARKS // lanes)))


def _marks(times: Iterable[int], first: int, width: int) -> list[int]:
    """Times as marks: the difference from the mark before, in ms, and the number of times in its interval."""
    counts: dict[int, int] = {}
    for time in times:
        interval = (time - first) // width
        counts[interval] = counts.get(interval, 0) + 1
    marks: list[int] = []
    before = 0
    for interval in sorted(counts):
        marks += ((interval - before) * width, counts[interval])
        before = interval
    return marks


def _steps(values: Sequence[int]) -> list[int]:
    """Each value as the difference from the one before, the first one from 0."""
    return [value - before for before, value in pairwise([0, *values])]


def _differences(places: Sequence[int]) -> list[int]:
    """Sorted places as the differences of :class:`Page`; the first one counts from the place before the list."""
    differences: list[int] = []
    before = -1
    for place in places:
        if place > before + 1 or not differences:
            differences.append(place - before)
        elif differences[-1] < 0:
            differences[-1] -= 1
        else:
            differences.append(-1)
        before = place
    return differences
