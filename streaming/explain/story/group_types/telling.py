"""What is told of a group of any type, and what tells of a type."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.records import JournalEntry
from coordinator_logic.states import State
from streaming.explain.story.course import Course
from streaming.explain.story.group_types.waits import Waiting
from streaming.explain.story.moves import Owners
from streaming.explain.story.roster import Roster
from streaming.explain.story.triggers import KnownBefore, causes_of

UNSTABLE = frozenset({State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE, State.ASSIGNING, State.RECONCILING})


class TypeWords(NamedTuple):
    """What a rebalance leads to, what its two phases are, and for what the group waits in them.

    ``phases`` are in sentences, ``spans`` the same as names.
    """

    number: str
    phases: tuple[str, str]
    spans: tuple[str, str]
    waits: tuple[str, str]


class Telling:
    """A group as its entries tell of it, whatever its type."""

    def __init__(self) -> None:
        self.roster = Roster()
        self.course = Course(self.roster)
        self.turn: list[JournalEntry] = []
        """The entries of the turn until now, without those of offsets."""
        self.members_before: int | None = None
        """The number of members before the turn; None if it is not known."""
        self.job_began: int | None = None
        self.leader: str | None = None
        self.generation: int | None = None
        self.owners: Owners | None = None
        """Those of the last assignment, also of members that have gone since; None if they are not known."""
        self.state: State | None = None
        """None while it is not known."""
        self.state_since = self._first = self._unstable_ms = 0

    def enter(self, state: State | None, time: int) -> None:
        """Note the state at a time, in ms; None if it is not known."""
        if state is not self.state:
            self._unstable_ms = self.unstable_ms(time)
            self.state, self.state_since = state, time

    def begin(self, time: int) -> None:
        """Count the time in which the group is not Stable from this time on, in ms."""
        self._first, self._unstable_ms = time, 0

    def unstable_ms(self, until: int) -> int:
        """For how long the group was not Stable until a time, in ms."""
        goes_on = max(0, until - max(self.state_since, self._first)) if self.state in UNSTABLE else 0
        return self._unstable_ms + goes_on

    def begin_rebalance(self, group_type: str, *, was_empty: bool) -> None:
        """Begin a rebalance with the newest entry of the turn."""
        known = KnownBefore(self.roster.members, self.leader, self.job_began, self.roster.is_complete)
        self.course.begin(self.turn, causes_of(self.turn, known), group_type, self.members_before, was_empty=was_empty)

    def move_to(self, owners: Owners, members: int) -> None:
        """Note the owners after a rebalance, of so many members, if those before it are known."""
        if self.owners is not None:
            self.course.move(self.owners, owners, members)


class TypeTelling(ABC):
    """Tells of a group while it is of one type."""

    WORDS: ClassVar[TypeWords]
    RECORDS: ClassVar[tuple[type, ...]]
    """The records that only a group of this type has, or with which it becomes one."""

    def __init__(self, telling: Telling) -> None:
        self._telling = telling

    @abstractmethod
    def tell(self, entry: JournalEntry) -> None:
        """Add the next entry, the newest of the turn."""

    @abstractmethod
    def leave(self, entry: JournalEntry) -> None:
        """End with an entry with which the group is of another type, or no longer exists."""

    @property
    @abstractmethod
    def owners(self) -> Owners:
        """The partitions with their owners, as far as they are known; without members that have gone."""

    def held_by(self, _member_id: str) -> frozenset[TopicPartition]:
        """What a member holds beside what it owns."""
        return frozenset()

    @abstractmethod
    def epochs(self) -> Mapping[str, int | None]:
        """The epoch of each member that the group has now, as far as is known; None without one."""

    @abstractmethod
    def waiting(self) -> Waiting:
        """For whom the group waits now."""
