"""Heartbeats that change nothing take a short way, and give what the long way gives."""

from collections.abc import Sequence
from unittest.mock import patch

import pytest
from hypothesis import given

from coordinator_logic.events import Request
from coordinator_logic.groups.consumer.requests import consumer_group_heartbeat as heartbeat
from coordinator_logic.step import StepResult
from tests.logic.groups.consumer.driver import DrivenConsumers
from tests.logic.groups.consumer.stories import STORIES, Action, play
from tests.support.properties import examples


class ComparedConsumers(DrivenConsumers):
    """A group whose every step is repeated without the short way."""

    compares = True

    def _run(
        self, before: bytes | None, requests: Sequence[Request], batch_time: int, read_until: int | None
    ) -> tuple[StepResult, bytes]:
        result, output = super()._run(before, requests, batch_time, read_until)
        if self.compares:
            with patch.object(heartbeat, "sender_of_idle_heartbeat", return_value=None):
                assert super()._run(before, requests, batch_time, read_until)[1] == output
        return result, output


@examples(60)
@given(STORIES)
def test_the_short_way_gives_what_the_long_way_gives(story: list[Action]) -> None:
    settings = {
        "group_consumer_regex_refresh_interval_ms": 20_000,
        "group_consumer_reconciling_heartbeat_interval_ms": 700,
    }
    play(ComparedConsumers(**settings), story)


@pytest.mark.parametrize("instance", [None, "i"])
def test_it_takes_the_short_way(instance: str | None) -> None:
    group = DrivenConsumers()
    group.enter("a", "t", topics={"t": 4}, instance_id=instance)
    with patch.object(heartbeat, "process_heartbeat", side_effect=AssertionError):
        assert group.beat("a", 2, instance_id=instance).body.member_epoch == 2
