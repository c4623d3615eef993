"""Whether the journal has all entries of a turn: of a request or a fired timer that a group has handled."""

from collections.abc import Sequence

from msgspec import UNSET

from coordinator_logic.apis import RESET_OFFSETS
from coordinator_logic.group import Group
from coordinator_logic.records import (
    AssignmentChanged,
    ConsumerGroupFormed,
    ConsumerMemberChanged,
    GenerationStarted,
    GroupCreated,
    JournalEntry,
    LeaderElected,
    MemberAdded,
    MemberRemoved,
    MemberUpdated,
    OffsetsCommitted,
    OffsetsDeleted,
    Record,
    RequestCause,
    StateChanged,
    StaticMemberReplaced,
)
from coordinator_logic.states import State
from streaming.journal.group_types import members_of


def ends_turn(entry: JournalEntry) -> bool:
    """Whether an entry is certainly the last one of its turn. In any release, a commit is, unless it is a reset's."""
    recorded = entry.ends_turn
    if recorded is not UNSET:
        return recorded is True
    return type(entry.record) is OffsetsCommitted and not _is_reset(entry)


def is_cut(turn: Sequence[JournalEntry], group: Group | None) -> bool:
    """Whether the coordinator had further entries to write in a turn with which a group's entries end.

    ``group`` is as before the turn.
    """
    if not turn:
        return False
    recorded = turn[-1].ends_turn
    return _seems_cut(turn, group) if recorded is UNSET else not recorded


def _seems_cut(turn: Sequence[JournalEntry], group: Group | None) -> bool:
    """The same of the entries of an earlier release, which do not say so: whether the turn is certainly cut.

    A turn that only looks complete is missing a rebalance at most, which the members' next requests begin again.
    """
    records = [entry.record for entry in turn]
    changes = [record.to_state for record in records if isinstance(record, StateChanged)]
    before = State.EMPTY.value if group is None else group.state.value
    state = changes[-1] if changes else before
    is_replaced = any(isinstance(record, StaticMemberReplaced) for record in records)
    may_end = state == State.PREPARING_REBALANCE.value or (state == State.STABLE.value and is_replaced)
    match records[-1]:
        case GenerationStarted() | AssignmentChanged():
            return True
        case GroupCreated():
            # A JoinGroup that only hands out a member id creates the group.
            cause = turn[-1].cause
            return not (isinstance(cause, RequestCause) and cause.api == "JoinGroup")
        case MemberAdded():
            return not may_end or _leader_after(records, group) is None
        case MemberRemoved(member_id=gone) | StaticMemberReplaced(old_member_id=gone):
            return not may_end or _leader_after(records, group) == gone
        case ConsumerGroupFormed():
            return True
        case ConsumerMemberChanged() as changed:
            return _changes_subscription(changed, group)
        case MemberUpdated() | LeaderElected():
            return not may_end
        case OffsetsDeleted():
            return _is_reset(turn[-1])
        case OffsetsCommitted():
            return _is_reset(turn[-1]) and before != State.EMPTY.value
        case _:
            return False


def _is_reset(entry: JournalEntry) -> bool:
    """Whether ResetOffsets caused the turn. It commits after it has deleted, and ends with the members' generation."""
    cause = entry.cause
    return isinstance(cause, RequestCause) and cause.api == RESET_OFFSETS.name


def _changes_subscription(record: ConsumerMemberChanged, group: Group | None) -> bool:
    """Whether a new group epoch follows the record, unless the topics are those of a pattern."""
    known = None if group is None else members_of(group).subscription(group, record.member_id)
    return known is None or known != record.subscribed_topic_names


def _leader_after(records: list[Record], group: Group | None) -> str | None:
    elected = [record.member_id for record in records if isinstance(record, LeaderElected)]
    if elected:
        return elected[-1]
    return None if group is None else members_of(group).leader(group)
