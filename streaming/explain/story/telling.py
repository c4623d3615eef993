"""Tells a group's story from its journal."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import get_args

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.groups.classic.records import LeaderElected
from coordinator_logic.groups.consumer.records import ConsumerGroupFormed
from coordinator_logic.records import GroupCreated, GroupDeleted, JournalEntry, OffsetRecord, QuarantinedStateDropped
from streaming.explain.story.group_types import FIRST_TYPE, TELLINGS, type_after
from streaming.explain.story.group_types.telling import Telling, TypeTelling
from streaming.explain.story.model import Now, Owner, Rebalance, Story, Summary
from streaming.explain.story.moves import Owners, partitions_of
from streaming.explain.story.roster import Roster
from streaming.explain.story.triggers import is_reset
from streaming.journal.fold import Observer
from streaming.journal.folded_group import UNKNOWN

OFFSET_RECORDS = frozenset(get_args(OffsetRecord))

FLAPPING_MS = 600_000
HOUR_MS = 3_600_000


class StoryTeller(Observer):
    """Tells the story of one group, as an observer of the :class:`~streaming.journal.fold.GroupFold` of its entries.

    Args:
        group_id: The group.
        since: When the story begins, in ms. Earlier entries are to be added, too: they tell the state, the members and
            the assignment with which it begins.
    """

    def __init__(self, group_id: str, since: int = 0) -> None:
        self._group_id = group_id
        self._since = since
        self._first = self._last = 0
        self._has_begun = self._is_complete = False
        self._job_epoch: int | None = None
        self._telling = Telling()
        self._type: str | None = None
        self._of_type: TypeTelling = TELLINGS[FIRST_TYPE](self._telling)

    @property
    def has_entries(self) -> bool:
        """Whether the story has an entry."""
        return self._has_begun

    @property
    def first(self) -> int:
        """When the story begins, in ms."""
        return self._first

    @property
    def newest(self) -> int | None:
        """The time of the newest entry, also of one before the story, in ms; None without one."""
        return None if self._job_epoch is None else self._last

    @property
    def knows_all_members(self) -> bool:
        """Whether the entries name every member that the group has."""
        return self._telling.roster.is_complete

    @property
    def rebalances(self) -> Sequence[Rebalance]:
        """The rebalances until now; the last one may go on."""
        return self._telling.course.rebalances

    def pop_ended(self) -> list[Rebalance]:
        """Remove the rebalances that have ended, and return them."""
        return self._telling.course.pop_ended()

    @property
    def owners(self) -> Owners:
        """The partitions with their owners, as far as they are known; without members that have gone."""
        return self._of_type.owners

    def held_by(self, member_id: str) -> frozenset[TopicPartition]:
        """What a member of a consumer group holds: also what it is to revoke."""
        return self._of_type.held_by(member_id)

    def member_ids(self, wanted: str) -> frozenset[str]:
        """The ids of all members, also earlier ones, whose member id, group instance id or client id is ``wanted``."""
        return self._telling.roster.ids(wanted)

    def client_of(self, member_id: str) -> str | None:
        """``client id at host`` of a member, also of an earlier one; None if the entries do not name it."""
        return self._telling.roster.client(member_id)

    def on_entry(self, entry: JournalEntry) -> None:
        telling = self._telling
        if not self._has_begun and entry.timestamp >= self._since:
            self.begin(entry)
        self._last = entry.timestamp
        if entry.job_epoch != self._job_epoch:
            # Of the first entry it is not known when that start began.
            telling.job_began = None if self._job_epoch is None else entry.timestamp
            self._job_epoch = entry.job_epoch
        # Most entries are commits, which change no member.
        if type(entry.record) in OFFSET_RECORDS and not is_reset(entry.cause):
            return
        if not telling.turn:
            telling.members_before = self._member_count(entry)
        telling.turn.append(entry)
        telling.roster.introduce(entry.record)
        self._change_type(type_after(entry.record, self._type), entry)
        self._of_type.tell(entry)
        if not self._has_begun:
            telling.course.pop_ended()

    def begin(self, entry: JournalEntry | None = None) -> None:
        """Begin the story with this entry, or without one."""
        has_earlier_entries, roster = self._job_epoch is not None, self._telling.roster
        self._has_begun = True
        self._first = self._since if has_earlier_entries or entry is None else entry.timestamp
        self._is_complete = roster.is_complete or (entry is not None and isinstance(entry.record, GroupCreated))
        self._telling.begin(self._first)

    def _change_type(self, group_type: str | None, entry: JournalEntry) -> None:
        if group_type is not None and group_type != (self._type or FIRST_TYPE):
            self._of_type.leave(entry)
            self._of_type = TELLINGS[group_type](self._telling)
        self._type = group_type

    def on_turn(self, _turn: Sequence[JournalEntry]) -> None:
        """Remember the members after a turn: within it, a cause needs what was known of them before."""
        telling = self._telling
        for entry in telling.turn:
            telling.roster.change(entry.record)
            match entry.record:
                case LeaderElected(member_id=leader):
                    telling.leader = leader
                case GroupCreated() | GroupDeleted() | QuarantinedStateDropped() | ConsumerGroupFormed():
                    telling.leader = None
        telling.turn = []

    def story(self) -> Story:
        """The story until now; the last turn may go on."""
        telling = self._telling
        members, leader, turn = dict(telling.roster.members), telling.leader, telling.turn
        self.on_turn(turn)
        story = self._story()
        telling.roster.members, telling.leader, telling.turn = members, leader, turn
        return story

    def _story(self) -> Story:
        course, unstable_ms = self._telling.course, self._telling.unstable_ms(self._last)
        return Story(
            self._group_id,
            self._first,
            max(self._first, self._last),
            self._is_complete,
            self._type or UNKNOWN,
            self._now(),
            list(course.rebalances),
            _summary(course.rebalances, self._telling.roster, self._last - self._first, unstable_ms),
        )

    def _now(self) -> Now:
        telling, held = self._telling, partitions_of(self.owners)
        waits, deadline = self._of_type.waiting()
        return Now(
            state=UNKNOWN if telling.state is None else telling.state.value,
            since=None if telling.state is None else telling.state_since,
            generation=telling.generation,
            members=[
                Owner(member, telling.roster.name(member), held.get(member, {}), epoch)
                for member, epoch in self._of_type.epochs().items()
            ],
            knows_members=telling.roster.is_complete,
            waits_for=waits,
            deadline=deadline,
        )

    def _member_count(self, first: JournalEntry) -> int | None:
        """The number of members before a turn that begins with this entry."""
        if isinstance(first.record, GroupCreated):
            return 0
        roster = self._telling.roster
        return len(roster.members) if roster.is_complete else None


def _summary(rebalances: Sequence[Rebalance], roster: Roster, span_ms: int, unstable_ms: int) -> Summary:
    """The figures of so long a time, of which the group was not Stable for ``unstable_ms``."""
    span = max(span_ms, 1)
    causing = [roster.client(one.cause.member) for one in rebalances]
    counts = Counter(name for name in causing if name is not None)
    busiest, count = counts.most_common(1)[0] if counts else (None, 0)
    return Summary(
        len(rebalances),
        len(rebalances) * HOUR_MS / max(span, HOUR_MS),
        unstable_ms / span,
        _flapping(zip(rebalances, causing, strict=True), len(rebalances)),
        busiest,
        count,
    )


def _flapping(told: Iterable[tuple[Rebalance, str | None]], count: int) -> float:
    last: dict[str, int] = {}
    repeated = 0
    for rebalance, name in told:
        if name is not None:
            repeated += name in last and rebalance.began - last[name] <= FLAPPING_MS
            last[name] = rebalance.began
    return repeated / count if count else 0.0
