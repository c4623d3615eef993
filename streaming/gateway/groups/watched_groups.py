"""The groups that learn of topics from this gateway: what their members subscribe to, and what they were told.

A heartbeat names its member's subscription only when that changes. So a gateway that has just started, or to which a
client has just moved, does not know what a member subscribes to: then the group needs a lookup.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, TopicDescription

SILENCE_SECONDS = 300.0
"""A member that sent no heartbeat for that long, and a group of which no member did, is forgotten: longer than any
session should be. Members that speak the classic protocol send none; a lookup finds them again."""
MAX_GROUPS = 100_000


class Subscription(NamedTuple):
    """What a member subscribes to. An empty pattern matches nothing."""

    names: frozenset[str] = frozenset()
    pattern: str = ""


@dataclass(slots=True)
class _Member:
    """A member's subscription, when it was last seen, and for which list of topics its pattern was resolved."""

    subscription: Subscription
    seen_at: float
    resolved_for: object = None
    resolved_at: float = 0.0


class WatchedGroup:
    """A group that learns of topics.

    ``told``: the topics as the group has confirmed to know them. ``replaced``: those in whose place it came to know
    others of the same names, by id; it has to be told that they are gone. ``needs_lookup``: the subscription of a
    member is not known. ``has_changed``: the group may have to be told of topics. Times are monotonic, in seconds.
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.told: dict[str, TopicDescription] = {}
        self.replaced: dict[str, TopicDescription] = {}
        self.needs_lookup = False
        self.has_changed = True
        self.seen_at = 0.0
        self._members: dict[str, _Member] = {}

    @property
    def members(self) -> Mapping[str, Subscription]:
        """The subscriptions of the known members, by member id."""
        return {member_id: member.subscription for member_id, member in self._members.items()}

    @property
    def names(self) -> set[str]:
        """The topics to which members subscribe by name."""
        return set().union(*(member.subscription.names for member in self._members.values()))

    @property
    def has_patterns(self) -> bool:
        """Whether a member subscribes with a pattern."""
        return any(member.subscription.pattern for member in self._members.values())

    def pattern_of(self, member_id: str) -> str:
        """The pattern of a member; empty if it has none or is not known."""
        member = self._members.get(member_id)
        return "" if member is None else member.subscription.pattern

    def is_resolved(self, member_id: str, listing: object, since: float) -> bool:
        """Whether a member's pattern was resolved for this list of topics, at or after a time."""
        member = self._members[member_id]
        return member.resolved_for is listing and member.resolved_at >= since

    def resolved(self, member_id: str, listing: object, now: float) -> None:
        """Note that the group is being told of the topics in a list that match a member's pattern."""
        member = self._members.get(member_id)
        if member is not None:
            member.resolved_for, member.resolved_at = listing, now

    def learned(self, topics: Iterable[TopicDescription]) -> None:
        """Note that the group has confirmed to know these topics.

        It may have been told of an older state than it knew: then it has to be told again.
        """
        for topic in topics:
            before = self.told.get(topic.name, topic)
            self.has_changed |= before != topic
            if before.topic_id != topic.topic_id:
                self.replaced[before.topic_id] = before
            self.replaced.pop(topic.topic_id, None)
            self.told[topic.name] = topic

    def forgot(self, topics: Iterable[TopicDescription]) -> None:
        """Note that the group has confirmed to know that these topics are gone."""
        for topic in topics:
            self.replaced.pop(topic.topic_id, None)
            if self.told.get(topic.name) == topic:
                del self.told[topic.name]

    def see(self, member_id: str, heartbeat: ConsumerGroupHeartbeatRequest, now: float) -> None:
        """Note the subscription of a member that sends a heartbeat."""
        names, pattern = heartbeat.subscribed_topic_names, heartbeat.subscribed_topic_regex
        self.seen_at = now
        member = self._members.get(member_id)
        before = Subscription() if member is None else member.subscription
        if member is None and names is None and pattern is None:
            self.needs_lookup = True
            return
        after = Subscription(
            before.names if names is None else frozenset(names), before.pattern if pattern is None else pattern
        )
        if member is None or after != before:
            self._members[member_id] = _Member(after, now)
            self.has_changed = True
        else:
            member.seen_at = now

    def found(self, subscriptions: Mapping[str, Subscription], asked_at: float, now: float) -> None:
        """Take over the subscriptions that a lookup found. Members that were seen since it was asked are kept."""
        kept = {member_id: member for member_id, member in self._members.items() if member.seen_at >= asked_at}
        looked_up = {member_id: _Member(each, now) for member_id, each in subscriptions.items()}
        self._members = looked_up | kept
        self.needs_lookup, self.has_changed = False, True

    def remove(self, member_id: str) -> None:
        """Forget a member that has left, or was expelled."""
        self._members.pop(member_id, None)

    def remove_silent(self, since: float) -> None:
        """Forget members that were not seen since a time, and look up who is left."""
        silent = [member_id for member_id, member in self._members.items() if member.seen_at < since]
        for member_id in silent:
            del self._members[member_id]
        self.needs_lookup |= bool(silent)


class WatchedGroups:
    """The groups by id, those that were seen last at the end."""

    def __init__(self) -> None:
        self._groups: OrderedDict[str, WatchedGroup] = OrderedDict()

    def __len__(self) -> int:
        return len(self._groups)

    def get(self, group_id: str) -> WatchedGroup | None:
        """The group, if it is watched."""
        return self._groups.get(group_id)

    def watch(self, group_id: str, now: float) -> WatchedGroup:
        """The group, watched from now on if it was not."""
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = WatchedGroup(group_id)
            if len(self._groups) > MAX_GROUPS:
                self._groups.popitem(last=False)
        self._groups.move_to_end(group_id)
        group.seen_at = now
        return group

    def remove(self, group_id: str) -> None:
        """Watch a group no longer."""
        self._groups.pop(group_id, None)

    def remove_member(self, group_id: str, member_id: str) -> None:
        """Forget a member, and its group if no other member is known."""
        group = self._groups.get(group_id)
        if group is not None:
            group.remove(member_id)
            if not group.members and not group.needs_lookup:
                self.remove(group_id)

    def living(self, now: float) -> Collection[WatchedGroup]:
        """The groups of which a member was seen lately; the others are forgotten."""
        since = now - SILENCE_SECONDS
        while self._groups and next(iter(self._groups.values())).seen_at < since:
            self._groups.popitem(last=False)
        for group in self._groups.values():
            group.remove_silent(since)
        return list(self._groups.values())
