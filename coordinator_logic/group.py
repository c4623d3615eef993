"""A group and its members: data, and queries on it. What only a consumer group (KIP-848) has is in its ``consumer``.

A group has two kinds of fields. State, generation, protocol, leader, members, assignments and offsets change only by a
record (:mod:`coordinator_logic.records`). Parked requests, handed-out member ids, timers and the times of
:mod:`coordinator_logic.timing.sessions` are the group's working memory: the coordinator changes them directly,
snapshots keep them, the journal does not.

The structs are ``array_like``: a snapshot holds no field names. New fields may only be appended, with a default.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import Enum
from functools import cached_property

import msgspec

from coordinator_logic.committed_offsets import CommittedOffset, Offsets
from coordinator_logic.events import ReplyAddress
from coordinator_logic.groups.classic.member_index import MemberIndex
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.indexes.pending_offsets import PendingOffsets
from coordinator_logic.messages import Protocol
from coordinator_logic.states import CAN_REBALANCE, State

CONSUMER_PROTOCOL_TYPE = "consumer"
"""The protocol type whose metadata the coordinator can read; the metadata of all others is opaque bytes."""

CLASSIC_TYPE, CONSUMER_TYPE = "classic", "consumer"


class TimerKind(Enum):
    """The purpose of a timer; :mod:`coordinator_logic.timing.timers` says what each does when it fires."""

    HEARTBEAT = "heartbeat"
    INITIAL_JOIN = "initial-join"
    JOIN = "join"
    SYNC = "sync"
    EXPIRY = "expiry"
    REVOCATION = "revocation"
    MEMBER_JOIN = "member-join"
    MEMBER_SYNC = "member-sync"

    @property
    def expels(self) -> bool:
        """Whether it can remove a member from the group."""
        # By identity: this runs for every timer at every step, and hashing an Enum is slow.
        return self is not TimerKind.INITIAL_JOIN and self is not TimerKind.EXPIRY

    @property
    def has_allowance(self) -> bool:
        """Whether it fires ``expiry.allowance.ms`` late when no request follows.

        It does if a request that was appended before the deadline could be read too late to prevent it.
        """
        return self is not TimerKind.INITIAL_JOIN


class Timer(msgspec.Struct, frozen=True, array_like=True):
    """A deadline: ``timeout_ms`` after ``armed_at`` (ms since the epoch).

    ``member_id`` is the owner of the session (heartbeat) or the member of a consumer group that must do something,
    ``generation`` the generation that must sync (sync) or the epoch that the member must leave (revocation),
    ``remaining_ms`` how much the initial delay may still be extended (initial join).
    """

    kind: TimerKind
    armed_at: int
    timeout_ms: int
    member_id: str = ""
    generation: int = 0
    remaining_ms: int = 0

    def deadline(self, started_at: int) -> int:
        """The time at which it is due, given the coordinator's last start (both ms since the epoch).

        A start gives every member a full timeout, as when a broker loads a group: no heartbeat could reach the
        coordinator while it was down.
        """
        armed_at = self.armed_at
        if armed_at < started_at and self.kind.expels:
            armed_at = started_at
        return armed_at + self.timeout_ms


class MemberProtocol(msgspec.Struct, frozen=True, array_like=True):
    """A protocol that a member supports, with the member's metadata for it."""

    name: str
    metadata: bytes


class Member(msgspec.Struct, array_like=True):
    """A member of a classic group. Its protocols are in order of preference."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: list[MemberProtocol]
    assignment: bytes = b""
    is_new: bool = True
    parked_join: ReplyAddress | None = None
    parked_sync: ReplyAddress | None = None

    @property
    def is_static(self) -> bool:
        """Whether it has an instance id (KIP-345), and so keeps its place when its process restarts."""
        return self.group_instance_id is not None

    @property
    def is_exempt_from_expiry(self) -> bool:
        """Whether its session cannot expire, because it waits for an answer of the coordinator.

        A new member is not exempt: if its first join takes longer than ``NEW_MEMBER_JOIN_TIMEOUT_MS``, its client
        has probably gone.
        """
        return not self.is_new and (self.parked_join is not None or self.parked_sync is not None)

    def metadata_for(self, protocol_name: str | None) -> bytes:
        """Its metadata for a protocol; empty if it does not support the protocol."""
        return next((p.metadata for p in self.protocols if p.name == protocol_name), b"")

    def lists_same_protocols(self, protocols: Sequence[Protocol]) -> bool:
        """Whether these are its protocols: same names, same metadata, same order."""
        return [(p.name, p.metadata) for p in self.protocols] == [(p.name, p.metadata) for p in protocols]


class OpenTransaction(msgspec.Struct, array_like=True):
    """The pending offsets of a producer's open transaction; none are left if their topics were deleted."""

    producer_epoch: int
    offsets: Offsets = {}


