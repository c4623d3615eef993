"""The topics of a response that names some of them twice, as a broker merges them."""

from coordinator_logic.errors import Error
from coordinator_logic.messages import CommittedPartition, CommittedTopic
from streaming.gateway.groups.handlers.topic_check import merged


def topic(name: str, *partitions: int, error: Error = Error.NONE) -> CommittedTopic:
    return CommittedTopic(name, [CommittedPartition(each, error) for each in partitions])


def test_a_topic_that_is_answered_twice_stays_two_entries() -> None:
    answered = [topic("t", 0), topic("u", 0), topic("t", 1)]
    assert merged([], answered) == answered


def test_beside_a_rejected_partition_each_topic_has_one_entry() -> None:
    unknown = Error.UNKNOWN_TOPIC_OR_PARTITION
    rejected = [topic("t", 9, error=unknown), topic("gone", 0, error=unknown), topic("gone", 1, error=unknown)]
    found = merged(rejected, [topic("u", 0), topic("t", 0), topic("u", 1)])
    assert [each.name for each in found] == ["t", "gone", "u"]
    assert [(each.partition_index, each.error_code) for each in found[0].partitions] == [(9, unknown), (0, 0)]
    assert [each.partition_index for each in found[1].partitions] == [0, 1]
    assert [each.partition_index for each in found[2].partitions] == [0, 1]
