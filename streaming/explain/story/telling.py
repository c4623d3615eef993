"""Tells a group's story from its journal."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from coordinator_logic.records import (
    AssignmentChanged,
    ConsumerGroupFormed,
    GenerationStarted,
    GroupCreated,
    GroupDeleted,
    GroupEpochBumped,
    JournalEntry,
    LeaderElected,
    MemberAdded,
    MemberRemoved,
    MemberUpdated,
    Record,
    StateChanged,
    StaticMemberReplaced,
)
from coordinator_logic.states import State
from streaming.explain.story.model import MemberChange, Rebalance, Story, Summary
from streaming.explain.story.moves import Owners, moves_between, owners_of
from streaming.explain.story.triggers import Known, KnownMember, causes_of

FLAPPING_MS = 600_000
HOUR_MS = 3_600_000
UNSTABLE = frozenset({State.PREPARING_REBALANCE.value, State.COMPLETING_REBALANCE.value})


class StoryTeller:
    """Takes the entries of one group in their order, and tells their story; entries may repeat.

    An entry that an older start of the coordinator wrote beside a newer one is taken as it comes: it is rare, and the
    newer one tells the same change again.
    """

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._first = self._last = 0
        self._is_complete = self._has_epochs = False
        self._seen: dict[str, int] = {}
        self._members: dict[str, KnownMember] = {}
        self._names: dict[str, str] = {}
        self._identities: dict[str, frozenset[str]] = {}
        self._leader: str | None = None
        self._owners: Owners | None = None
        self._job_epoch: int | None = None
        self._job_began: int | None = None
        self._turn: list[JournalEntry] = []
        self._rebalances: list[Rebalance] = []
        self._state, self._state_since = State.EMPTY.value, 0
        self._unstable_ms = 0

    def add(self, entry: JournalEntry) -> None:
        """Take the next entry."""
        if entry.sequence <= self._seen.get(entry.incarnation, 0):
            return
        if not self._seen:
            self._first = self._state_since = entry.timestamp
            self._is_complete = isinstance(entry.record, GroupCreated)
        self._seen[entry.incarnation] = entry.sequence
        self._last = entry.timestamp
        if entry.job_epoch != self._job_epoch:
            # Of the first entry it is not known when that start began.
            self._job_began = None if self._job_epoch is None else entry.timestamp
            self._job_epoch = entry.job_epoch
        if self._turn and self._turn[-1].cause != entry.cause:
            self._end_turn()
        self._turn.append(entry)
        self._take(entry)

    @property
    def has_entries(self) -> bool:
        """Whether an entry was added."""
        return bool(self._seen)

    @property
    def rebalances(self) -> Sequence[Rebalance]:
        """The rebalances until now; the last one may go on."""
        return self._rebalances

    def member_ids(self, wanted: str) -> frozenset[str]:
        """The ids of all members, also earlier ones, whose member id, group instance id or client id is ``wanted``."""
        found = {member_id for member_id, names in self._identities.items() if wanted in names}
        return frozenset({wanted, *found})

    def story(self) -> Story:
        """The story until now."""
        self._end_turn()
        return Story(
            self._group_id,
            self._first,
            self._last,
            self._is_complete,
            self._has_epochs,
            self._state,
            self._state_since,
            [member.name for member in self._members.values()],
            list(self._rebalances),
            self._summary(),
        )

    def _take(self, entry: JournalEntry) -> None:
        match entry.record:
            case StateChanged(to_state=state):
                self._change_state(entry, state)
            case MemberAdded() as added:
                self._names[added.member_id] = f"{added.client_id} at {added.client_host}"
                self._identities[added.member_id] = frozenset({added.client_id, added.group_instance_id or ""}) - {""}
                self._note_change(entry)
            case StaticMemberReplaced() as replaced:
                self._names[replaced.new_member_id] = self._name(replaced.old_member_id)
                self._identities[replaced.new_member_id] = self._identities.get(
                    replaced.old_member_id, frozenset({replaced.group_instance_id})
                )
            case MemberRemoved():
                self._note_change(entry)
            case GenerationStarted(generation=generation):
                self._amend(joined=entry.timestamp, generation=generation)
            case AssignmentChanged(assignments=assignments) if assignments:
                self._assign(owners_of(assignments))
            case GroupCreated() | GroupDeleted():
                self._owners = {}
            case ConsumerGroupFormed() | GroupEpochBumped():
                self._has_epochs = True
            case _:
                pass

    def _end_turn(self) -> None:
        """Remember the members after the turn: within it, a cause needs what was known of them before."""
        for entry in self._turn:
            self._remember(entry.record)
        self._turn = []

    def _remember(self, record: Record) -> None:
        members = self._members
        match record:
            case MemberAdded() as added:
                known = KnownMember(
                    self._name(added.member_id), added.client_id, added.session_timeout_ms, added.protocols
                )
                members[added.member_id] = known
            case MemberUpdated(member_id=member_id) as updated if member_id in members:
                members[member_id] = members[member_id]._replace(
                    session_timeout_ms=updated.session_timeout_ms, protocols=updated.protocols
                )
            case StaticMemberReplaced(old_member_id=old, new_member_id=new) if old in members:
                members[new] = members.pop(old)
                self._owners = {
                    partition: new if owner == old else owner for partition, owner in (self._owners or {}).items()
                }
            case MemberRemoved(member_id=member_id):
                members.pop(member_id, None)
            case LeaderElected(member_id=leader):
                self._leader = leader
            case GroupCreated() | GroupDeleted():
                members.clear()
                self._leader = None
            case _:
                pass

    def _change_state(self, entry: JournalEntry, state: str) -> None:
        if self._state in UNSTABLE:
            self._unstable_ms += max(0, entry.timestamp - self._state_since)
        before, self._state, self._state_since = self._state, state, entry.timestamp
        if state == State.PREPARING_REBALANCE.value:
            self._begin(entry, before)
        elif state in (State.STABLE.value, State.EMPTY.value):
            self._amend(ended=entry.timestamp)
            if state == State.EMPTY.value:
                self._owners = {}

    def _begin(self, entry: JournalEntry, before: str) -> None:
        if before == State.COMPLETING_REBALANCE.value:
            self._amend(is_interrupted=True, ended=entry.timestamp)
        known = Known(self._members, self._leader, self._job_began)
        self._rebalances.append(
            Rebalance(
                began=entry.timestamp,
                causes=causes_of(self._turn, known),
                was_empty=before == State.EMPTY.value,
                came=[self._change(one) for one in self._turn if isinstance(one.record, MemberAdded)],
                went=[self._change(one) for one in self._turn if isinstance(one.record, MemberRemoved)],
            )
        )

    def _note_change(self, entry: JournalEntry) -> None:
        """Of a member that came or went while the group collected its members."""
        if self._state == State.PREPARING_REBALANCE.value and self._rebalances:
            field = "came" if isinstance(entry.record, MemberAdded) else "went"
            self._amend(**{field: [*getattr(self._rebalances[-1], field), self._change(entry)]})

    def _assign(self, owners: Owners | None) -> None:
        if owners is not None and self._owners:
            self._amend(moves=moves_between(self._owners, owners, len(self._members)))
        self._owners = owners

    def _amend(self, **changes: object) -> None:
        if self._rebalances and self._rebalances[-1].ended is None:
            self._rebalances[-1] = msgspec.structs.replace(self._rebalances[-1], **changes)

    def _change(self, entry: JournalEntry) -> MemberChange:
        record = entry.record
        assert isinstance(record, MemberAdded | MemberRemoved)
        reason = record.reason if isinstance(record, MemberRemoved) else None
        return MemberChange(record.member_id, self._name(record.member_id), entry.timestamp, reason)

    def _name(self, member_id: str) -> str:
        return self._names.get(member_id, member_id)

    def _summary(self) -> Summary:
        span = max(self._last - self._first, 1)
        causing = [self._names.get(one.cause.member or "") for one in self._rebalances]
        counts = Counter(name for name in causing if name is not None)
        busiest, count = counts.most_common(1)[0] if counts else (None, 0)
        return Summary(
            len(self._rebalances),
            len(self._rebalances) * HOUR_MS / max(span, HOUR_MS),
            self._unstable_ms / span,
            _flapping(zip(self._rebalances, causing, strict=True), len(self._rebalances)),
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
