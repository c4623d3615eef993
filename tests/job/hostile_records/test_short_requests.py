"""Short requests that make long rows: they are refused before a worker's memory holds them."""

import tracemalloc
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.messages import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsResponse,
    FetchedGroup,
    FetchedPartition,
    FetchedTopic,
    OffsetFetchResponse,
)
from coordinator_logic.messages.consumer_groups import (
    DescribedAssignment,
    DescribedConsumer,
    DescribedConsumerGroup,
    DescribedTopicPartitions,
)
from coordinator_logic.records import OffsetCommitted, OffsetsCommitted, TransactionalOffsetsCommitted
from streaming.contract.topics import MAX_ROW_BYTES, TopicNames
from streaming.job.group_batch.processing import Outcome, process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.hostile_records.least_sizes import least_size
from streaming.job.rows.records import MIN_ROW_BYTES, KafkaRecord, SizeLimits
from tests.support.request_events import commit, dumped, envelope

NOW = 1_000_000
TOPICS = TopicNames()
SETTINGS = Settings(TOPICS, 4, CoordinatorConfig())
ENOUGH_BYTES = 100 * 1024 * 1024


def sent(request: dict[str, Any], stored: StateRow | None = None) -> Outcome:
    return process(SETTINGS, "g", [KafkaRecord(NOW, 0, 0, b"g", dumped(request))], stored, NOW + 100)


def answers(outcome: Outcome) -> list[Any]:
    return [msgspec.json.decode(row.value or b"") for row in outcome.rows if row.topic == TOPICS.responses]


def offsets(topic: str, partitions: int, metadata: str = "") -> dict[str, Any]:
    entries = [{"partitionIndex": i, "committedOffset": 1, "committedMetadata": metadata} for i in range(partitions)]
    request = commit("g", 1)
    request["body"]["topics"] = [{"name": topic, "partitions": entries}]
    return request


@pytest.fixture(scope="module")
def stored() -> StateRow:
    """A group with offsets of 400 kB."""
    state = sent(offsets("topic", 100, "m" * 4_000)).state
    assert state is not None
    return state


@pytest.fixture
def peak() -> Iterator[list[int]]:
    """Measures the memory that a test allocates at most; the test's end checks it."""
    tracemalloc.start()
    yield []
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < ENOUGH_BYTES


SHORT = {
    "one offset, 20,000 times": envelope(
        "OffsetFetch", 7, {"groupId": "g", "topics": [{"name": "topic", "partitionIndexes": [0] * 20_000}]}
    ),
    "all offsets, 2,000 times": envelope("OffsetFetch", 8, {"groups": [{"groupId": "g", "topics": None}] * 2_000}),
    "the group, 100,000 times": envelope("DescribeGroups", 5, {"groups": ["g"] * 100_000}),
    "a long name for many offsets": offsets("t" * 100_000, 2_000),
}


@pytest.mark.usefixtures("peak")
@pytest.mark.parametrize("request_", SHORT.values(), ids=SHORT)
def test_a_request_that_repeats_what_is_long_is_refused(request_: dict[str, Any], stored: StateRow) -> None:
    outcome = sent(request_, stored)
    (answer,) = answers(outcome)
    assert answer["errorCode"] == -1
    assert f"the limit is {MAX_ROW_BYTES}" in answer["errorMessage"]


@pytest.mark.usefixtures("peak")
def test_a_request_that_repeats_a_consumer_group_is_refused() -> None:
    topics = [{"name": f"topic-{number}", "topicId": f"{number:022}", "partitions": 1_000} for number in range(10)]
    heartbeat = {"groupId": "g", "memberId": "m", "memberEpoch": 0, "rebalanceTimeoutMs": 60_000, "topics": topics}
    subscribed = {"subscribedTopicNames": [topic["name"] for topic in topics], "topicPartitions": []}
    state = sent(envelope("ConsumerGroupHeartbeat", 1, heartbeat | subscribed)).state
    once, often = (envelope("ConsumerGroupDescribe", 1, {"groupIds": ["g"] * times}) for times in (1, 20_000))
    (described,) = answers(sent(once, state))[0]["body"]["groups"]
    assert len(described["members"][0]["assignment"]["topicPartitions"]) == 10
    (answer,) = answers(sent(often, state))
    assert answer["errorCode"] == -1
    assert f"the limit is {MAX_ROW_BYTES}" in answer["errorMessage"]


def test_a_request_that_repeats_what_is_short_is_answered_as_often(stored: StateRow) -> None:
    fetch = envelope("OffsetFetch", 8, {"groups": [{"groupId": "g", "topics": None}] * 3})
    first, *others = answers(sent(fetch, stored))[0]["body"]["groups"]
    assert len(first["topics"][0]["partitions"]) == 100
    assert others == [first, first]
    describe = envelope("DescribeGroups", 5, {"groups": ["g", "h", "g"]})
    described = answers(sent(describe, stored))[0]["body"]["groups"]
    assert [(group["groupId"], group["errorCode"]) for group in described] == [("g", 0), ("h", 16), ("g", 0)]


ASSIGNED = DescribedAssignment([DescribedTopicPartitions("", "", [*range(9)])] * 3)
CONSUMER = DescribedConsumer("", None, None, 0, "", "", [], None, ASSIGNED, ASSIGNED)
OFFSET = OffsetCommitted("t", 0, 0, None, "", 0, None)
REPEATING = [
    OffsetFetchResponse(topics=[FetchedTopic("", [FetchedPartition(0)] * 10)]),
    OffsetFetchResponse(groups=[FetchedGroup("", [FetchedTopic("", [FetchedPartition(0, 1, 1, "mm")] * 3)])] * 3),
    DescribeGroupsResponse([DescribedGroup("", members=[DescribedMember("", None, "", "", b"", b"")] * 5)] * 5),
    ConsumerGroupDescribeResponse([DescribedConsumerGroup("", members=[CONSUMER] * 5)] * 5),
    OffsetsCommitted([OFFSET] * 10),
    TransactionalOffsetsCommitted("", 0, 0, [OFFSET] * 10),
]


@pytest.mark.parametrize("message", REPEATING, ids=lambda message: type(message).__name__)
def test_the_estimate_is_a_lower_bound_and_not_far_off(message: object) -> None:
    size = len(msgspec.json.encode(message))
    assert size / 2 <= least_size(message) <= size


def test_more_offsets_than_a_journal_entry_can_name_expire_in_several() -> None:
    """An expiry that did not fit would fail before every request of the group."""
    settings = Settings(TOPICS, 4, CoordinatorConfig(offsets_retention_minutes=1), limits=SizeLimits(row=MIN_ROW_BYTES))
    state: StateRow | None = None
    for number in range(40):
        request = offsets(f"{number:05}" + "t" * 10_000, 1)
        record = KafkaRecord(NOW + number, 0, number, b"g", dumped(request))
        state = process(settings, "g", [record], state, NOW + 100).state
    later = NOW + 3_600_000
    outcome = process(settings, "g", [KafkaRecord(later, 0, 99, b"g", dumped(commit("g", 1)))], state, later + 100)
    assert [row.topic for row in outcome.rows if row.topic == TOPICS.rejects] == []
    journal = [msgspec.json.decode(row.value or b"")["record"] for row in outcome.rows if row.topic == TOPICS.journal]
    deleted = [record for record in journal if record["type"] == "OffsetsDeleted"]
    assert [len(record["offsets"]) for record in deleted] == [9, 9, 9, 9, 4]
