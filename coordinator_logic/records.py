"""The records of what changes in a group, and the only code that applies them.

A handler decides and returns records; :func:`apply` decides nothing. It alone changes a group's state, generation,
protocol, leader, members, assignments and offsets. So folding a group's journal gives exactly those fields.
"""

import msgspec

from coordinator_logic.committed_offsets import CommittedOffset, Offsets, offset_count
from coordinator_logic.consumer_protocol import ConsumerProtocolError, subscribed_topics
from coordinator_logic.group import CONSUMER_PROTOCOL_TYPE, Group, Member, MemberProtocol, OpenTransaction
from coordinator_logic.messages import NO_GENERATION, Int32, Int64, Message, Protocol
from coordinator_logic.states import IllegalState, State, check_transition


class GroupCreated(Message, frozen=True, tag_field="type"):
    """The group was created: Empty, generation 0."""


class GroupDeleted(Message, frozen=True, tag_field="type"):
    """The group and its offsets were deleted."""

    reason: str


class QuarantinedStateDropped(Message, frozen=True, tag_field="type"):
    """The stored state of a quarantined group, of ``size`` bytes, was dropped: the group no longer exists.

    ``why`` says why it could not be read, ``reason`` why it was dropped.
    """

    why: str
    size: int
    reason: str


class StateChanged(Message, frozen=True, tag_field="type"):
    """The group changed its state. For PreparingRebalance, ``reason`` says why the group rebalances."""

    from_state: str
    to_state: str
    reason: str


class MemberAdded(Message, frozen=True, tag_field="type"):
    """A member joined for the first time. The first member of a group determines the protocol type."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: list[Protocol]


class MemberUpdated(Message, frozen=True, tag_field="type"):
    """A member rejoined with other protocols or timeouts."""

    member_id: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: list[Protocol]


class StaticMemberReplaced(Message, frozen=True, tag_field="type"):
    """A static member rejoined with a new member id and takes over the old one's place and assignment."""

    group_instance_id: str
    old_member_id: str
    new_member_id: str


class MemberRemoved(Message, frozen=True, tag_field="type"):
    """A member left, was expelled, or lost its place because the group is full."""

    member_id: str
    group_instance_id: str | None
    reason: str


class LeaderElected(Message, frozen=True, tag_field="type"):
    """The group has a new leader; null if no member is left."""

    member_id: str | None


class GenerationStarted(Message, frozen=True, tag_field="type"):
    """A generation began, with the protocol that its members voted for; null if no member is left."""

    generation: int
    protocol_name: str | None


class AssignmentChanged(Message, frozen=True, tag_field="type"):
    """The leader assigned; a member that is not listed has an empty assignment."""

    assignments: dict[str, bytes]


class OffsetCommitted(Message, frozen=True):
    """The new offset of one partition. Times are ms since the epoch."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None


class OffsetsCommitted(Message, frozen=True, tag_field="type"):
    """A request committed these offsets."""

    offsets: list[OffsetCommitted]


class TransactionalOffsetsCommitted(Message, frozen=True, tag_field="type"):
    """A request committed these offsets in a producer's transaction; they are pending until it ends."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    offsets: list[OffsetCommitted]


class TransactionEnded(Message, frozen=True, tag_field="type"):
    """A producer's transaction ended; its pending offsets are committed, or dropped if it was aborted."""

    producer_id: int
    producer_epoch: int
    committed: bool


class TopicPartitions(Message, frozen=True):
    """Partitions of a topic."""

    topic: str
    partitions: list[int]


class OffsetsDeleted(Message, frozen=True, tag_field="type"):
    """These offsets were deleted, committed and pending ones."""

    offsets: list[TopicPartitions]
    reason: str


EXPIRED = "expired"
"""The reason of :class:`OffsetsDeleted` and :class:`GroupDeleted` if no request caused them."""

