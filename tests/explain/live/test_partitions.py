"""The partitions of a group: what is committed, where the logs end, and which member has them."""

import msgspec
import pytest

from coordinator_logic.embedded_protocols import (
    Assignment,
    Subscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from coordinator_logic.messages import DescribedGroup, DescribedMember
from streaming.client.group_types import type_of
from streaming.explain.live.group_types import description_of
from streaming.explain.live.partitions import Logs, holders_of, row_of, rows_of
from streaming.explain.offsets.plan import Log, Position
from tests.logic.groups.consumer.driver import DrivenConsumers

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
LOGS = Logs({FIRST: Log(0, 50, "id"), SECOND: Log(10, 20)}, {"orders": 3})


def classic(protocol_type: str, metadata: bytes, assignment: bytes) -> DescribedGroup:
    member = DescribedMember("reader-1", None, "reader", "/10.0.3.7", metadata, assignment)
    return DescribedGroup("billing", group_state="Stable", protocol_type=protocol_type, members=[member])


CONSUMERS = classic(
    "consumer",
    encode_subscription(Subscription(["orders", "audit"])),
    encode_assignment(Assignment([SECOND, FIRST])),
)


def test_lag_is_the_distance_to_the_end_and_the_owner_is_the_member_that_has_the_partition() -> None:
    first, second = rows_of({FIRST: Position(42)}, holders_of(CONSUMERS), LOGS)
    assert (first.end, first.lag, first.owner, first.note) == (50, 8, "reader-1 at /10.0.3.7", "")
    assert (second.committed, second.end, second.lag, second.note) == (None, 20, None, "")
    owner = {"memberId": "reader-1", "clientId": "reader", "clientHost": "/10.0.3.7"}
    assert first.figures() == {"logEndOffset": 50, "lag": 8, "owner": owner, "note": ""}


@pytest.mark.parametrize(
    ("partition", "position", "end", "note"),
    [
        (FIRST, Position(51), 50, "beyond the end"),
        (FIRST, Position(42, topic_id="another"), None, "of a deleted topic of this name"),
        (TopicPartition("orders", 2), Position(1), None, "the end cannot be read"),
        (TopicPartition("orders", 3), Position(1), None, "no such partition"),
        (TopicPartition("payments", 0), Position(1), None, "no such topic, or it is hidden"),
    ],
)
def test_a_lag_that_is_not_known_has_its_reason(
    partition: TopicPartition, position: Position, end: int | None, note: str
) -> None:
    row = row_of(partition, position, None, LOGS)
    assert (row.end, row.lag, row.owner, row.note) == (end, None, None, note)


def test_a_consumer_of_a_consumer_group_has_its_partitions() -> None:
    driven = DrivenConsumers()
    driven.enter("newer", "orders", topics={"orders": 2})
    driven.beat("newer", 1, owned={})
    held = holders_of(driven.describe_consumers())
    assert {partition: holder.member_id for partition, holder in held.items()} == {FIRST: "newer", SECOND: "newer"}


def test_a_described_consumer_has_topics_and_partitions_in_json_where_the_text_has_them() -> None:
    (member,) = data(CONSUMERS)["members"]
    assert member == {
        "memberId": "reader-1",
        "groupInstanceId": None,
        "clientId": "reader",
        "clientHost": "/10.0.3.7",
        "subscribedTopicNames": ["audit", "orders"],
        "assignment": {"topicPartitions": [{"topicName": "orders", "partitions": [0, 1]}]},
    }
    (without,) = data(classic("consumer", b"", b""))["members"]
    assert (without["subscribedTopicNames"], without["assignment"]) == ([], {"topicPartitions": []})


def test_bytes_that_are_not_a_consumers_are_called_base64_in_json() -> None:
    for group in (classic("connect", b"abc", b"xyz"), classic("consumer", b"a", b"x")):
        (member,) = data(group)["members"]
        assert {"metadataBase64", "assignmentBase64"} <= member.keys()
        assert not {"memberMetadata", "memberAssignment", "assignment"} & member.keys()


def data(group: DescribedGroup) -> dict[str, list[dict[str, object]]]:
    """The group as JSON."""
    described = description_of(type_of(group)).data(group)
    assert msgspec.json.decode(msgspec.json.encode(described)) == described
    return described
