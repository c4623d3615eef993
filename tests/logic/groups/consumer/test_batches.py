"""Cutting the requests of a consumer group into other batches changes nothing, and what happens in a single one."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from coordinator_logic.messages import ConsumerGroupHeartbeatRequest
from tests.logic.groups.consumer.driver import DrivenConsumers, topic_id
from tests.logic.groups.consumer.stories import STORIES, Action, play
from tests.logic.test_properties import batches, run
from tests.support.properties import examples

ALLOWANCE_MS = 500


@examples(40)
@given(STORIES, st.integers(0, 2**32 - 1), st.sampled_from([0, 2_000, 100_000]))
def test_cutting_the_log_into_batches_differently_changes_nothing(story: list[Action], seed: int, tail_ms: int) -> None:
    driven = DrivenConsumers(group_consumer_regex_refresh_interval_ms=20_000, expiry_allowance_ms=ALLOWANCE_MS)
    play(driven, story)
    end = driven.log[-1].place.timestamp + ALLOWANCE_MS + tail_ms
    whole = run([(driven.log, end)], driven.config)
    assert run(batches(driven.log, Random(seed), end, ALLOWANCE_MS), driven.config) == whole
    one_by_one = [([request], request.place.timestamp) for request in driven.log]
    assert run([*one_by_one, ([], end)], driven.config) == whole


def test_what_a_member_leaves_behind_is_given_away_in_the_same_batch() -> None:
    driven = DrivenConsumers()
    driven.enter("a", "t", topics={"t": 2})
    driven.enter("b", "t")
    bodies = [ConsumerGroupHeartbeatRequest(driven.group_id, *sender) for sender in (("b", 3), ("a", -1), ("b", 3))]
    requests = [driven.request("ConsumerGroupHeartbeat", body) for body in bodies]
    *_, last = driven.step(requests)
    assert last.body.assignment is not None
    assert [(each.topic_id, each.partitions) for each in last.body.assignment.topic_partitions] == [
        (topic_id("t"), [0, 1])
    ]
