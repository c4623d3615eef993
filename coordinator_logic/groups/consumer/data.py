"""The part of a consumer group: data, and queries on it.

Everything changes only by a record (:mod:`coordinator_logic.groups.consumer.records`) except ``refresh_requested``,
``has_new_topics``, ``has_unresolved_patterns``, ``matched`` and ``matching_until``, which are working memory. The
structs are ``array_like``: a snapshot holds no field names. A new field takes a new format, see
:mod:`coordinator_logic.snapshot`.
"""

from bisect import bisect_left
from collections.abc import Collection, Container, Iterable, MutableMapping, Sequence, Set
from functools import cache, cached_property
from hashlib import blake2b
from typing import Any, ClassVar, Self

import msgspec

from coordinator_logic.apis import OFFSET_COMMIT_FIRST_VERSION_OF_CONSUMER_MEMBERS
from coordinator_logic.assignors.server import Partitions
from coordinator_logic.embedded_protocols import CONSUMER_PROTOCOL_TYPE
from coordinator_logic.errors import Error
from coordinator_logic.group.part import Commit, GroupPart
from coordinator_logic.group.record import Record
from coordinator_logic.groups.consumer.epochs import check_commit_epoch
from coordinator_logic.groups.consumer.members import (
    ClassicMembership,
    ConsumerMember,
    MemberOutline,
    MemberState,
    decode_member,
    decode_outline,
    encode_member,
    size_of_texts,
)
from coordinator_logic.groups.consumer.records import (
    FIRST_EPOCH,
    ConsumerGroupFormed,
    ConsumerMemberChanged,
    GroupEpochBumped,
    MemberAssignmentChanged,
    PatternsResolved,
    TargetAssignmentChanged,
    TopicsChanged,
)
from coordinator_logic.groups.consumer.target_assignment import Subscriptions, Topic
from coordinator_logic.messages.groups import CONSUMER_TYPE
from coordinator_logic.records.definitions import MemberRemoved, StaticMemberReplaced
from coordinator_logic.states import IllegalState, State
from coordinator_logic.stored_parts import ItemCodec, StoredItems, stored_struct

_HASH_BYTES = 8
_encode = msgspec.msgpack.Encoder().encode


