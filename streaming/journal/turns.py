"""Whether the journal has all entries of a turn: of a request or a fired timer that a group has handled."""

from collections.abc import Sequence

from msgspec import UNSET

from coordinator_logic.group import Group
from coordinator_logic.groups.conversions.older_journals import is_reset, seems_cut
from coordinator_logic.records import JournalEntry, OffsetsCommitted


def ends_turn(entry: JournalEntry) -> bool:
    """Whether an entry is certainly the last one of its turn. In any release, a commit is, unless it is a reset's."""
    recorded = entry.ends_turn
    if recorded is not UNSET:
        return recorded is True
    return type(entry.record) is OffsetsCommitted and not is_reset(entry)


def is_cut(turn: Sequence[JournalEntry], group: Group | None) -> bool:
    """Whether the coordinator had further entries to write in a turn with which a group's entries end.

    ``group`` is as before the turn.
    """
    if not turn:
        return False
    recorded = turn[-1].ends_turn
    return seems_cut(turn, group) if recorded is UNSET else not recorded