MembershipRecord = (
    GroupCreated
    | GroupDeleted
    | QuarantinedStateDropped
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
    """The request that caused a record: its sender, and its place in ``group-requests``.

    ``principal`` is null if the sender was not authenticated. Client id, host and principal are only what the sender
    claims if ``claimed``; a gateway has signed the others, see :mod:`streaming.contract.identity`.
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
    claimed: bool = True


class TimerCause(Message, frozen=True, tag_field="type", tag="Timer"):
    """The timer that caused a record, e.g. ``heartbeat`` if a session expired; ``deadline`` is ms since the epoch."""

    timer: str
    member_id: str
    deadline: int


Cause = RequestCause | TimerCause


class JournalEntry(Message, frozen=True):
    """The value of a record of ``group-journal``: one change with its cause.

    ``sequence`` counts 1, 2, 3, ... within an incarnation of a group; readers drop entries that repeat
    (group id, incarnation, sequence). ``timestamp`` is the time of the change by the group's clock, ms since the epoch.
    ``job_epoch`` grows with every start of the query, of this job or another one: where two entries differ, that of the
    higher one holds.
    """

    group_id: str
    incarnation: str
    sequence: int
    timestamp: int
    record: Record
    cause: Cause
    job_epoch: int = 0


class GroupDirectoryEntry(Message, frozen=True):
    """The value of a record of ``group-directory``: the summary of a group from which ListGroups is answered."""

    group_id: str
    group_state: str
    group_type: str
    protocol_type: str
    generation: Int32
    members: Int32
    offsets: Int64 = 0


def directory_entry(group: Group) -> GroupDirectoryEntry:
    """Summarise a group for the directory."""
    return GroupDirectoryEntry(
        group_id=group.group_id,
        group_state=group.state.value,
        group_type="classic",
        protocol_type=group.protocol_type or "",
        generation=group.generation,
        members=len(group.members),
        offsets=offset_count(group.offsets),
    )


QUARANTINED = "Quarantined"
"""The state in the directory of a group whose stored state cannot be read. Only the directory has it."""


def quarantined_entry(group_id: str) -> GroupDirectoryEntry:
    """The directory's entry of a group whose stored state cannot be read."""
    return GroupDirectoryEntry(group_id, QUARANTINED, "classic", "", generation=NO_GENERATION, members=0)


def _member_protocols(protocols: list[Protocol]) -> list[MemberProtocol]:
    return [MemberProtocol(protocol.name, protocol.metadata) for protocol in protocols]


def _add_member(group: Group, record: MemberAdded) -> None:
    if record.member_id in group.members:
        raise IllegalState(f"group {group.group_id!r} already has a member {record.member_id!r}")
    if not group.members:
        group.protocol_type = record.protocol_type
    member = Member(
        record.member_id,
        record.group_instance_id,
        record.client_id,
        record.client_host,
        record.rebalance_timeout_ms,
        record.session_timeout_ms,
        _member_protocols(record.protocols),
    )
    group.add_member(member)


def _update_member(group: Group, record: MemberUpdated) -> None:
    member = group.members[record.member_id]
    member.rebalance_timeout_ms = record.rebalance_timeout_ms
    member.session_timeout_ms = record.session_timeout_ms
    group.member_index.change_protocols(member, _member_protocols(record.protocols))


def _replace_static_member(group: Group, record: StaticMemberReplaced) -> None:
    old = group.remove_member(record.old_member_id)
    group.add_member(
        msgspec.structs.replace(old, member_id=record.new_member_id, is_new=False, parked_join=None, parked_sync=None)
    )


def _start_generation(group: Group, record: GenerationStarted) -> None:
    group.generation = record.generation
    group.protocol_name = record.protocol_name
    group.subscribed_topics = _subscribed_topics(group)


def _subscribed_topics(group: Group) -> list[str] | None:
    """The topics that the members subscribe to; None if they cannot be known."""
    if group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    try:
        topics = [subscribed_topics(member.metadata_for(group.protocol_name)) for member in group.members.values()]
    except ConsumerProtocolError:
        return None
    return sorted(frozenset[str]().union(*topics))


def _store_offsets(offsets: Offsets, committed: list[OffsetCommitted], sequence: int) -> None:
    for entry in committed:
        offsets.setdefault(entry.topic, {})[entry.partition] = CommittedOffset(
            entry.offset, entry.leader_epoch, entry.metadata, entry.commit_timestamp, entry.expire_timestamp, sequence
        )


def _store_pending_offsets(group: Group, record: TransactionalOffsetsCommitted) -> None:
    pending = group.pending_offsets
    transaction = group.open_transactions.setdefault(record.producer_id, OpenTransaction(record.producer_epoch))
    transaction.producer_epoch = record.producer_epoch
    for entry in record.offsets:
        pending.add(record.producer_id, entry.topic, entry.partition)
    _store_offsets(transaction.offsets, record.offsets, group.sequence)


def _end_transaction(group: Group, record: TransactionEnded) -> None:
    index = group.pending_offsets
    transaction = group.open_transactions.pop(record.producer_id)
    for topic, partitions in transaction.offsets.items():
        index.remove(record.producer_id, topic, partitions)
    if not record.committed:
        return
    for topic, partitions in transaction.offsets.items():
        committed = group.offsets.setdefault(topic, {})
        for partition, pending in partitions.items():
            existing = committed.get(partition)
            # An offset that was committed outside of the transaction in the meantime is newer.
            if existing is None or pending.sequence > existing.sequence:
                committed[partition] = pending


def _delete_offsets(group: Group, record: OffsetsDeleted) -> None:
    pending = group.pending_offsets
    for entry in record.offsets:
        for partition in entry.partitions:
            _delete_offset(group.offsets, entry.topic, partition)
            for producer_id in pending.take(entry.topic, partition):
                _delete_offset(group.open_transactions[producer_id].offsets, entry.topic, partition)


def _delete_offset(offsets: Offsets, topic: str, partition: int) -> None:
    partitions = offsets.get(topic)
    if partitions is not None:
        partitions.pop(partition, None)
        if not partitions:
            del offsets[topic]


def _change_state(group: Group, target: State, timestamp: int) -> None:
    check_transition(group.group_id, group.state, target)
    group.previous_state = group.state
    group.state = target
    group.state_timestamp = timestamp


def apply(group: Group, record: Record, timestamp: int) -> None:
    """Apply a record to a group; ``timestamp`` is that of its journal entry, ms since the epoch.

    The group's ``sequence`` must already be the entry's. A record that does not fit the group is a defect of the
    handler that made it. Raises :class:`~coordinator_logic.states.IllegalTransition` for a transition that is not in
    the table, :class:`~coordinator_logic.states.IllegalState` for a member that already exists, and ``KeyError`` for
    a member or a transaction that does not exist.
    """
    if isinstance(record, OffsetRecord):
        _apply_to_offsets(group, record)
    else:
        _apply_to_membership(group, record, timestamp)


def _apply_to_offsets(group: Group, record: OffsetRecord) -> None:
    match record:
        case OffsetsCommitted():
            _store_offsets(group.offsets, record.offsets, group.sequence)
        case TransactionalOffsetsCommitted():
            _store_pending_offsets(group, record)
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
            group.remove_member(record.member_id)
        case LeaderElected():
            group.leader = record.member_id
        case GenerationStarted():
            _start_generation(group, record)
        case AssignmentChanged():
            for member in group.members.values():
                group.member_index.assign(member, record.assignments.get(member.member_id, b""))
        case GroupCreated():
            group.state_timestamp = timestamp
        case GroupDeleted() | QuarantinedStateDropped():
            group.offsets.clear()
            group.open_transactions.clear()
            group.__dict__.pop("pending_offsets", None)
            _change_state(group, State.DEAD, timestamp)


def fold(entries: list[JournalEntry]) -> Group | None:
    """Rebuild a group from its journal: every field that records change, without the working memory.

    ``entries`` are one group's, in order; repeated entries are skipped. Returns None if the group was deleted last,
    or if its creation is not among the entries.
    """
    group: Group | None = None
    for entry in entries:
        if isinstance(entry.record, GroupCreated) and (group is None or group.incarnation != entry.incarnation):
            group = Group(entry.group_id, entry.incarnation)
        elif isinstance(entry.record, QuarantinedStateDropped):
            group = Group(entry.group_id, entry.incarnation, state=State.DEAD)
        if group is None or entry.incarnation != group.incarnation or entry.sequence <= group.sequence:
            continue
        group.sequence = entry.sequence
        apply(group, entry.record, entry.timestamp)
    return None if group is None or group.state is State.DEAD else group
