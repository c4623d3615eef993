"""Journals of releases before logic version 1, in which no entry says whether it ends its turn."""

from collections.abc import Sequence

from coordinator_logic.apis import RESET_OFFSETS
from coordinator_logic.group import Group
from coordinator_logic.group.record import Record
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.records import (
    AssignmentChanged,
    GenerationStarted,
    LeaderElected,
    MemberAdded,
    MemberUpdated,
    StateChanged,
)
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.records import ConsumerGroupFormed, ConsumerMemberChanged
from coordinator_logic.records import (
    GroupCreated,
    JournalEntry,
    MemberRemoved,
    OffsetsCommitted,
    OffsetsDeleted,
    RequestCause,
    StaticMemberReplaced,
)
from coordinator_logic.states import State


def seems_cut(turn: Sequence[JournalEntry], group: Group | None) -> bool:
    """Whether the coordinator certainly had further entries to write in a turn with which a group's entries end.

    ``group`` is as before the turn. A turn that only looks complete is missing a rebalance at most, which the members'
    next requests begin again.
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
            return is_reset(turn[-1])
        case OffsetsCommitted():
            return is_reset(turn[-1]) and before != State.EMPTY.value
        case _:
            return False


def is_reset(entry: JournalEntry) -> bool:
    """Whether ResetOffsets caused the turn. It commits after it has deleted, and ends with the members' generation."""
    cause = entry.cause
    return isinstance(cause, RequestCause) and cause.api == RESET_OFFSETS.name


def _changes_subscription(record: ConsumerMemberChanged, group: Group | None) -> bool:
    """Whether a new group epoch follows the record, unless the topics are those of a pattern."""
    part = None if group is None else group.part
    known = part.members.get(record.member_id) if isinstance(part, ConsumerGroup) else None
    return known is None or list(known.subscribed_topic_names) != record.subscribed_topic_names


def _leader_after(records: list[Record], group: Group | None) -> str | None:
    elected = [record.member_id for record in records if isinstance(record, LeaderElected)]
    if elected:
        return elected[-1]
    return group.part.leader if group is not None and isinstance(group.part, ClassicGroup) else None
