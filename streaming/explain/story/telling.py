"""Tells a group's story from its journal."""

from collections.abc import Sequence
from typing import get_args

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.groups.classic.records import (
    AssignmentChanged,
    ClassicGroupFormed,
    GenerationStarted,
    LeaderElected,
    MemberAdded,
    MemberUpdated,
    StateChanged,
)
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.records import (
    ConsumerGroupFormed,
    GroupEpochBumped,
    TargetAssignmentChanged,
)
from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE
from coordinator_logic.records import (
    GroupCreated,
    GroupDeleted,
    JournalEntry,
    MemberRemoved,
    OffsetRecord,
    QuarantinedStateDropped,
    StaticMemberReplaced,
)
from coordinator_logic.states import State
from streaming.explain.story.course import Course
from streaming.explain.story.epochs import Epochs
from streaming.explain.story.model import Now, Owner, Rebalance, Story
from streaming.explain.story.moves import Owners, owners_of, partitions_of, renamed, without
from streaming.explain.story.roster import Roster
from streaming.explain.story.summary import summary_of
from streaming.explain.story.triggers import Known, causes_of, is_reset
from streaming.explain.story.waits import Waits
from streaming.journal.fold import Observer

OFFSET_RECORDS = frozenset(get_args(OffsetRecord))
UNSTABLE = frozenset({State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE, State.ASSIGNING, State.RECONCILING})


