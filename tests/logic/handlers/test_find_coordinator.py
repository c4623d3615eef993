import pytest

from coordinator_logic.errors import Error
from coordinator_logic.messages import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from coordinator_logic.partitioning import hash_table_slot, java_string_hash, partition_for
from tests.logic.driver import Answer, Driven

HASHES = [
    ("", 0, 0),
    ("foo", 101574, 24),
    ("group-id", 506313513, 13),
    ("my-group", -1906497762, 12),
    ("grp-😀", -1235730613, 13),
    ("polygenelubricants", -2147483648, 0),
]


@pytest.mark.parametrize(("group_id", "java_hash", "partition"), HASHES)
def test_a_group_belongs_to_the_partition_that_kafka_would_choose(
    group_id: str, java_hash: int, partition: int
) -> None:
    assert java_string_hash(group_id) == java_hash
    assert partition_for(group_id, 50) == partition


def test_the_partition_depends_on_the_number_of_partitions() -> None:
    assert partition_for("foo", 10) == 4


def test_keys_come_in_the_order_of_a_brokers_hash_table() -> None:
    # What a TimelineHashMap of Kafka 4.3.1 gives for six keys.
    keys = [f"grp-{number}" for number in range(1, 7)]
    assert sorted(keys, key=hash_table_slot) == [f"grp-{number}" for number in (2, 4, 1, 6, 3, 5)]


def find(driven: Driven, request: FindCoordinatorRequest, version: int) -> Answer[FindCoordinatorResponse]:
    return driven.send("FindCoordinator", request, version=version)


@pytest.mark.parametrize("version", range(4))
def test_before_version_4_one_key_is_answered_at_the_top_level(version: int) -> None:
    driven = Driven(requests_partitions=50, requests_topic="requests")
    answer = find(driven, FindCoordinatorRequest(key="my-group"), version=version)
    assert answer.body == FindCoordinatorResponse(node_id=12, host="requests", port=12)
    assert not driven.exists


@pytest.mark.parametrize("version", range(4, 7))
def test_from_version_4_on_several_keys_are_answered_in_the_order_of_the_request(version: int) -> None:
    driven = Driven(requests_partitions=50, requests_topic="requests")
    answer = find(driven, FindCoordinatorRequest(coordinator_keys=["my-group", "", "foo"]), version=version)
    assert answer.body.coordinators == [
        Coordinator("my-group", 12, "requests", 12),
        Coordinator("", 0, "requests", 0),
        Coordinator("foo", 24, "requests", 24),
    ]


@pytest.mark.parametrize("key_type", [1, 2, 7])
def test_only_groups_have_a_coordinator_here(driven: Driven, key_type: int) -> None:
    old = find(driven, FindCoordinatorRequest(key="foo", key_type=key_type), version=3)
    assert old.error is Error.INVALID_REQUEST
    assert (old.body.error_code, old.body.node_id, old.body.host, old.body.port) == (42, -1, "", -1)

    new = find(driven, FindCoordinatorRequest(key_type=key_type, coordinator_keys=["foo"]), version=4)
    assert new.error is Error.INVALID_REQUEST
    assert new.body.coordinators == [Coordinator("foo", -1, "", -1, 42, "INVALID_REQUEST")]
