"""Batches of the members of a consumer group, which subscribe to many topics."""

from collections.abc import Callable

from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, TopicDescription
from coordinator_logic.step import StepResult
from tests.logic.linear_cost.batches import GROUP_ID, batch, grows_linearly, request

TOPICS = [TopicDescription(f"topic-{number}", f"id-of-topic-{number:_<10}", 10) for number in range(100)]


def members_that_join(size: int) -> Callable[[], StepResult]:
    requests = []
    for number in range(size):
        names = [topic.name for topic in TOPICS]
        # Each brings a name of its own, so that each changes what the group subscribes to.
        body = ConsumerGroupHeartbeatRequest(
            GROUP_ID,
            f"member-{number}",
            0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[*names, f"own-{number}"],
            topic_partitions=[],
            topics=TOPICS,
        )
        requests.append(request("ConsumerGroupHeartbeat", 1, body))
    return lambda: batch(None, requests)


def test_the_joins_of_four_times_as_many_members_cost_about_four_times_as_much() -> None:
    grows_linearly(members_that_join, 250, 1_000)
