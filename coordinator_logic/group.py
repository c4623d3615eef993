"""A group and its members: data and named questions about it, nothing else.

Two kinds of fields stand side by side. State, generation, protocol, leader, members, assignments and offsets
change only by a record (:mod:`coordinator_logic.records`). Parked requests, handed-out member ids and timers are
the group's working memory: handlers change them directly, snapshots keep them, the journal does not.

The structs are ``array_like``: a snapshot holds no field names. New fields may only be appended, with a default.
"""

from collections.abc import Iterator, Sequence
from enum import Enum

import msgspec

from coordinator_logic.events import ReplyAddress
from coordinator_logic.messages import Protocol
from coordinator_logic.offsets import CommittedOffset, Offsets
from coordinator_logic.states import CAN_REBALANCE, State

CONSUMER_PROTOCOL_TYPE = "consumer"
"""The protocol type whose metadata the coordinator can read; of all others it only keeps the bytes."""


class TimerKind(Enum):
    """What a timer is for; see :mod:`coordinator_logic.timers` for what each does when it fires."""

    HEARTBEAT = "heartbeat"
    INITIAL_JOIN = "initial-join"
    JOIN = "join"
    SYNC = "sync"
    EXPIRY = "expiry"

    @property
    def expels(self) -> bool:
        """Whether a member may lose its place when it fires."""
        # By identity, since it is asked of every timer at every step, and the hash of an Enum is slow.
        return self is not TimerKind.INITIAL_JOIN and self is not TimerKind.EXPIRY

    @property
    def takes_something_away(self) -> bool:
        """Whether a request that was appended before it fires, but is read after it, would come too late."""
        return self is not TimerKind.INITIAL_JOIN


class Timer(msgspec.Struct, frozen=True, array_like=True):
    """A deadline: ``timeout_ms`` after ``armed_at`` (ms since the epoch).

    ``member_id`` is whose session it is (heartbeat), ``generation`` which generation must sync (sync),
    ``remaining_ms`` how much longer the initial delay may still grow (initial join).
    """

    kind: TimerKind
    armed_at: int
    timeout_ms: int
    member_id: str = ""
    generation: int = 0
    remaining_ms: int = 0

    def deadline(self, started_at: int) -> int:
        """When it is due, given when the coordinator was last started.

        After a start every member has a full timeout again, as when a broker loads a group: while the
        coordinator was away nobody could be heard, so silence proves nothing.
        """
        armed_at = self.armed_at
        if armed_at < started_at and self.kind.expels:
            armed_at = started_at
        return armed_at + self.timeout_ms


class MemberProtocol(msgspec.Struct, frozen=True, array_like=True):
    """One protocol of a member's ordered list, as the group stores it."""

    name: str
    metadata: bytes


class Member(msgspec.Struct, array_like=True):
    """A member of a classic group. Its protocols are in the order of its preference."""

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
        """Whether it has an instance id (KIP-345), and so outlives its process."""
        return self.group_instance_id is not None

    @property
    def is_excused(self) -> bool:
        """Whether silence is forgiven: it waits for an answer of ours.

        A new member is not: if its first join takes longer than the new member limit, the client is taken
        for gone.
        """
        return not self.is_new and (self.parked_join is not None or self.parked_sync is not None)

    def metadata_for(self, protocol_name: str | None) -> bytes:
        """The metadata it gave for a protocol; empty when it does not list it."""
        return next((p.metadata for p in self.protocols if p.name == protocol_name), b"")

    def lists_same_protocols(self, protocols: Sequence[Protocol]) -> bool:
        """Whether the request repeats what is known: same names, same bytes, same order."""
        return [(p.name, p.metadata) for p in self.protocols] == [(p.name, p.metadata) for p in protocols]


class OpenTransaction(msgspec.Struct, array_like=True):
    """What a producer has committed in a transaction that has not ended; it may have been deleted since."""

    producer_epoch: int
    offsets: Offsets = {}


class Group(msgspec.Struct, array_like=True):
    """A classic consumer group.

    ``incarnation`` is the place in the log of the request that created it: a group that is deleted and created
    anew counts its records from 1 again, and the incarnation keeps the two apart. ``clock`` is the latest time
    the group has seen; it never goes back. ``subscribed_topics`` are those of the members of this generation, None
    where nobody can tell: of other protocol types, or with metadata that cannot be read. ``open_transactions`` are
    by producer id. ``stored_offset_count`` is for snapshots, which say how many offsets they hold, and None elsewhere.
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
    pending_joins: list[str] = []
    pending_syncs: list[str] = []
    new_member_added: bool = False
    timers: dict[str, Timer] = {}
    subscribed_topics: list[str] | None = None
    open_transactions: dict[int, OpenTransaction] = {}
    stored_offset_count: int | None = None

    @property
    def can_rebalance(self) -> bool:
        """Whether a rebalance can begin now."""
        return self.state in CAN_REBALANCE

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of the members' rebalance timeouts, 0 without members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def members_awaiting_join(self) -> int:
        """How many members hold a parked JoinGroup."""
        return sum(member.parked_join is not None for member in self.members.values())

    @property
    def all_members_joined(self) -> bool:
        """Whether nobody is waited for: every member's join is parked and no handed-out id is still unused."""
        return not self.pending_joins and self.members_awaiting_join == len(self.members)

    def member_of_instance(self, group_instance_id: str) -> Member | None:
        """The static member that holds an instance id."""
        return next((m for m in self.members.values() if m.group_instance_id == group_instance_id), None)

    def protocol_candidates(self) -> set[str]:
        """The protocols that every member lists."""
        listed = [{p.name for p in member.protocols} for member in self.members.values()]
        return set.intersection(*listed) if listed else set()

    def supports(self, protocol_type: str, protocols: Sequence[Protocol]) -> bool:
        """Whether a member with these protocols can join.

        An Empty group takes any type with at least one protocol; any other group its own type with at least
        one protocol that all members list. While it has no members (its last one left during a rebalance),
        every protocol is one that all members list.
        """
        if self.state is State.EMPTY:
            return protocol_type != "" and bool(protocols)
        if self.protocol_type != protocol_type:
            return False
        if not self.members:
            return bool(protocols)
        candidates = self.protocol_candidates()
        return any(protocol.name in candidates for protocol in protocols)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether its members read the topic; where a consumer group cannot tell, whether they might."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in self.subscribed_topics

    @property
    def offset_stores(self) -> list[Offsets]:
        """Every place where it keeps positions: what is committed, and what each open transaction holds."""
        return [self.offsets, *(transaction.offsets for transaction in self.open_transactions.values())]

    def has_pending_offset(self, topic: str, partition: int) -> bool:
        """Whether an open transaction has a position for the partition."""
        return any(partition in open_.offsets.get(topic, ()) for open_ in self.open_transactions.values())

    def committed_offsets(self) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Every committed offset as (topic, partition, offset)."""
        for topic, partitions in self.offsets.items():
            for partition, committed in partitions.items():
                yield topic, partition, committed
