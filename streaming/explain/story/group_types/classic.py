"""The story of a classic group: its generations, each with the assignment of its leader."""

from collections.abc import Mapping

from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.records import (
    AssignmentChanged,
    ClassicGroupFormed,
    GenerationStarted,
    MemberAdded,
    MemberUpdated,
    StateChanged,
)
from coordinator_logic.messages.groups import CLASSIC_TYPE
from coordinator_logic.records import (
    GroupCreated,
    GroupDeleted,
    JournalEntry,
    MemberRemoved,
    QuarantinedStateDropped,
    StaticMemberReplaced,
)
from coordinator_logic.states import State
from streaming.explain.story.group_types.telling import Telling, TypeTelling, TypeWords
from streaming.explain.story.group_types.waits import ClassicWaits, Waiting
from streaming.explain.story.moves import Owners, owners_of, partitions_of, renamed, without


class ClassicTelling(TypeTelling):
    """Tells of a classic group."""

    WORDS = TypeWords(
        number="generation",
        phases=("joining", "the assignment"),
        spans=("joining", "assignment"),
        waits=("its members to join", "the leader's assignment"),
    )
    RECORDS = (ClassicGroupFormed, GroupCreated, GroupDeleted, QuarantinedStateDropped, *ClassicGroup.records)

    def __init__(self, telling: Telling) -> None:
        super().__init__(telling)
        self._waits = ClassicWaits(telling.roster)
        self._gone: set[str] = set()

    def tell(self, entry: JournalEntry) -> None:
        telling, record, time = self._telling, entry.record, entry.timestamp
        match record:
            case ClassicGroupFormed(state=state):
                telling.enter(State(state), time)
            case GroupCreated() | GroupDeleted() | QuarantinedStateDropped():
                telling.course.end(time, is_interrupted=True)
                telling.owners, telling.generation = {}, None
                telling.enter(State.EMPTY if isinstance(record, GroupCreated) else State.DEAD, time)
            case StateChanged(from_state=before, to_state=state):
                self._change_state(State(before), State(state), time)
            case MemberAdded() | MemberUpdated() | MemberRemoved():
                self._note_member(entry, record)
            case StaticMemberReplaced(old_member_id=old, new_member_id=new):
                self._waits.note_joined(new)
                telling.owners = None if telling.owners is None else renamed(telling.owners, old, new)
            case GenerationStarted(generation=generation):
                telling.generation = generation
                going_on = telling.course.open
                waited = [] if going_on is None else self._waits.for_members(telling.turn, going_on.began)
                telling.course.amend(joined=time, generation=generation)
                telling.course.add_waits(waited)
            case AssignmentChanged(assignments=assignments) if assignments:
                self._assign(owners_of(assignments), entry)

    def leave(self, _entry: JournalEntry) -> None:
        """Leave everything as it is: the record of the other type ends a rebalance if it begins one."""

    @property
    def owners(self) -> Owners:
        return without(self._telling.owners or {}, self._gone)

    def epochs(self) -> Mapping[str, int | None]:
        """The members, also those that are only known as owners."""
        return dict.fromkeys([*self._telling.roster.members, *partitions_of(self.owners)])

    def waiting(self) -> Waiting:
        return self._waits.now(self._telling.state, self._telling.state_since, self._telling.leader)

    def _note_member(self, entry: JournalEntry, record: MemberAdded | MemberUpdated | MemberRemoved) -> None:
        if isinstance(record, MemberRemoved):
            self._gone.add(record.member_id)
        else:
            self._waits.note_joined(record.member_id)
        # Otherwise a rebalance begins with it, or none does.
        if self._telling.state is State.PREPARING_REBALANCE:
            self._telling.course.note_change(entry)

    def _assign(self, owners: Owners | None, entry: JournalEntry) -> None:
        telling = self._telling
        if owners is not None:
            telling.move_to(owners, len(telling.roster.members))
        if telling.course.open is not None:
            telling.course.add_waits(self._waits.for_leader(entry, telling.course.open.joined))
        telling.owners = owners
        self._gone.clear()

    def _change_state(self, before: State, state: State, time: int) -> None:
        telling = self._telling
        telling.enter(state, time)
        if state is State.PREPARING_REBALANCE:
            telling.course.end(time, is_interrupted=True)
            telling.begin_rebalance(CLASSIC_TYPE, was_empty=before is State.EMPTY)
            self._waits.begin(telling.turn, has_initial_delay=before is State.EMPTY)
        elif state in (State.STABLE, State.EMPTY):
            telling.course.end(time)
            if state is State.EMPTY:
                telling.owners = {}
