"""What can change in a group, as typed records, and the one place that applies them.

A handler decides and returns records; :func:`apply` is the only code that changes a group's state, generation,
protocol, leader, members, assignments and offsets. It decides nothing. So folding a group's journal over nothing
gives exactly those fields, and the journal cannot lie about them.
"""

import msgspec

from coordinator_logic.group import CommittedOffset, Group, Member, MemberProtocol
from coordinator_logic.messages import Message, Protocol
from coordinator_logic.states import State, check_transition


class GroupCreated(Message, frozen=True, tag_field="type"):
    """The group exists from here on: Empty, generation 0."""


class GroupDeleted(Message, frozen=True, tag_field="type"):
    """The group is gone, and its offsets with it."""

    reason: str


class StateChanged(Message, frozen=True, tag_field="type"):
    """A transition. On the way into PreparingRebalance ``reason`` says why the group rebalances."""

    from_state: str
    to_state: str
    reason: str


class MemberAdded(Message, frozen=True, tag_field="type"):
    """A member joined for the first time. The first member of a group decides the protocol type."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: list[Protocol]


class MemberUpdated(Message, frozen=True, tag_field="type"):
    """A member rejoined with these protocols and timeouts."""

    member_id: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: list[Protocol]


class StaticMemberReplaced(Message, frozen=True, tag_field="type"):
    """A static member came back under a new member id and has the old one's place, assignment included."""

    group_instance_id: str
    old_member_id: str
    new_member_id: str


class MemberRemoved(Message, frozen=True, tag_field="type"):
    """A member left, was expelled or was refused its place."""

    member_id: str
    group_instance_id: str | None
    reason: str


class LeaderElected(Message, frozen=True, tag_field="type"):
    """The group's leader from here on; null when no member is left."""

    member_id: str | None


class GenerationStarted(Message, frozen=True, tag_field="type"):
    """A new generation, with the protocol its members voted for; null when no member is left."""

    generation: int
    protocol_name: str | None


class AssignmentChanged(Message, frozen=True, tag_field="type"):
    """Every member's assignment; a member that is not named has none."""

    assignments: dict[str, bytes]


class OffsetCommitted(Message, frozen=True):
    """One partition's new position. Times are ms since the epoch."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None


class OffsetsCommitted(Message, frozen=True, tag_field="type"):
    """The positions that one request committed."""

    offsets: list[OffsetCommitted]


Record = (
    GroupCreated
    | GroupDeleted
    | StateChanged
    | MemberAdded
    | MemberUpdated
    | StaticMemberReplaced
    | MemberRemoved
    | LeaderElected
    | GenerationStarted
    | AssignmentChanged
    | OffsetsCommitted
)


class RequestCause(Message, frozen=True, tag_field="type", tag="Request"):
    """The request that caused a record: who sent it, and where in ``group-requests`` it stands."""

    api: str
    version: int
    member_id: str
    client_id: str
    client_host: str
    correlation_id: str
    partition: int
    offset: int


class TimerCause(Message, frozen=True, tag_field="type", tag="Timer"):
    """The timer that caused a record, e.g. ``heartbeat`` of a member that fell silent; ``deadline`` in ms."""

    timer: str
    member_id: str
    deadline: int


Cause = RequestCause | TimerCause


class JournalEntry(Message, frozen=True):
    """The value of a record of ``group-journal``: one change with its cause.

    Within an incarnation of a group ``sequence`` counts 1, 2, 3, ...; readers drop what repeats
    (group id, incarnation, sequence). ``timestamp`` is the group's time of the change, ms since the epoch.
    """

    group_id: str
    incarnation: str
    sequence: int
    timestamp: int
    record: Record
    cause: Cause


class GroupDirectoryEntry(Message, frozen=True):
    """The value of a record of ``group-directory``: a group in one line, as ListGroups shows it."""

    group_id: str
    group_state: str
    group_type: str
    protocol_type: str
    generation: int
    members: int


def directory_entry(group: Group) -> GroupDirectoryEntry:
    """The group's line in the directory."""
    return GroupDirectoryEntry(
        group_id=group.group_id,
        group_state=group.state.value,
        group_type="classic",
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        members=len(group.members),
    )


def _stored(protocols: list[Protocol]) -> list[MemberProtocol]:
    return [MemberProtocol(protocol.name, protocol.metadata) for protocol in protocols]


def _add_member(group: Group, record: MemberAdded) -> None:
    if not group.members:
        group.protocol_type = record.protocol_type
    group.members[record.member_id] = Member(
        record.member_id,
        record.group_instance_id,
        record.client_id,
        record.client_host,
        record.rebalance_timeout_ms,
        record.session_timeout_ms,
        _stored(record.protocols),
    )


def _update_member(group: Group, record: MemberUpdated) -> None:
    member = group.members[record.member_id]
    member.rebalance_timeout_ms = record.rebalance_timeout_ms
    member.session_timeout_ms = record.session_timeout_ms
    member.protocols = _stored(record.protocols)


def _replace_static_member(group: Group, record: StaticMemberReplaced) -> None:
    old = group.members.pop(record.old_member_id)
    group.members[record.new_member_id] = msgspec.structs.replace(
        old, member_id=record.new_member_id, is_new=False, parked_join=None, parked_sync=None
    )


def _commit_offsets(group: Group, record: OffsetsCommitted) -> None:
    for entry in record.offsets:
        group.offsets.setdefault(entry.topic, {})[entry.partition] = CommittedOffset(
            entry.offset, entry.leader_epoch, entry.metadata, entry.commit_timestamp, entry.expire_timestamp
        )


def _change_state(group: Group, target: State, timestamp: int) -> None:
    check_transition(group.group_id, group.state, target)
    group.previous_state = group.state
    group.state = target
    group.state_timestamp = timestamp


def apply(group: Group, record: Record, timestamp: int) -> None:
    """Change the group as the record says; ``timestamp`` is the entry's, ms since the epoch.

    Raises :class:`~coordinator_logic.states.IllegalTransition` for a transition that is not in the table and
    ``KeyError`` for a member that does not exist: both are defects of whoever made the record.
    """
    match record:
        case OffsetsCommitted():
            _commit_offsets(group, record)
        case StateChanged():
            _change_state(group, State(record.to_state), timestamp)
        case MemberAdded():
            _add_member(group, record)
        case MemberUpdated():
            _update_member(group, record)
        case StaticMemberReplaced():
            _replace_static_member(group, record)
        case MemberRemoved():
            del group.members[record.member_id]
        case LeaderElected():
            group.leader = record.member_id
        case GenerationStarted():
            group.generation = record.generation
            group.protocol_name = record.protocol_name
        case AssignmentChanged():
            for member in group.members.values():
                member.assignment = record.assignments.get(member.member_id, b"")
        case GroupCreated():
            group.state_timestamp = timestamp
        case GroupDeleted():
            group.offsets.clear()
            _change_state(group, State.DEAD, timestamp)


def fold(entries: list[JournalEntry]) -> Group | None:
    """The group that a journal describes: all that records change, and none of the working memory.

    ``entries`` are one group's, in order; what repeats is skipped. Returns None when the last thing that
    happened to the group was its deletion, or when nothing did.
    """
    group: Group | None = None
    for entry in entries:
        if isinstance(entry.record, GroupCreated) and (group is None or group.incarnation != entry.incarnation):
            group = Group(entry.group_id, entry.incarnation)
        if group is None or entry.incarnation != group.incarnation or entry.sequence <= group.sequence:
            continue
        apply(group, entry.record, entry.timestamp)
        group.sequence = entry.sequence
    return None if group is None or group.state is State.DEAD else group