class ResolvedPattern(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The topics that a pattern matched at a time (ms since the epoch), sorted by name."""

    topics: tuple[str, ...]
    resolved_at: int


class MatchedTopics(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How many of the group's topics, in the order of the group, were matched with a pattern.

    ``topics`` are those that match it and that no record has named yet.
    """

    number: int = 0
    topics: tuple[str, ...] = ()

    def without(self, deleted: Container[str], places: Sequence[int]) -> "MatchedTopics":
        """The same after topics were deleted. ``places`` are theirs, sorted."""
        earlier = bisect_left(places, self.number)
        return MatchedTopics(self.number - earlier, tuple(name for name in self.topics if name not in deleted))


TargetPartitions = dict[str, list[int]]
"""The sorted partitions of a member's target assignment, by topic id."""


_MEMBERS = ItemCodec(encode_member, decode_member, "members")
_TARGETS = ItemCodec(_encode, msgspec.msgpack.Decoder(TargetPartitions).decode, "target assignments")


class ConsumerGroup(GroupPart, array_like=True, dict=True, tag=CONSUMER_TYPE):
    """The part of a consumer group. Its ``generation`` is the group epoch; its state follows from epochs and members.

    ``target_epoch`` is the group epoch of the target assignment, which was computed at ``target_at`` (ms since the
    epoch of Unix; 0 if that is not known). ``metadata_hash`` stands for the subscribed topics as of the group epoch.
    ``targets`` are by member id. ``topics`` are the existing topics that the group has been told of and that matter to
    it, by name. ``refresh_requested``: the next heartbeat compares the topics with ``metadata_hash``.
    ``has_new_topics``: a topic that a pattern may match has appeared since the patterns were resolved.
    ``has_unresolved_patterns``: a member brought a pattern when it was too early to resolve patterns again.
    ``matched`` has the topics that were matched, by pattern; ``matching_until`` is the time (µs since the epoch) until
    which the work of matching takes the group's share.
    """

    type_name: ClassVar[str] = CONSUMER_TYPE
    records: ClassVar[tuple[type[Record], ...]] = (
        ConsumerMemberChanged,
        TopicsChanged,
        PatternsResolved,
        GroupEpochBumped,
        TargetAssignmentChanged,
        MemberAssignmentChanged,
    )

    generation: int = FIRST_EPOCH
    protocol_type: str | None = CONSUMER_PROTOCOL_TYPE
    target_epoch: int = FIRST_EPOCH
    target_at: int = 0
    metadata_hash: str = ""
    members: MutableMapping[str, ConsumerMember] = {}
    targets: MutableMapping[str, TargetPartitions] = {}
    topics: dict[str, Topic] = {}
    patterns: dict[str, ResolvedPattern] = {}
    refresh_requested: bool = True
    has_new_topics: bool = False
    has_unresolved_patterns: bool = False
    matched: dict[str, MatchedTopics] = {}
    matching_until: int = 0

    def __post_init__(self) -> None:
        # A snapshot holds each member as a string of bytes, and encodes those that have changed only.
        if not isinstance(self.members, StoredItems):
            self.members = StoredItems.of(self.members, _MEMBERS)
        if not isinstance(self.targets, StoredItems):
            self.targets = StoredItems.of(self.targets, _TARGETS)

    @property
    def epoch(self) -> int:
        """The group epoch."""
        return self.generation

    # ---- members -------------------------------------------------------------------------------------------

    @property
    def member_ids(self) -> Collection[str]:
        return self.members

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic, by name or by pattern."""
        return topic in self.subscribed_topics

    @cached_property
    def member_ids_of_instances(self) -> dict[str, str]:
        """The member id of each instance id. Not a field, like the other cached properties."""
        return {
            member.group_instance_id: member.member_id
            for member in self.members.values()
            if member.group_instance_id is not None
        }

    def static_member(self, group_instance_id: str | None) -> ConsumerMember | None:
        """The member with an instance id, if there is one."""
        member_id = None if group_instance_id is None else self.member_ids_of_instances.get(group_instance_id)
        return None if member_id is None else self.members[member_id]

    def outline_of(self, member_id: str) -> ConsumerMember | MemberOutline | None:
        """A member, without its partitions if they are not decoded; None if there is none."""
        members = self.members
        if isinstance(members, StoredItems):
            return members.outline(member_id, decode_outline)
        return members.get(member_id)

    def put(self, member: ConsumerMember) -> None:
        """Add or replace a member."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if "held" in self.__dict__:
            self.held.difference_update(() if old is None else old.held_partitions())
            self.held.update(member.held_partitions())
        if "member_ids_of_instances" in self.__dict__ and member.group_instance_id is not None:
            self.member_ids_of_instances[member.group_instance_id] = member.member_id
        if "size_of_members" in self.__dict__:
            self.size_of_members += size_of_texts(member) - (0 if old is None else size_of_texts(old))
        if old is None:
            self._add_subscription(member)
        elif old.subscribed_topic_names != member.subscribed_topic_names:
            self.forget_subscriptions()

    def remove(self, member_id: str) -> ConsumerMember:
        """Remove a member with its target. Raises ``KeyError`` if there is none."""
        member = self.members.pop(member_id)
        self.targets.pop(member_id, None)
        if "held" in self.__dict__:
            self.held.difference_update(member.held_partitions())
        if "size_of_members" in self.__dict__:
            self.size_of_members -= size_of_texts(member)
        if member.group_instance_id is not None:
            self.__dict__.pop("member_ids_of_instances", None)
        self.forget_subscriptions()
        return member

    @cached_property
    def size_of_members(self) -> int:
        """The bytes of the texts of all members."""
        return sum(map(size_of_texts, self.members.values()))

    @property
    def state_of_members(self) -> State:
        """The state that follows from the epochs and the members (KIP-848, "Group States")."""
        if not self.members:
            return State.EMPTY
        if self.epoch > self.target_epoch:
            return State.ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return State.STABLE
        return State.RECONCILING

    # ---- partitions ----------------------------------------------------------------------------------------

    @cached_property
    def held(self) -> set[tuple[str, int]]:
        """Every partition that a member has, or has yet to revoke, as (topic id, partition)."""
        return {place for member in self.members.values() for place in member.held_partitions()}

    def is_free(self, topic_id: str, partition: int) -> bool:
        """Whether no member holds the partition."""
        return (topic_id, partition) not in self.held

    def target_of(self, member_id: str) -> Partitions:
        """The target assignment of a member."""
        return {topic_id: frozenset(numbers) for topic_id, numbers in self.targets.get(member_id, {}).items()}

    # ---- topics --------------------------------------------------------------------------------------------

    @cached_property
    def subscribed_topics(self) -> frozenset[str]:
        """The names to which a member subscribes, and those that a pattern has matched; they may not exist."""
        names = {name for member in self.members.values() for name in member.subscribed_topic_names}
        return frozenset(names.union(*(resolved.topics for resolved in self.patterns.values())))

    def _add_subscription(self, member: ConsumerMember) -> None:
        """Add the topics of a new member to those that are known: to look at all members again is quadratic."""
        known = self.__dict__.get("subscribed_topics")
        if known is not None and not known.issuperset(member.subscribed_topic_names):
            self.__dict__["subscribed_topics"] = known.union(member.subscribed_topic_names)

    def forget_subscriptions(self) -> None:
        """Forget which topics are subscribed to, because that has changed."""
        self.__dict__.pop("subscribed_topics", None)

    @property
    def subscriptions(self) -> Subscriptions:
        """What the members' subscriptions mean at present."""
        matches = {pattern: resolved.topics for pattern, resolved in self.patterns.items()}
        return Subscriptions(self.topics, matches)

    def subscribers_of(self, pattern: str) -> int:
        """The number of members that subscribe with a pattern."""
        return sum(member.subscribed_topic_regex == pattern for member in self.members.values())

    @property
    def subscribed_patterns(self) -> Iterable[str]:
        """The patterns of the members, in the order of the members."""
        patterns = dict.fromkeys(member.subscribed_topic_regex for member in self.members.values())
        patterns.pop("", None)
        return patterns

    def current_metadata_hash(self) -> str:
        """A hash of the subscribed topics that exist, with ids and numbers of partitions; empty if there are none."""
        existing = sorted(self.subscribed_topics & self.topics.keys())
        if not existing:
            return ""
        described = [(name, self.topics[name]) for name in existing]
        return blake2b(_encode(described), digest_size=_HASH_BYTES).hexdigest()

    # ---- records -------------------------------------------------------------------------------------------

    def apply(self, group_id: str, record: Record, timestamp: int) -> None:
        """Apply a record, and enter the state that follows. Raises as in the base class."""
        match record:
            case MemberRemoved():
                self._forget_pattern(self.remove(record.member_id).subscribed_topic_regex)
            case StaticMemberReplaced():
                self._apply_replaced(record)
            case ConsumerMemberChanged():
                self._apply_member(record)
            case MemberAssignmentChanged():
                self._apply_assignment(record)
            case TargetAssignmentChanged():
                self.target_epoch, self.target_at = record.epoch, 0 if record.assignor is None else timestamp
                self.targets.update(record.targets)
            case GroupEpochBumped():
                self.generation, self.metadata_hash = record.epoch, record.metadata_hash
            case TopicsChanged():
                self._apply_topics(record)
            case PatternsResolved():
                for pattern, topics in record.patterns.items():
                    self.patterns[pattern] = ResolvedPattern(tuple(topics), timestamp)
                self.forget_subscriptions()
            case _:
                raise IllegalState(f"group {group_id!r} is a consumer group, which has no {type(record).__name__}")
        self.enter(self.state_of_members, timestamp)

    def _apply_replaced(self, record: StaticMemberReplaced) -> None:
        """Give a static member a new id; it keeps its partitions and its target, and begins with epoch 0 again."""
        target = self.targets.get(record.old_member_id, {})
        old = self.remove(record.old_member_id)
        self.targets[record.new_member_id] = target
        self.put(msgspec.structs.replace(old, member_id=record.new_member_id, epoch=0, previous_epoch=0))

    def _apply_member(self, record: ConsumerMemberChanged) -> None:
        old = self.members.get(record.member_id) or ConsumerMember(record.member_id)
        classic = record.classic
        membership = (
            None if classic is None else ClassicMembership(classic.session_timeout_ms, tuple(classic.protocols))
        )
        self.put(
            msgspec.structs.replace(
                old,
                group_instance_id=record.group_instance_id,
                rack_id=record.rack_id,
                client_id=record.client_id,
                client_host=record.client_host,
                rebalance_timeout_ms=record.rebalance_timeout_ms,
                subscribed_topic_names=tuple(record.subscribed_topic_names),
                subscribed_topic_regex=record.subscribed_topic_regex,
                server_assignor=record.server_assignor,
                classic=membership,
            )
        )
        if old.subscribed_topic_regex != record.subscribed_topic_regex:
            self._forget_pattern(old.subscribed_topic_regex)

    def _forget_pattern(self, pattern: str) -> None:
        """Forget a pattern, unless a member has it."""
        if (pattern in self.patterns or pattern in self.matched) and not self.subscribers_of(pattern):
            self.matched.pop(pattern, None)
            if self.patterns.pop(pattern, None) is not None:
                self.forget_subscriptions()

    def _apply_assignment(self, record: MemberAssignmentChanged) -> None:
        self.put(
            msgspec.structs.replace(
                self.members[record.member_id],
                epoch=record.epoch,
                previous_epoch=record.previous_epoch,
                state=MemberState(record.state),
                assigned=record.assigned,
                pending_revocation=record.pending_revocation,
            )
        )

    def _apply_topics(self, record: TopicsChanged) -> None:
        if record.deleted:
            self._forget_matches(set(record.deleted))
        for name in record.deleted:
            self.topics.pop(name, None)
        for topic in record.described:
            self.topics[topic.name] = Topic(topic.topic_id, topic.partitions)
        changed = {*record.deleted, *(topic.name for topic in record.described)}
        if not changed.isdisjoint(self.subscribed_topics):
            self.refresh_requested = True

    def _forget_matches(self, deleted: Set[str]) -> None:
        """Count the topics that are being deleted no longer."""
        if self.matched:
            places = [place for place, name in enumerate(self.topics) if name in deleted]
            self.matched = {pattern: matched.without(deleted, places) for pattern, matched in self.matched.items()}

    # ---- requests that concern any group -------------------------------------------------------------------

    def check_commit(self, commit: Commit) -> Error:
        """Check that the sender may commit: as a member with its epoch, or while the group has no members.

        A member may use an older epoch for partitions that it has held since then (KIP-1251). As in Kafka, all
        partitions are refused if it may not for one of them.
        """
        if commit.epoch < 0 and not self.members:
            return Error.NONE
        member = self.members.get(commit.member_id)
        if member is None:
            return Error.UNKNOWN_MEMBER_ID
        version = commit.version
        if member.classic is None and version is not None and version < OFFSET_COMMIT_FIRST_VERSION_OF_CONSUMER_MEMBERS:
            return Error.UNSUPPORTED_VERSION
        for topic in commit.topics:
            known = self.topics.get(topic.name)
            topic_id = "" if known is None else known.topic_id
            for partition in topic.partitions:
                error = check_commit_epoch(member, commit.epoch, topic_id, partition.partition_index)
                if error is not Error.NONE:
                    return error if member.classic is None else Error.ILLEGAL_GENERATION
        return Error.NONE

    def check_fetch(self, member_id: str | None, epoch: int) -> Error:
        """Check that the sender may fetch offsets: without a member, or as a member with its epoch."""
        if member_id is None and epoch < 0:
            return Error.NONE
        member = None if member_id is None else self.members.get(member_id)
        if member is None:
            return Error.UNKNOWN_MEMBER_ID
        if epoch == member.epoch:
            return Error.NONE
        return Error.STALE_MEMBER_EPOCH if member.classic is None else Error.ILLEGAL_GENERATION

    # ---- snapshots -----------------------------------------------------------------------------------------

    @classmethod
    @cache
    def stored_as(cls) -> Any:
        """The struct with the members and targets encoded."""
        items = dict[str, bytes]
        return stored_struct(cls, {"members": items, "targets": items}, tag=cls.type_name)

    @classmethod
    def restored(cls, stored: Any) -> Self:
        """The group from what a snapshot holds; members and targets are decoded when they are first used."""
        stored.members = StoredItems(stored.members, _MEMBERS)
        stored.targets = StoredItems(stored.targets, _TARGETS)
        return cls(*msgspec.structs.astuple(stored))


def form(before: GroupPart, record: ConsumerGroupFormed, timestamp: int) -> ConsumerGroup:
    """The consumer group that a group of another type becomes, without members."""
    formed = ConsumerGroup(before.state, before.previous_state, before.state_timestamp, record.epoch)
    formed.target_epoch = record.epoch
    formed.enter(State.EMPTY, timestamp)
    return formed
