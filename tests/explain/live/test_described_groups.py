"""Described groups as text: consumer groups (KIP-848) with what their members wait for, and classic ones."""

import pytest

from coordinator_logic.messages import DescribedConsumerGroup, DescribedGroup, DescribeGroupsRequest
from streaming.cli.commands.groups import print_group
from streaming.explain.live.group import description, group_now, headline
from streaming.explain.live.group_types import members_of
from tests.logic.driver import Driven
from tests.logic.groups.consumer.driver import Consumer, DrivenConsumers
from tests.logic.groups.consumer.test_migration import Classic, beat_all, classic_group


def group_that_reconciles() -> DrivenConsumers:
    """The member ``a`` has yet to revoke a partition, for which ``b`` waits."""
    group = DrivenConsumers()
    a = Consumer(group, "a").join("t", topics={"t": 2})
    Consumer(group, "b", instance="i").join("t")
    group.beat("a", a.epoch)
    return group


def test_a_consumer_group_is_described_with_its_epochs() -> None:
    described = group_that_reconciles().describe_consumers()
    assert headline(described) == ("the-group", ": Reconciling (consumer group, epoch 3, uniform), 2 members")


def test_a_target_that_is_older_than_the_group_epoch_shows() -> None:
    group = DrivenConsumers(group_consumer_assignment_interval_ms=1_000)
    Consumer(group, "a").join("t", topics={"t": 2})
    Consumer(group, "b").join("t")
    _, rest = headline(group.describe_consumers())
    assert rest == ": Assigning (consumer group, epoch 3, target of epoch 2, uniform), 2 members"


def test_a_member_revokes_and_another_waits_for_it() -> None:
    a, b = members_of(group_that_reconciles().describe_consumers())
    assert (a.epoch, a.subscription, a.assignment, a.changes) == ("2", "t", "t: 0, 1", "revokes t: 1")
    assert (b.epoch, b.instance, b.assignment, b.changes) == ("3", "i", "-", "waits for a to revoke t: 1")


def test_a_member_gets_what_nobody_holds_with_its_next_heartbeats() -> None:
    group = DrivenConsumers()
    a = Consumer(group, "a").join("t", topics={"t": 2})
    b = Consumer(group, "b").join("t")
    group.beat("a", a.epoch)
    group.beat("a", a.epoch, owned={next(iter(a.owned)): {0}})
    _, waiting = members_of(group.describe_consumers())
    assert (b.owned, waiting.changes) == ({}, "gets t: 1")


def test_a_pattern_and_a_member_of_the_classic_protocol_show() -> None:
    group = DrivenConsumers()
    first, second = classic_group(group, {0: (0, 1), 1: (2, 3)})
    newer = Consumer(group, "newer").join(topics={"t": 4}, subscribed_topic_regex="[a-z]+", subscribed_topic_names=None)
    beat_all(first, second, newer)
    texts = {member.member_id: member for member in members_of(group.describe_consumers())}
    assert texts["newer"].subscription == "pattern [a-z]+"
    assert (texts["newer"].protocol, texts[first.member_id].protocol) == ("consumer", "classic")
    assert isinstance(second, Classic)


def test_the_lines_of_a_consumer_group_name_what_changes() -> None:
    assert description(group_now(group_that_reconciles().describe_consumers()), []).splitlines()[2:-2] == [
        "a (client at /127.0.0.1), epoch 2",
        "    t: 0, 1",
        "    revokes t: 1",
        "b (client at /127.0.0.1, instance i), epoch 3",
        "    -",
        "    waits for a to revoke t: 1",
    ]


def test_a_table_shows_a_pattern_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    group = DrivenConsumers()
    group.enter("a", subscribed_topic_regex="[a-z]+", topics={"t": 2})
    print_group(group.describe_consumers())
    printed = capsys.readouterr().out
    assert "the-group: " in printed
    assert "[a-z]+" in printed
    print_group(DescribedConsumerGroup("absent", 69))
    assert capsys.readouterr().out == ""


def test_a_classic_group_is_described_with_its_protocol() -> None:
    group = Driven()
    group.stable_group(1, protocol_type="connect")
    described: DescribedGroup = group.send("DescribeGroups", DescribeGroupsRequest([group.group_id])).body.groups[0]
    assert headline(described) == ("the-group", ": Stable (connect, range), 1 member")
    member, assignment = description(group_now(described), []).splitlines()[2:-2]
    assert member.startswith(described.members[0].member_id)
    assert assignment.endswith(" bytes")
