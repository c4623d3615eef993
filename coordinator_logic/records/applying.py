"""The only code that applies records to a group."""

import msgspec

from coordinator_logic.committed_offsets import CommittedOffset, Offsets
from coordinator_logic.embedded_protocols import ConsumerProtocolError, subscribed_topics
from coordinator_logic.group import CONSUMER_PROTOCOL_TYPE, Group, Member, MemberProtocol, OpenTransaction
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.records import (
    ClassicGroupFormed,
    ConsumerGroupFormed,
    ConsumerGroupRecord,
    apply_to_consumer_group,
    remove_member,
    replace_static_member,
)
from coordinator_logic.messages import Protocol
from coordinator_logic.records.definitions import (
    AssignmentChanged,
    GenerationStarted,
    GroupConfigChanged,
    GroupCreated,
    GroupDeleted,
    JournalEntry,
    LeaderElected,
    MemberAdded,
    MemberRemoved,
    MembershipRecord,
    MemberUpdated,
    OffsetCommitted,
    OffsetRecord,
    OffsetsCommitted,
    OffsetsDeleted,
    QuarantinedStateDropped,
    Record,
    StateChanged,
    StaticMemberReplaced,
    TransactionalOffsetsCommitted,
    TransactionEnded,
)
from coordinator_logic.states import IllegalState, State, check_transition


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
    elif isinstance(record, ConsumerGroupFormed):
        _form_consumer_group(group, record, timestamp)
    elif group.consumer is not None and isinstance(record, ConsumerGroupRecord | MemberRemoved | StaticMemberReplaced):
        _apply_to_consumer_group(group.consumer, record, timestamp)
        _follow_consumer_group(group, group.consumer, timestamp)
    else:
        assert not isinstance(record, ConsumerGroupRecord), f"group {group.group_id!r} is not a consumer group"
        _apply_to_membership(group, record, timestamp)


def _form_consumer_group(group: Group, record: ConsumerGroupFormed, timestamp: int) -> None:
    for member_id in list(group.members):
        group.remove_member(member_id)
    group.consumer = ConsumerGroup(epoch=record.epoch, target_epoch=record.epoch)
    group.protocol_type = CONSUMER_PROTOCOL_TYPE
    group.protocol_name = group.leader = group.subscribed_topics = None
    _follow_consumer_group(group, group.consumer, timestamp)


def _form_classic_group(group: Group, state: State, timestamp: int) -> None:
    group.consumer = group.protocol_type = None
    group.generation = 0
    if state is not group.state:
        group.previous_state, group.state, group.state_timestamp = group.state, state, timestamp


def _apply_to_consumer_group(
    consumer: ConsumerGroup, record: ConsumerGroupRecord | MemberRemoved | StaticMemberReplaced, timestamp: int
) -> None:
    match record:
        case MemberRemoved():
            remove_member(consumer, record.member_id)
        case StaticMemberReplaced():
            replace_static_member(consumer, record.old_member_id, record.new_member_id)
        case _:
            apply_to_consumer_group(consumer, record, timestamp)


def _follow_consumer_group(group: Group, consumer: ConsumerGroup, timestamp: int) -> None:
    """Derive what a consumer group shows of itself as a classic group would."""
    group.generation = consumer.epoch
    state = consumer.state
    if state is not group.state:
        group.previous_state, group.state, group.state_timestamp = group.state, state, timestamp


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
        case ClassicGroupFormed():
            _form_classic_group(group, State(record.state), timestamp)
        case GroupCreated():
            group.state_timestamp = timestamp
        case GroupConfigChanged():
            group.configs = dict(record.configs)
        case GroupDeleted() | QuarantinedStateDropped():
            group.consumer = None
            group.configs = {}
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
