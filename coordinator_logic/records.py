"""What can change in a group, as typed records, and the one place that applies them.

A handler decides and returns records; :func:`apply` is the only code that changes a group's state, generation,
protocol, leader, members, assignments and offsets. It decides nothing. So folding a group's journal over nothing
gives exactly those fields, and the journal cannot lie about them.
"""

import msgspec

from coordinator_logic.consumer_protocol import ConsumerProtocolError, subscribed_topics
from coordinator_logic.group import CONSUMER_PROTOCOL_TYPE, Group, Member, MemberProtocol, OpenTransaction
from coordinator_logic.messages import Message, Protocol
from coordinator_logic.offsets import CommittedOffset, Offsets, offset_count
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


class TransactionalOffsetsCommitted(Message, frozen=True, tag_field="type"):
    """The positions that one request committed in a producer's transaction: pending until it ends."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    offsets: list[OffsetCommitted]


class TransactionEnded(Message, frozen=True, tag_field="type"):
    """A producer's transaction has ended; its pending positions are committed, or dropped."""

    producer_id: int
    producer_epoch: int
    committed: bool


class TopicPartitions(Message, frozen=True):
    """Some partitions of a topic."""

    topic: str
    partitions: list[int]


class OffsetsDeleted(Message, frozen=True, tag_field="type"):
    """Positions that are forgotten, committed and pending ones."""

    offsets: list[TopicPartitions]
    reason: str


EXPIRED = "expired"
"""The reason of :class:`OffsetsDeleted` and :class:`GroupDeleted` where nobody asked for it."""

MembershipRecord = (
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
)
OffsetRecord = OffsetsCommitted | TransactionalOffsetsCommitted | TransactionEnded | OffsetsDeleted

Record = MembershipRecord | OffsetRecord


class RequestCause(Message, frozen=True, tag_field="type", tag="Request"):
    """The request that caused a record: who sent it, and where in ``group-requests`` it stands.

    ``principal`` is null where nobody authenticated the sender.
    """

    api: str
    version: int
    member_id: str
    client_id: str
    client_host: str
    correlation_id: str
    partition: int
    offset: int
    principal: str | None = None


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
    offsets: int = 0


def directory_entry(group: Group) -> GroupDirectoryEntry:
    """The group's line in the directory."""
    return GroupDirectoryEntry(
        group_id=group.group_id,
        group_state=group.state.value,
        group_type="classic",
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        members=len(group.members),
        offsets=offset_count(group.offsets),
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


def _start_generation(group: Group, record: GenerationStarted) -> None:
    group.generation = record.generation
    group.protocol_name = record.protocol_name
    group.subscribed_topics = _subscribed_topics(group)


def _subscribed_topics(group: Group) -> list[str] | None:
    """What the members of the generation that begins read, as far as a coordinator can know."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    try:
        topics = [subscribed_topics(member.metadata_for(group.protocol_name)) for member in group.members.values()]
    except ConsumerProtocolError:
        return None
    return sorted(frozenset[str]().union(*topics))


def _keep_offsets(offsets: Offsets, committed: list[OffsetCommitted], sequence: int) -> None:
    for entry in committed:
        offsets.setdefault(entry.topic, {})[entry.partition] = CommittedOffset(
            entry.offset, entry.leader_epoch, entry.metadata, entry.commit_timestamp, entry.expire_timestamp, sequence
        )


def _keep_pending_offsets(group: Group, record: TransactionalOffsetsCommitted) -> None:
    transaction = group.open_transactions.setdefault(record.producer_id, OpenTransaction(record.producer_epoch))
    transaction.producer_epoch = record.producer_epoch
    _keep_offsets(transaction.offsets, record.offsets, group.sequence)


def _end_transaction(group: Group, record: TransactionEnded) -> None:
    transaction = group.open_transactions.pop(record.producer_id)
    if not record.committed:
        return
    for topic, partitions in transaction.offsets.items():
        committed = group.offsets.setdefault(topic, {})
        for partition, pending in partitions.items():
            existing = committed.get(partition)
            # What was committed without a transaction in the meantime is newer, and stays.
            if existing is None or pending.sequence > existing.sequence:
                committed[partition] = pending


def _delete_offsets(group: Group, record: OffsetsDeleted) -> None:
    for entry in record.offsets:
        for offsets in group.offset_stores:
            partitions = offsets.get(entry.topic, {})
            for partition in entry.partitions:
                partitions.pop(partition, None)
            if not partitions:
                offsets.pop(entry.topic, None)


def _change_state(group: Group, target: State, timestamp: int) -> None:
    check_transition(group.group_id, group.state, target)
    group.previous_state = group.state
    group.state = target
    group.state_timestamp = timestamp


def apply(group: Group, record: Record, timestamp: int) -> None:
    """Change the group as the record says; ``timestamp`` is the entry's, ms since the epoch.

    The group's ``sequence`` is that of the entry already. Raises
    :class:`~coordinator_logic.states.IllegalTransition` for a transition that is not in the table and ``KeyError`` for
    a member or a transaction that does not exist: both are defects of whoever made the record.
    """
    if isinstance(record, OffsetRecord):
        _apply_to_offsets(group, record)
    else:
        _apply_to_membership(group, record, timestamp)


def _apply_to_offsets(group: Group, record: OffsetRecord) -> None:
    match record:
        case OffsetsCommitted():
            _keep_offsets(group.offsets, record.offsets, group.sequence)
        case TransactionalOffsetsCommitted():
            _keep_pending_offsets(group, record)
        case TransactionEnded():
            _end_transaction(group, record)
        case OffsetsDeleted():
            _delete_offsets(group, record)


def _apply_to_membership(group: Group, record: MembershipRecord, timestamp: int) -> None:
    match record:
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
            _start_generation(group, record)
        case AssignmentChanged():
            for member in group.members.values():
                member.assignment = record.assignments.get(member.member_id, b"")
        case GroupCreated():
            group.state_timestamp = timestamp
        case GroupDeleted():
            group.offsets.clear()
            group.open_transactions.clear()
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
        group.sequence = entry.sequence
        apply(group, entry.record, entry.timestamp)
    return None if group is None or group.state is State.DEAD else group
