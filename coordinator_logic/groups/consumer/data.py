"""The data of a consumer group beside what every group has, and queries on it.

Everything changes only by a record (:mod:`coordinator_logic.groups.consumer.records`) except ``refresh_requested``,
``has_new_topics`` and ``has_unresolved_patterns``, which are working memory. The structs are ``array_like``: a snapshot
holds no field names. New fields may only be appended, with a default.
"""

from collections.abc import Iterable, MutableMapping
from functools import cached_property
from hashlib import blake2b

import msgspec

from coordinator_logic.assignors.server import Partitions
from coordinator_logic.groups.consumer.members import ConsumerMember, MemberOutline, decode_outline
from coordinator_logic.groups.consumer.target_assignment import Subscriptions, Topic
from coordinator_logic.states import State
from coordinator_logic.stored_parts import StoredItems

FIRST_EPOCH = 1
"""The epoch of a group without members and of its empty target; the first member's join makes it 2, as in Kafka."""

_HASH_BYTES = 8
_encode = msgspec.msgpack.encode


class ResolvedPattern(msgspec.Struct, frozen=True, array_like=True):
    """The topics that a pattern matched at a time (ms since the epoch), sorted by name."""

    topics: tuple[str, ...]
    resolved_at: int


TargetPartitions = dict[str, list[int]]
"""The sorted partitions of a member's target assignment, by topic id."""


class ConsumerGroup(msgspec.Struct, array_like=True, dict=True):
    """What only a consumer group has.

    ``epoch`` is the group epoch, ``target_epoch`` that of the target assignment, which was computed at ``target_at``
    (ms since the epoch; 0 if that is not known). ``metadata_hash`` stands for the subscribed topics as of the group
    epoch. ``targets`` are by member id. ``topics`` are the existing topics that
    the group has been told of and that matter to it, by name. ``refresh_requested``: the next heartbeat compares the
    topics with ``metadata_hash``. ``has_new_topics``: a topic that a pattern may match has appeared since
    the patterns were resolved. ``has_unresolved_patterns``: a member brought a pattern when it was too early to resolve
    patterns again.
    """

    epoch: int = FIRST_EPOCH
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

    # ---- members -------------------------------------------------------------------------------------------

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
        if old is None or old.subscribed_topic_names != member.subscribed_topic_names:
            self.forget_subscriptions()

    def remove(self, member_id: str) -> ConsumerMember:
        """Remove a member with its target. Raises ``KeyError`` if there is none."""
        member = self.members.pop(member_id)
        self.targets.pop(member_id, None)
        if "held" in self.__dict__:
            self.held.difference_update(member.held_partitions())
        if member.group_instance_id is not None:
            self.__dict__.pop("member_ids_of_instances", None)
        self.forget_subscriptions()
        return member

    @property
    def state(self) -> State:
        """The group's state (KIP-848, "Group States")."""
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