class StoryTeller(Observer):
    """Tells the story of one group, as an observer of the :class:`~streaming.journal.fold.GroupFold` of its entries."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._first = self._last = 0
        self._is_complete = False
        self._turn: list[JournalEntry] = []
        self._members_before: int | None = None
        """The number of members before the turn; None if it is not known."""
        self._job_epoch: int | None = None
        self._job_began: int | None = None
        self._roster = Roster()
        self._course = Course(self._roster)
        self._waits = Waits(self._roster)
        self._leader: str | None = None
        self._generation: int | None = None
        self._owners: Owners | None = None
        """Those of the last assignment, also of members that have gone since; None if they are not known."""
        self._gone: set[str] = set()
        self._epochs: Epochs | None = None
        self._state, self._state_since, self._unstable_ms = State.EMPTY, 0, 0

    @property
    def has_entries(self) -> bool:
        """Whether an entry was added."""
        return self._job_epoch is not None

    @property
    def knows_all_members(self) -> bool:
        """Whether the entries name every member that the group has."""
        return self._roster.is_complete

    @property
    def rebalances(self) -> Sequence[Rebalance]:
        """The rebalances until now; the last one may go on."""
        return self._course.rebalances

    def take_ended(self) -> list[Rebalance]:
        """The rebalances that have ended and were not taken before; :attr:`rebalances` no longer has them."""
        return self._course.take_ended()

    @property
    def owners(self) -> Owners:
        """The partitions with their owners, as far as they are known; without members that have gone."""
        return without(self._owners or {}, self._gone) if self._epochs is None else self._epochs.owners

    def held_by(self, member_id: str) -> frozenset[TopicPartition]:
        """What a member of a consumer group holds: also what it is to revoke."""
        return frozenset() if self._epochs is None else self._epochs.held_by(member_id)

    def member_ids(self, wanted: str) -> frozenset[str]:
        """The ids of all members, also earlier ones, whose member id, group instance id or client id is ``wanted``."""
        return self._roster.ids(wanted)

    def client_of(self, member_id: str) -> str | None:
        """``client id at host`` of a member, also of an earlier one; None if the entries do not name it."""
        return self._roster.client(member_id)

    def on_entry(self, entry: JournalEntry) -> None:
        """Add the next entry."""
        if self._job_epoch is None:
            self._first = self._state_since = entry.timestamp
            self._is_complete = isinstance(entry.record, GroupCreated)
        self._last = entry.timestamp
        if entry.job_epoch != self._job_epoch:
            # Of the first entry it is not known when that start began.
            self._job_began = None if self._job_epoch is None else entry.timestamp
            self._job_epoch = entry.job_epoch
        # Most entries are commits, which change no member.
        if type(entry.record) in OFFSET_RECORDS and not is_reset(entry.cause):
            return
        if not self._turn:
            self._members_before = self._member_count(entry)
        self._turn.append(entry)
        self._roster.introduce(entry.record)
        self._tell(entry)

    def on_turn(self, _turn: Sequence[JournalEntry]) -> None:
        """Remember the members after a turn: within it, a cause needs what was known of them before."""
        self._end_turn()

    def story(self) -> Story:
        """The story until now; the last turn may go on."""
        members, leader, turn = dict(self._roster.members), self._leader, self._turn
        self._end_turn()
        story = self._story()
        self._roster.members, self._leader, self._turn = members, leader, turn
        return story

    def _story(self) -> Story:
        unstable_ms = self._unstable_ms + (self._last - self._state_since if self._state in UNSTABLE else 0)
        return Story(
            self._group_id,
            self._first,
            self._last,
            self._is_complete,
            CLASSIC_TYPE if self._epochs is None else CONSUMER_TYPE,
            self._now(),
            list(self._course.rebalances),
            summary_of(self._course.rebalances, self._roster, self._last - self._first, unstable_ms),
        )

    def _now(self) -> Now:
        held = partitions_of(self.owners)
        epochs = {} if self._epochs is None else self._epochs.members
        members = [
            Owner(member, self._roster.name(member), held.get(member, {}), epochs[member].epoch if epochs else None)
            for member in (epochs or dict.fromkeys([*self._roster.members, *held]))
        ]
        if self._epochs is None:
            waits, deadline = self._waits.of_classic_group(self._state, self._state_since, self._leader)
        else:
            waits, deadline = self._waits.of_consumer_group(self._epochs)
        return Now(
            state=self._state.value,
            since=self._state_since,
            generation=self._generation,
            members=members,
            waits_for=waits,
            deadline=deadline,
        )

    def _member_count(self, first: JournalEntry) -> int | None:
        """The number of members before a turn that begins with this entry."""
        if isinstance(first.record, GroupCreated):
            return 0
        return len(self._roster.members) if self._roster.is_complete else None

    def _end_turn(self) -> None:
        for entry in self._turn:
            self._roster.change(entry.record)
            match entry.record:
                case LeaderElected(member_id=leader):
                    self._leader = leader
                case GroupCreated() | GroupDeleted() | QuarantinedStateDropped() | ConsumerGroupFormed():
                    self._leader = None
                case _:
                    pass
        self._turn = []

    # ---- entries -------------------------------------------------------------------------------------------

    def _tell(self, entry: JournalEntry) -> None:
        record, time = entry.record, entry.timestamp
        match record:
            case ConsumerGroupFormed(epoch=epoch):
                self._epochs, self._generation = Epochs(epoch), epoch
            case ClassicGroupFormed(state=state):
                self._end_epochs(entry, State(state))
            case GroupCreated() | GroupDeleted() | QuarantinedStateDropped():
                self._course.end(time, is_interrupted=True)
                self._epochs, self._owners, self._generation = None, {}, None
                self._enter(State.EMPTY if isinstance(record, GroupCreated) else State.DEAD, time)
            case _ if self._epochs is None and isinstance(record, ConsumerGroup.records):
                # The journal began later than the group.
                self._epochs = Epochs(0)
            case _:
                pass
        if self._epochs is not None:
            self._tell_of_consumer_group(entry, self._epochs)
            return
        match record:
            case StateChanged(from_state=before, to_state=state):
                self._change_state(State(before), State(state), time)
            case MemberAdded() | MemberUpdated() | MemberRemoved():
                self._note_member(entry, record)
            case StaticMemberReplaced(old_member_id=old, new_member_id=new):
                self._waits.note_joined(new)
                self._owners = None if self._owners is None else renamed(self._owners, old, new)
            case GenerationStarted(generation=generation):
                self._generation = generation
                began = self._course.began_of_open
                waited = [] if began is None else self._waits.for_members(self._turn, began)
                self._course.amend(joined=time, generation=generation)
                self._course.add_waits(waited)
            case AssignmentChanged(assignments=assignments) if assignments:
                self._assign(owners_of(assignments), entry)
            case _:
                pass

    def _note_member(self, entry: JournalEntry, record: MemberAdded | MemberUpdated | MemberRemoved) -> None:
        if isinstance(record, MemberRemoved):
            self._gone.add(record.member_id)
        else:
            self._waits.note_joined(record.member_id)
        # Otherwise a rebalance begins with it, or none does.
        if self._state is State.PREPARING_REBALANCE:
            self._course.note_change(entry)

    def _assign(self, owners: Owners | None, entry: JournalEntry) -> None:
        if owners is not None and self._owners is not None:
            self._course.move(self._owners, owners, len(self._roster.members))
        self._course.add_waits(self._waits.for_leader(entry, self._course.joined_of_open))
        self._owners = owners
        self._gone.clear()

    def _change_state(self, before: State, state: State, time: int) -> None:
        self._enter(state, time)
        if state is State.PREPARING_REBALANCE:
            self._course.end(time, is_interrupted=True)
            self._begin(was_empty=before is State.EMPTY)
            self._waits.begin(self._turn, has_initial_delay=before is State.EMPTY)
        elif state in (State.STABLE, State.EMPTY):
            self._course.end(time)
            if state is State.EMPTY:
                self._owners = {}

    def _begin(self, *, was_empty: bool) -> None:
        group_type = CLASSIC_TYPE if self._epochs is None else CONSUMER_TYPE
        known = Known(self._roster.members, self._leader, self._job_began)
        causes = causes_of(self._turn, known)
        self._course.begin(self._turn, causes, group_type, self._members_before, was_empty=was_empty)

    def _enter(self, state: State, time: int) -> None:
        if self._state in UNSTABLE:
            self._unstable_ms += max(0, time - self._state_since)
        if state is not self._state:
            self._state, self._state_since = state, time

    # ---- consumer groups -----------------------------------------------------------------------------------

    def _tell_of_consumer_group(self, entry: JournalEntry, epochs: Epochs) -> None:
        record, time = entry.record, entry.timestamp
        member_id = getattr(record, "member_id", "")
        before = epochs.members.get(member_id)
        is_new_epoch = isinstance(record, GroupEpochBumped) and record.epoch > epochs.epoch
        owners = epochs.owners if is_new_epoch else None
        if owners is not None:
            self._move_to(owners, len(epochs.members))
            self._course.end(time, is_interrupted=True)
        epochs.take(record, time)
        if before is not None:
            self._course.add_waits(self._waits.ended_revocation(member_id, before, epochs, time))
        if owners is not None:
            self._generation = epochs.epoch
            self._begin(was_empty=False)
            self._course.amend(generation=epochs.epoch)
            self._owners = owners if self._roster.is_complete else None
        elif isinstance(record, TargetAssignmentChanged):
            self._course.amend(joined=time)
        self._enter(epochs.state, time)
        if epochs.state in (State.STABLE, State.EMPTY) and self._course.began_of_open is not None:
            self._course.add_waits(self._waits.last_to_arrive(entry, self._course.began_of_open))
            self._move_to(epochs.owners, len(epochs.members))
            self._course.end(time)

    def _move_to(self, owners: Owners, members: int) -> None:
        if self._owners is not None:
            self._course.move(self._owners, owners, members)

    def _end_epochs(self, entry: JournalEntry, state: State) -> None:
        """The group is a classic one from now on; a rebalance that goes on ends here."""
        if self._epochs is not None:
            self._owners = self._epochs.owners
            self._course.end(entry.timestamp, is_interrupted=True)
        self._epochs = None
        self._enter(state, entry.timestamp)