class Group(msgspec.Struct, array_like=True, dict=True):
    """A group: a classic one unless it has a ``consumer``.

    Then ``members`` is empty, ``generation`` is the group epoch, and ``state`` follows from the ``consumer``.

    ``incarnation`` is the place in the log of the request that created it. A group that is deleted and created again
    counts its records from 1; the incarnation tells the two apart. ``clock`` is the latest time that the group has
    seen; it never goes back. ``subscribed_topics`` are the sorted topics of this generation's members; None if unknown:
    for another protocol type, or metadata that cannot be parsed. ``open_transactions`` are by producer id.
    ``stored_offset_count`` is the number of offsets in a snapshot, and None elsewhere. ``join_answered_at`` is the
    time of the last batch if it answered a JoinGroup, else 0. No session counts from before ``sessions_from``.
    ``checked_until`` is the append time of the newest deadline check, ``next_check_at`` the batch time from which the
    group may ask for one again; both are 0 without one (:mod:`coordinator_logic.timing.deadline_checks`).
    ``append_distance`` is that of the newest request (:mod:`coordinator_logic.timing.clocks`). In a group that was
    rebuilt from its journal, ``applied_until`` are the offsets after the last requests that the journal names, by
    partition of the requests: requests before them are read again, and not applied again. ``configs`` are the
    group's own values (:mod:`coordinator_logic.groups.consumer.group_config`), by name.

    ``pending_joins`` (handed-out member ids that are not used yet) and ``pending_syncs`` (members that have not synced)
    are ordered sets of member ids: the keys of a dict.
    """

    group_id: str
    incarnation: str
    state: State = State.EMPTY
    previous_state: State = State.DEAD
    state_timestamp: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, Member] = {}
    offsets: Offsets = {}
    sequence: int = 0
    clock: int = 0
    pending_joins: dict[str, None] = {}
    pending_syncs: dict[str, None] = {}
    new_member_added: bool = False
    timers: dict[str, Timer] = {}
    subscribed_topics: list[str] | None = None
    open_transactions: dict[int, OpenTransaction] = {}
    stored_offset_count: int | None = None
    join_answered_at: int = 0
    sessions_from: int = 0
    checked_until: int = 0
    next_check_at: int = 0
    append_distance: int = 0
    applied_until: dict[int, int] = {}
    consumer: ConsumerGroup | None = None
    configs: dict[str, int] = {}

    @property
    def group_type(self) -> str:
        """Kafka's name of the group's type."""
        return CLASSIC_TYPE if self.consumer is None else CONSUMER_TYPE

    @property
    def member_count(self) -> int:
        """The number of members, whichever protocol they speak."""
        return len(self.members) if self.consumer is None else len(self.consumer.members)

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance can begin in the group's state."""
        return self.state in CAN_REBALANCE

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of the members' rebalance timeouts, 0 without members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @cached_property
    def member_index(self) -> MemberIndex:
        """Counts and look-ups over the members; not a field, so snapshots do not hold it."""
        return MemberIndex(self.members.values(), self.pending_joins)

    def add_member(self, member: Member) -> None:
        """Add a member."""
        self.member_index.add(member)
        self.members[member.member_id] = member

    def remove_member(self, member_id: str) -> Member:
        """Remove a member and return it. Raises ``KeyError`` if there is none."""
        index = self.member_index
        member = self.members.pop(member_id)
        index.remove(member)
        return member

    def hand_out_member_id(self, member_id: str) -> None:
        """Add a member id that its client has yet to use."""
        self.member_index.hand_out(member_id)
        self.pending_joins[member_id] = None

    def take_back_member_id(self, member_id: str) -> None:
        """Remove a handed-out member id; ignores one that was not handed out, or that is used."""
        index = self.member_index
        if member_id in self.pending_joins:
            del self.pending_joins[member_id]
            index.take_back(member_id)

    @property
    def members_awaiting_join(self) -> int:
        """The number of members with a parked JoinGroup."""
        return self.member_index.awaiting_join

    @property
    def all_members_joined(self) -> bool:
        """Whether the JoinGroup of every member is parked, and no handed-out member id is unused."""
        return not self.pending_joins and self.members_awaiting_join == len(self.members)

    def member_of_instance(self, group_instance_id: str) -> Member | None:
        """The static member with an instance id, if there is one."""
        member_id = self.member_index.member_of_instance(group_instance_id)
        return None if member_id is None else self.members[member_id]

    def protocol_candidates(self) -> set[str]:
        """The protocols that every member supports."""
        return {protocol for protocol in self.member_index.protocols if self._is_candidate(protocol)}

    def _is_candidate(self, protocol: str) -> bool:
        return self.member_index.supporters(protocol) == len(self.members)

    def supports(self, protocol_type: str, protocols: Sequence[Protocol]) -> bool:
        """Whether a member with these protocols can join.

        An Empty group accepts any protocol type with at least one protocol. Any other group accepts its own type with
        at least one protocol that all members support; if its last member left during the rebalance, any protocol.
        """
        if self.state is State.EMPTY:
            return protocol_type != "" and bool(protocols)
        if self.protocol_type != protocol_type:
            return False
        if not self.members:
            return bool(protocols)
        return any(self._is_candidate(protocol.name) for protocol in protocols)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic; true for a classic group of consumers whose topics are unknown."""
        if self.consumer is not None:
            return topic in self.consumer.subscribed_topics
        topics = self.subscribed_topics
        if topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        place = bisect_left(topics, topic)
        return place < len(topics) and topics[place] == topic

    @property
    def offset_stores(self) -> list[Offsets]:
        """All its offsets: the committed ones, then the pending ones of each open transaction."""
        return [self.offsets, *(transaction.offsets for transaction in self.open_transactions.values())]

    @cached_property
    def pending_offsets(self) -> PendingOffsets:
        """The partitions with an offset in an open transaction; not a field, so snapshots do not hold it."""
        return PendingOffsets(self.open_transactions)

    def has_pending_offset(self, topic: str, partition: int) -> bool:
        """Whether an open transaction has an offset of the partition."""
        return (topic, partition) in self.pending_offsets

    def committed_offsets(self) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Yield every committed offset as (topic, partition, offset)."""
        for topic, partitions in self.offsets.items():
            for partition, committed in partitions.items():
                yield topic, partition, committed
