"""A classic group and its members: data, and queries on it.

State, generation, protocol, leader, members and assignments change only by a record. Parked requests, handed-out member
ids and the members that have yet to sync are working memory.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import ClassVar

import msgspec

from coordinator_logic.embedded_protocols import CONSUMER_PROTOCOL_TYPE, ConsumerProtocolError, subscribed_topics
from coordinator_logic.errors import Error, Refusal
from coordinator_logic.group.part import Commit, GroupPart
from coordinator_logic.group.record import Record
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.groups.classic.member_index import MemberIndex
from coordinator_logic.groups.classic.records import (
    AssignmentChanged,
    ClassicGroupFormed,
    GenerationStarted,
    LeaderElected,
    MemberAdded,
    MemberUpdated,
    StateChanged,
)
from coordinator_logic.groups.classic.transitions import CAN_REBALANCE, check_transition
from coordinator_logic.messages import Protocol
from coordinator_logic.messages.groups import CLASSIC_TYPE
from coordinator_logic.records.definitions import MemberRemoved, StaticMemberReplaced
from coordinator_logic.states import IllegalState, State


class ClassicGroup(GroupPart, array_like=True, dict=True, tag=CLASSIC_TYPE):
    """The part of a classic group.

    ``subscribed_topics`` are the sorted topics of this generation's members; None if unknown: for another protocol
    type, or metadata that cannot be parsed. ``pending_joins`` (handed-out member ids that are not used yet) and
    ``pending_syncs`` (members that have not synced) are ordered sets of member ids: the keys of a dict.
    """

    type_name: ClassVar[str] = CLASSIC_TYPE
    records: ClassVar[tuple[type[Record], ...]] = (
        StateChanged,
        MemberAdded,
        MemberUpdated,
        LeaderElected,
        GenerationStarted,
        AssignmentChanged,
    )

    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, Member] = {}
    pending_joins: dict[str, None] = {}
    pending_syncs: dict[str, None] = {}
    new_member_added: bool = False
    subscribed_topics: list[str] | None = None

    # ---- members -------------------------------------------------------------------------------------------

    @property
    def member_ids(self) -> Collection[str]:
        return self.members

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

    def withdraw_member_id(self, member_id: str) -> None:
        """Remove a handed-out member id; ignores one that was not handed out, or that is used."""
        index = self.member_index
        if member_id in self.pending_joins:
            del self.pending_joins[member_id]
            index.withdraw(member_id)

    @property
    def all_members_joined(self) -> bool:
        """Whether the JoinGroup of every member is parked, and no handed-out member id is unused."""
        return not self.pending_joins and self.member_index.awaiting_join == len(self.members)

    def member_of_instance(self, group_instance_id: str) -> Member | None:
        """The static member with an instance id, if there is one."""
        member_id = self.member_index.member_of_instance.get(group_instance_id)
        return None if member_id is None else self.members[member_id]

    def protocol_candidates(self) -> set[str]:
        """The protocols that every member supports."""
        return {name for name, members in self.member_index.supporters.items() if members == len(self.members)}

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
        supporters = self.member_index.supporters
        return any(supporters.get(protocol.name) == len(self.members) for protocol in protocols)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic; true for consumers whose topics are unknown."""
        topics = self.subscribed_topics
        if topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL_TYPE
        place = bisect_left(topics, topic)
        return place < len(topics) and topics[place] == topic

    def forget_working_memory(self) -> None:
        """Forget parked requests and handed-out member ids: their clients ask again."""
        self.pending_joins = {}
        self.pending_syncs = {}
        for member in self.members.values():
            member.parked_join = member.parked_sync = None
            # Only its first request, which is forgotten, makes a member new.
            member.is_new = False
        # The index counts what was parked.
        self.__dict__.pop("member_index", None)

    # ---- records -------------------------------------------------------------------------------------------

    def end(self, group_id: str, timestamp: int) -> None:
        self.change_state(group_id, State.DEAD, timestamp)

    def change_state(self, group_id: str, target: State, timestamp: int) -> None:
        """Enter a state. Raises ``IllegalTransition`` if it may not follow the current one."""
        check_transition(group_id, self.state, target)
        self.previous_state, self.state, self.state_timestamp = self.state, target, timestamp

    def apply(self, group_id: str, record: Record, timestamp: int) -> None:
        """Apply a record. Raises ``IllegalState`` for a member that already exists, and as in the base class."""
        match record:
            case StateChanged():
                self.change_state(group_id, State(record.to_state), timestamp)
            case MemberAdded():
                self._apply_added(group_id, record)
            case MemberUpdated():
                self._apply_updated(record)
            case StaticMemberReplaced():
                self._apply_replaced(record)
            case MemberRemoved():
                self.remove_member(record.member_id)
            case LeaderElected():
                self.leader = record.member_id
            case GenerationStarted():
                self.generation, self.protocol_name = record.generation, record.protocol_name
                self.subscribed_topics = self._topics_of_members()
            case AssignmentChanged():
                for member in self.members.values():
                    self.member_index.assign(member, record.assignments.get(member.member_id, b""))
            case _:
                raise IllegalState(f"group {group_id!r} is a classic group, which has no {type(record).__name__}")

    def _apply_added(self, group_id: str, record: MemberAdded) -> None:
        if record.member_id in self.members:
            raise IllegalState(f"group {group_id!r} already has a member {record.member_id!r}")
        if not self.members:
            self.protocol_type = record.protocol_type
        self.add_member(
            Member(
                record.member_id,
                record.group_instance_id,
                record.client_id,
                record.client_host,
                record.rebalance_timeout_ms,
                record.session_timeout_ms,
                record.protocols,
            )
        )

    def _apply_updated(self, record: MemberUpdated) -> None:
        member = self.members[record.member_id]
        member.rebalance_timeout_ms = record.rebalance_timeout_ms
        member.session_timeout_ms = record.session_timeout_ms
        self.member_index.change_protocols(member, record.protocols)

    def _apply_replaced(self, record: StaticMemberReplaced) -> None:
        old = self.remove_member(record.old_member_id)
        new_id = record.new_member_id
        self.add_member(
            msgspec.structs.replace(old, member_id=new_id, is_new=False, parked_join=None, parked_sync=None)
        )

    def _topics_of_members(self) -> list[str] | None:
        """The topics that the members subscribe to; None if they cannot be known."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        try:
            topics = [subscribed_topics(member.metadata_for(self.protocol_name)) for member in self.members.values()]
        except ConsumerProtocolError:
            return None
        return sorted(frozenset[str]().union(*topics))

    # ---- checks --------------------------------------------------------------------------------------------

    def check_member(self, member_id: str, group_instance_id: str | None) -> Error:
        """Check that the sender is the member that it claims to be: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID (KIP-345).

        Fencing takes precedence over an unknown member id. An unknown instance id is an unknown member, even with a
        valid member id. A static member passes with its member id alone.
        """
        member = self.members.get(member_id)
        if member is not None and (group_instance_id is None or group_instance_id == member.group_instance_id):
            return Error.NONE
        if group_instance_id is not None:
            owner = self.member_of_instance(group_instance_id)
            if owner is None:
                return Error.UNKNOWN_MEMBER_ID
            if owner.member_id != member_id:
                return Error.FENCED_INSTANCE_ID
        return Error.UNKNOWN_MEMBER_ID

    def check_generation(self, member_id: str, group_instance_id: str | None, generation_id: int) -> Error:
        """Check that the sender is a member of the current generation; ILLEGAL_GENERATION for another generation."""
        error = self.check_member(member_id, group_instance_id)
        if error is Error.NONE and generation_id != self.generation:
            return Error.ILLEGAL_GENERATION
        return error

    # ---- requests that concern any group -------------------------------------------------------------------

    def check_commit(self, commit: Commit) -> Error:
        """Check that the sender may commit: as a member of the current generation, or while the group has no members.

        A commit without a member names no generation (a negative one). It is accepted only if the group is Empty, so
        that nothing but the group's own members moves the offsets of an active group.
        """
        if commit.epoch < 0 and self.state is State.EMPTY:
            return Error.NONE
        error = self.check_generation(commit.member_id, commit.group_instance_id, commit.epoch)
        is_transactional = commit.version is None
        if error is Error.NONE and not is_transactional and self.state is State.COMPLETING_REBALANCE:
            return Error.REBALANCE_IN_PROGRESS
        return error

    def check_offset_deletion(self) -> Error:
        """Check that the group is Empty, unless its members' subscriptions can be known."""
        has_known_topics = self.protocol_type == CONSUMER_PROTOCOL_TYPE
        return Error.NONE if has_known_topics or self.state is State.EMPTY else Error.NON_EMPTY_GROUP

    def check_reset(self) -> Refusal | None:
        """Refuse a reset in a rebalance, or while members have yet to sync."""
        if self.state not in (State.EMPTY, State.STABLE):
            return Refusal(Error.REBALANCE_IN_PROGRESS, f"The group is {self.state.value}.")
        if self.state is State.STABLE and self.pending_syncs:
            return Refusal(Error.REBALANCE_IN_PROGRESS, f"Members that have yet to sync: {len(self.pending_syncs)}.")
        return None

    @property
    def retention_base(self) -> int | None:
        """The start of the retention of offsets without a subscriber, ms since the epoch.

        - An Empty group that had members: since its last member left.
        - An Empty group that only stores offsets: since the commit of each offset (0).
        - A Stable group of consumers: since the commit of each offset.
        - Other states, other protocol types and unreadable subscriptions: nothing expires (None).
        """
        if self.state is State.EMPTY:
            return 0 if self.protocol_type is None else self.state_timestamp
        knows_topics = self.protocol_type == CONSUMER_PROTOCOL_TYPE and self.subscribed_topics is not None
        return 0 if self.state is State.STABLE and knows_topics else None


def form(before: GroupPart, record: ClassicGroupFormed, timestamp: int) -> ClassicGroup:
    """The classic group that a group of another type becomes: without members, and with generation 0."""
    formed = ClassicGroup(before.state, before.previous_state, before.state_timestamp)
    formed.enter(State(record.state), timestamp)
    return formed
