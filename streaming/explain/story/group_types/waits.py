"""For whom a group waits, and for whom it has waited."""

from collections.abc import Iterator, Sequence

from coordinator_logic.groups.classic.records import MemberAdded, MemberUpdated
from coordinator_logic.records import JournalEntry, MemberRemoved, RequestCause, StaticMemberReplaced
from coordinator_logic.states import State
from streaming.explain.story.group_types.epochs import Epochs, MemberEpochs
from streaming.explain.story.model import Wait
from streaming.explain.story.moves import in_words
from streaming.explain.story.roster import Roster

Waiting = tuple[list[Wait], int | None]
"""The members that a group waits for now, and when it goes on without them, in ms; None if that is not known."""


class _Waits:
    """Names the members that a group waits for."""

    def __init__(self, roster: Roster) -> None:
        self._roster = roster

    def _wait(self, member_id: str, what: str, since: int, until: int | None) -> Wait:
        return Wait(member_id, self._roster.name(member_id), what, since, until)


class ClassicWaits(_Waits):
    """Tells for whom a classic group waits, from the members that are known to have rejoined."""

    def __init__(self, roster: Roster) -> None:
        super().__init__(roster)
        self._joined: set[str] = set()
        self._has_initial_delay = False

    def begin(self, turn: Sequence[JournalEntry], *, has_initial_delay: bool) -> None:
        """A rebalance began with the last entry of this turn."""
        self._has_initial_delay = has_initial_delay
        self._joined = {member for entry in turn if (member := _joining(entry)) is not None}

    def note_joined(self, member_id: str) -> None:
        """A member joined, or rejoined with something new."""
        self._joined.add(member_id)

    def for_members(self, turn: Sequence[JournalEntry], began: int) -> Iterator[Wait]:
        """For whom a generation waited that the last entry of a turn started, in a rebalance that began then."""
        last = turn[-1]
        removed = [entry.record for entry in turn if isinstance(entry.record, MemberRemoved)]
        if last.timestamp == began:
            return
        if removed:
            for record in removed:
                yield self._wait(record.member_id, f"to rejoin, in vain: {record.reason}", began, last.timestamp)
        elif isinstance(last.cause, RequestCause):
            member = next((entry.record.member_id for entry in turn if isinstance(entry.record, MemberAdded)), None)
            yield self._wait(member or last.cause.member_id, "to join, as the last one", began, last.timestamp)

    def for_leader(self, entry: JournalEntry, joined: int | None) -> Iterator[Wait]:
        """For whom the assignment waited; ``joined`` is when the generation began."""
        if joined is not None and entry.timestamp > joined and isinstance(entry.cause, RequestCause):
            yield self._wait(entry.cause.member_id, "to assign, as the leader", joined, entry.timestamp)

    def now(self, state: State | None, since: int, leader: str | None) -> Waiting:
        """For whom a group waits that is in a state since then."""
        members = self._roster.members
        timeouts = [member.rebalance_timeout_ms for member in members.values()]
        deadline = since + max(timeouts) if timeouts and self._roster.is_complete else None
        if state is State.PREPARING_REBALANCE and not self._has_initial_delay:
            missing = [member for member in members if member not in self._joined]
            return [self._wait(member, "to rejoin", since, None) for member in missing], deadline
        if state is State.COMPLETING_REBALANCE and leader is not None:
            return [self._wait(leader, "to assign, as the leader", since, None)], deadline
        return [], None


class ConsumerWaits(_Waits):
    """Tells for whom a consumer group waits."""

    def ended_revocation(self, member_id: str, before: MemberEpochs, epochs: Epochs, time: int) -> Iterator[Wait]:
        """The revocation that has ended with a record of this time, if the member had to revoke before it."""
        now = epochs.members.get(member_id)
        if before.must_revoke and (now is None or not now.must_revoke):
            yield self._wait(member_id, f"to revoke {in_words(epochs.named(before.pending))}", before.since, time)

    def last_to_arrive(self, entry: JournalEntry, began: int) -> Iterator[Wait]:
        """The member with which all have reached the target, in a rebalance that began then."""
        if entry.timestamp > began and isinstance(entry.cause, RequestCause):
            yield self._wait(entry.cause.member_id, "to reach its target, as the last one", began, entry.timestamp)

    def now(self, epochs: Epochs) -> Waiting:
        """For whom a group with these epochs waits."""
        waits, deadlines = [], []
        for member_id, one in epochs.members.items():
            if one.must_revoke:
                waits.append(self._wait(member_id, f"to revoke {in_words(epochs.named(one.pending))}", one.since, None))
                known = self._roster.members.get(member_id)
                if known is not None and known.rebalance_timeout_ms >= 0:
                    deadlines.append(one.since + known.rebalance_timeout_ms)
        if waits or epochs.state is not State.RECONCILING:
            return waits, min(deadlines, default=None)
        late = [(member, one) for member, one in epochs.members.items() if not epochs.has_arrived(one)]
        return [self._wait(member, "to reach its target", one.since, None) for member, one in late], None


def _joining(entry: JournalEntry) -> str | None:
    match entry.record:
        case MemberAdded(member_id=member_id) | MemberUpdated(member_id=member_id):
            return member_id
        case StaticMemberReplaced(new_member_id=member_id):
            return member_id
        case _ if isinstance(entry.cause, RequestCause) and entry.cause.api == "JoinGroup":
            return entry.cause.member_id
        case _:
            return None
