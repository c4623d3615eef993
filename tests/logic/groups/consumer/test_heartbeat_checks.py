"""Which heartbeats are refused for their fields alone."""

import msgspec
import pytest

from coordinator_logic.errors import Error
from coordinator_logic.groups.consumer.requests.heartbeat_checks import check_heartbeat
from coordinator_logic.messages.consumer_groups import ConsumerGroupHeartbeatRequest, TopicIdPartitions

ASSIGNORS = ("uniform", "range")
JOIN = ConsumerGroupHeartbeatRequest(
    "g", "m", 0, rebalance_timeout_ms=45_000, subscribed_topic_names=["t"], topic_partitions=[]
)
OWNED = [TopicIdPartitions("id", [0])]


def refusal_of(fields: dict[str, object], version: int = 1) -> Error | None:
    refusal = check_heartbeat(msgspec.structs.replace(JOIN, **fields), version, ASSIGNORS)
    return None if refusal is None else refusal.error


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"subscribed_topic_names": []},
        {"subscribed_topic_names": None, "subscribed_topic_regex": "t.*"},
        {"server_assignor": "range"},
        {"member_epoch": 5, "rebalance_timeout_ms": -1, "subscribed_topic_names": None, "topic_partitions": OWNED},
        {"member_epoch": -1},
        {"member_epoch": -2, "instance_id": "i"},
    ],
)
def test_valid_fields_are_accepted(fields: dict[str, object]) -> None:
    assert refusal_of(fields) is None


@pytest.mark.parametrize(
    "fields",
    [
        {"group_id": " "},
        {"member_id": ""},
        {"instance_id": ""},
        {"rack_id": " "},
        {"rebalance_timeout_ms": -1},
        {"topic_partitions": None},
        {"topic_partitions": OWNED},
        {"subscribed_topic_names": None},
        {"member_epoch": -2},
        {"member_epoch": -3},
    ],
)
def test_invalid_fields_are_refused(fields: dict[str, object]) -> None:
    assert refusal_of(fields) is Error.INVALID_REQUEST


@pytest.mark.parametrize(("epoch", "error"), [(0, None), (5, Error.INVALID_REQUEST), (-1, Error.INVALID_REQUEST)])
def test_in_version_0_only_a_join_may_lack_a_member_id(epoch: int, error: Error | None) -> None:
    assert refusal_of({"member_id": "", "member_epoch": epoch}, version=0) is error


def test_an_unknown_assignor_is_refused_after_all_other_checks() -> None:
    assert refusal_of({"server_assignor": "mine"}) is Error.UNSUPPORTED_ASSIGNOR
    assert refusal_of({"server_assignor": "mine", "rack_id": ""}) is Error.INVALID_REQUEST
