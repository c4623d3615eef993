"""The rebalances of a group in their order, of which the last one may go on."""

from collections.abc import Iterable, Sequence

import msgspec

from coordinator_logic.groups.classic.records import MemberAdded
from coordinator_logic.groups.consumer.records import ConsumerMemberChanged
from coordinator_logic.records import JournalEntry, MemberRemoved
from streaming.explain.story.model import Cause, MemberChange, Rebalance, Wait
from streaming.explain.story.moves import Owners, moves_between, shares_between
from streaming.explain.story.roster import Roster


class Course:
    """The rebalances; each method but :meth:`begin` changes the one that goes on, and does nothing without one."""

    def __init__(self, roster: Roster) -> None:
        self.rebalances: list[Rebalance] = []
        self._roster = roster

    @property
    def open(self) -> Rebalance | None:
        """The rebalance that goes on."""
        return self.rebalances[-1] if self.rebalances and self.rebalances[-1].ended is None else None

    def begin(
        self,
        turn: Sequence[JournalEntry],
        causes: list[Cause],
        group_type: str,
        members_before: int | None,
        *,
        was_empty: bool,
    ) -> None:
        """Begin a rebalance with the last entry of a turn, which has the entries of that turn until then.

        ``members_before`` is the number of members before the turn, None if it is not known.
        """
        changes = [self._change(entry) for entry in turn]
        self.rebalances.append(
            Rebalance(
                began=turn[-1].timestamp,
                causes=causes,
                group_type=group_type,
                was_empty=was_empty,
                members_before=members_before,
                came=[change for change in changes if change is not None and change.reason is None],
                went=[change for change in changes if change is not None and change.reason is not None],
            )
        )

    def amend(self, **changes: object) -> None:
        """Set fields."""
        if self.open is not None:
            self.rebalances[-1] = msgspec.structs.replace(self.rebalances[-1], **changes)

    def end(self, time: int, *, is_interrupted: bool = False) -> None:
        """End it at a time, in ms."""
        last = self.open
        if last is not None:
            before = last.members_before
            after = None if before is None else before + len(last.came) - len(last.went)
            self.amend(ended=time, is_interrupted=is_interrupted, members_after=after)

    def note_change(self, entry: JournalEntry) -> None:
        """Note a member that came or went."""
        last, change = self.open, self._change(entry)
        if last is not None and change is not None:
            field = "came" if change.reason is None else "went"
            self.amend(**{field: [*getattr(last, field), change]})

    def add_waits(self, waits: Iterable[Wait]) -> None:
        """Add members for which the group has waited."""
        added, last = list(waits), self.open
        if last is not None and added:
            self.amend(waited_for=[*last.waited_for, *added])

    def move(self, before: Owners, after: Owners, members: int) -> None:
        """Note who owned what before and who owns what after it, of so many members."""
        moves = moves_between(before, after, members) if before else None
        self.amend(moves=moves, shares=shares_between(before, after, self._roster.name))

    def pop_ended(self) -> list[Rebalance]:
        """Remove the rebalances that have ended, and return them."""
        kept = 0 if self.open is None else 1
        ended = self.rebalances[: len(self.rebalances) - kept]
        del self.rebalances[: len(ended)]
        return ended

    def _change(self, entry: JournalEntry) -> MemberChange | None:
        record, name = entry.record, self._roster.name
        match record:
            case MemberAdded(member_id=member_id) | ConsumerMemberChanged(member_id=member_id):
                # A member that stays is told of again when the group changes its type.
                if member_id in self._roster.members:
                    return None
                return MemberChange(member_id, name(member_id), entry.timestamp)
            case MemberRemoved(member_id=member_id, reason=reason):
                return MemberChange(member_id, name(member_id), entry.timestamp, reason)
            case _:
                return None
