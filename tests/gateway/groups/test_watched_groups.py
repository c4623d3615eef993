"""What a gateway remembers of the members that it serves."""

from typing import Any

from coordinator_logic.messages import ConsumerGroupHeartbeatRequest
from streaming.gateway.groups import watched_groups
from streaming.gateway.groups.watched_groups import (
    SILENCE_SECONDS,
    Subscription,
    WatchedGroup,
    WatchedGroups,
)


def heartbeat(**fields: Any) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest("g", "m", 1, **fields)


def test_a_heartbeat_changes_only_the_parts_of_a_subscription_that_it_names() -> None:
    group = WatchedGroup("g")
    group.see("m", heartbeat(subscribed_topic_names=["a", "b"]), 1.0)
    group.see("m", heartbeat(subscribed_topic_regex="c.*"), 2.0)
    group.see("m", heartbeat(), 3.0)
    assert group.members == {"m": Subscription(frozenset({"a", "b"}), "c.*")}
    group.see("m", heartbeat(subscribed_topic_names=[], subscribed_topic_regex=""), 4.0)
    assert group.members == {"m": Subscription()}
    assert not group.needs_lookup


def test_a_heartbeat_of_an_unknown_member_that_names_no_topics_needs_a_lookup() -> None:
    group = WatchedGroup("g")
    group.see("m", heartbeat(), 1.0)
    assert group.needs_lookup
    assert group.members == {}


def test_a_lookup_replaces_the_members_but_for_those_that_came_since_it_was_asked() -> None:
    group = WatchedGroup("g")
    group.see("old", heartbeat(subscribed_topic_names=["old"]), 1.0)
    group.see("unknown", heartbeat(), 1.0)
    group.see("new", heartbeat(subscribed_topic_names=["new"]), 3.0)
    group.found({"unknown": Subscription(frozenset({"a"}))}, asked_at=2.0, now=4.0)
    assert group.members.keys() == {"unknown", "new"}
    assert group.names == {"a", "new"}
    assert not group.needs_lookup


def test_silent_members_are_forgotten_and_the_others_looked_up() -> None:
    groups = WatchedGroups()
    group = groups.watch("g", 0.0)
    group.see("silent", heartbeat(subscribed_topic_names=["a"]), 0.0)
    group.see("alive", heartbeat(subscribed_topic_names=["b"]), SILENCE_SECONDS)
    assert groups.living(SILENCE_SECONDS + 1) == [group]
    assert group.members.keys() == {"alive"}
    assert group.needs_lookup


def test_groups_are_forgotten_when_they_are_silent_or_when_their_last_member_leaves() -> None:
    groups = WatchedGroups()
    groups.watch("silent", 0.0)
    left = groups.watch("left", SILENCE_SECONDS)
    left.see("m", heartbeat(subscribed_topic_names=["a"]), SILENCE_SECONDS)
    groups.remove_member("left", "another")
    assert [group.group_id for group in groups.living(SILENCE_SECONDS + 1)] == ["left"]
    groups.remove_member("left", "m")
    assert len(groups) == 0


def test_the_number_of_groups_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(watched_groups, "MAX_GROUPS", 2)
    groups = WatchedGroups()
    for number, group_id in enumerate(("a", "b", "a", "c")):
        groups.watch(group_id, float(number))
    assert [group.group_id for group in groups.living(4.0)] == ["a", "c"]
