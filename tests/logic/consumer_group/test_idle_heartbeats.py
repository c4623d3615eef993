"""Heartbeats that change nothing take a short way, and give what the long way gives."""

from collections.abc import Sequence
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.events import Request
from coordinator_logic.handlers.consumer_group import heartbeat
from coordinator_logic.step import StepResult
from tests.logic.consumer_group.driver import DrivenConsumers, description, topic_id
from tests.support.properties import examples


class ComparedConsumers(DrivenConsumers):
    """A group whose every step is repeated without the short way."""

    compares = True

    def _run(
        self, before: bytes | None, requests: Sequence[Request], batch_time: int, read_until: int | None
    ) -> tuple[StepResult, bytes]:
        result, output = super()._run(before, requests, batch_time, read_until)
        if self.compares:
            with patch.object(heartbeat, "member_that_stays", return_value=None):
                assert super()._run(before, requests, batch_time, read_until)[1] == output
        return result, output


MEMBERS = st.sampled_from(["a", "b", "c"])
FIELDS = st.sampled_from([("server_assignor", "range"), ("rack_id", "r"), ("instance_id", "i")])
ACTIONS = st.one_of(
    st.tuples(st.just("join"), MEMBERS, st.sampled_from([("t",), ("t", "u"), ("none",)])),
    st.tuples(st.just("pattern"), MEMBERS, st.sampled_from(["t.*", "u.*"])),
    st.tuples(st.just("own"), MEMBERS, st.sets(st.integers(0, 3))),
    st.tuples(st.just("host"), MEMBERS, st.sampled_from(["/127.0.0.1", "/127.0.0.2"])),
    st.tuples(st.just("field"), MEMBERS, FIELDS),
    st.tuples(st.just("topics"), MEMBERS, st.integers(3, 9)),
    st.tuples(st.just("described"), MEMBERS, st.integers(3, 9)),
    st.tuples(st.just("leave"), MEMBERS, st.none()),
    st.tuples(st.just("sleep"), MEMBERS, st.sampled_from([100, 1_000, 11_000, 11_000, 50_000])),
)


def act(group: ComparedConsumers, action: str, member: str, value: object) -> None:
    consumer = group.group.consumer if group.exists else None
    known = None if consumer is None else consumer.members.get(member)
    epoch = 2 if known is None else max(known.epoch, 1)
    match action, value:
        case "join", tuple(names):
            group.enter(member, *names, topics={"t": 4, "u": 2})
        case "pattern", str(pattern):
            group.enter(member, subscribed_topic_regex=pattern, topics={"t": 4, "u": 2})
        case "own", set(numbers):
            group.beat(member, epoch, owned={topic_id("t"): numbers})
        case "field", tuple((name, field)):
            group.beat(member, epoch, **{name: field})
        case "host", str(host):
            group.beat(member, epoch, host=host)
        case "topics", int(count):
            group.beat(member, epoch, topics={"t": count})
        case "described", int(count):
            group.topics_described(description("t", count), description(f"t{count}", 1))
        case "leave", _:
            group.beat(member, -1)
        case "sleep", int(ms):
            group.sleep(ms)


def follow(group: ComparedConsumers) -> None:
    """Let members send heartbeats that say nothing, before and after they have given up what they must."""
    for member_id, member in group.consumer.members.items():
        group.beat(member_id, group.consumer.epoch)
        group.beat(member_id, max(1, member.epoch))
    for member_id, member in group.consumer.members.items():
        group.beat(member_id, member.epoch, owned={each: set(held) for each, held in member.assigned.items()})
    for member_id, member in group.consumer.members.items():
        group.beat(member_id, member.epoch)


@examples(60)
@given(st.lists(ACTIONS, max_size=25))
def test_the_short_way_gives_what_the_long_way_gives(script: list[tuple[str, str, object]]) -> None:
    group = ComparedConsumers(group_consumer_regex_refresh_interval_ms=20_000)
    for member in "abc":
        group.enter(member, "t", topics={"t": 4})
    follow(group)
    follow(group)
    for each in script:
        act(group, *each)
        if group.exists:
            follow(group)


@pytest.mark.parametrize("instance", [None, "i"])
def test_it_takes_the_short_way(instance: str | None) -> None:
    group = DrivenConsumers()
    group.enter("a", "t", topics={"t": 4}, instance_id=instance)
    with patch.object(heartbeat, "converge", side_effect=AssertionError):
        assert group.beat("a", 2, instance_id=instance).body.member_epoch == 2
