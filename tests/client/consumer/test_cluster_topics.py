"""Which topics match a pattern, and how a leader describes changes of topics. No Kafka."""

import re
from typing import Any

import pytest

from coordinator_logic.assignors import TopicMetadata
from streaming.client import ConsumerConfig
from streaming.client.consumer.metadata_watch import describe_change
from streaming.client.consumer.topic_pattern import CoordinatorPattern, TopicPattern

INTERNAL = {"__consumer_offsets", "__transaction_state", "__share_group_state"}
OWN = {f"eu-group-{name}" for name in ("requests", "responses", "journal", "directory", "rejects")}

A, B = frozenset("a"), frozenset("b")


def config(**settings: Any) -> ConsumerConfig:
    return ConsumerConfig(bootstrap_servers="", group_id="g", topic_prefix="eu-", **settings)


def test_a_pattern_must_match_the_whole_name() -> None:
    pattern = config().topic_pattern("orders-[a-z]+")
    assert pattern.filter(["orders-eu", "orders-", "my-orders-eu", "orders-eu-2"]) == {"orders-eu"}


def test_a_compiled_pattern_keeps_its_flags() -> None:
    pattern = config().topic_pattern(re.compile("ORDERS", re.IGNORECASE))
    assert pattern.filter(["orders", "Orders", "invoices"]) == {"orders", "Orders"}


def test_internal_topics_match_only_without_their_exclusion() -> None:
    names = {"orders", "group-requests", *INTERNAL, *OWN}
    assert config().topic_pattern(".*").filter(names) == {"orders", "group-requests"}
    assert config(exclude_internal_topics=False).topic_pattern(".*").filter(names) == names


def test_an_invalid_pattern_is_refused() -> None:
    with pytest.raises(re.error):
        config().topic_pattern("orders-(")


@pytest.mark.parametrize(
    ("now", "change"),
    [
        ({"t": TopicMetadata(3), "u": TopicMetadata(1)}, None),
        ({"t": TopicMetadata(5), "u": TopicMetadata(1)}, "the number of partitions of topic t changed from 3 to 5"),
        ({"t": TopicMetadata(2), "u": TopicMetadata(1)}, "the number of partitions of topic t changed from 3 to 2"),
        ({"t": TopicMetadata(3)}, "topic u was deleted"),
        ({"t": TopicMetadata(3), "u": TopicMetadata(1), "v": TopicMetadata(1)}, "topic v was created"),
        ({}, "topic t was deleted"),
    ],
)
def test_a_leader_describes_the_first_change(now: dict[str, TopicMetadata], change: str | None) -> None:
    assert describe_change({"t": TopicMetadata(3), "u": TopicMetadata(1)}, now) == change


def test_a_leader_notices_that_replicas_have_moved() -> None:
    before, now = {"t": TopicMetadata(2, (A, A | B))}, {"t": TopicMetadata(2, (B, A | B))}
    assert describe_change(before, now) == "replicas of topic t moved to other racks"
    assert describe_change(before, dict(before)) is None


def test_metadata_max_age_must_be_positive() -> None:
    with pytest.raises(ValueError, match="metadata_max_age_ms"):
        ConsumerConfig(bootstrap_servers="", group_id="g", metadata_max_age_ms=0)


def test_in_a_consumer_group_the_coordinator_evaluates_a_string_and_the_client_a_compiled_pattern() -> None:
    consumer = config(group_protocol="consumer")
    text, compiled = consumer.topic_pattern("orders.*"), consumer.topic_pattern(re.compile("orders.*"))
    assert (type(text), type(compiled)) == (CoordinatorPattern, TopicPattern)
    names = {"orders", "orders-eu", "my-orders", *INTERNAL, *OWN}
    assert text.filter(names) == compiled.filter(names) == {"orders", "orders-eu"}
    assert consumer.topic_pattern(".*").filter(names) == {"orders", "orders-eu", "my-orders"}
    assert text.matches("orders-eu")
    assert not consumer.topic_pattern(".*").matches("__consumer_offsets")


def test_a_pattern_for_the_coordinator_has_the_syntax_of_re2() -> None:
    with pytest.raises(re.error, match="not a valid regular expression"):
        config(group_protocol="consumer").topic_pattern("(?=orders)")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"group_protocol": "newer"}, "group_protocol is 'newer', not classic or consumer"),
        ({"group_remote_assignor": "range"}, "group_remote_assignor cannot be set with group_protocol='classic'"),
        ({"group_protocol": "consumer", "session_timeout_ms": 6_000}, "session_timeout_ms cannot be set"),
        ({"group_protocol": "consumer", "heartbeat_interval_ms": 100}, "heartbeat_interval_ms cannot be set"),
        ({"group_protocol": "consumer", "partition_assignment_strategy": ("range",)}, "partition_assignment_strategy"),
    ],
)
def test_settings_of_the_other_protocol_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        config(**settings)


def test_the_settings_of_the_consumer_group_protocol_reach_the_member() -> None:
    member = config(group_protocol="consumer", group_remote_assignor="range", client_rack="a").member_config()
    assert (member.group_protocol, member.group_remote_assignor, member.rack_id) == ("consumer", "range", "a")
