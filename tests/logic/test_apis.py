"""The APIs with their keys and versions: a public contract, which is why the test repeats it."""

from coordinator_logic.apis import APIS

SERVED = {
    "OffsetCommit": (8, 0, 9),
    "OffsetFetch": (9, 0, 9),
    "FindCoordinator": (10, 0, 6),
    "JoinGroup": (11, 0, 9),
    "Heartbeat": (12, 0, 4),
    "LeaveGroup": (13, 0, 5),
    "SyncGroup": (14, 0, 5),
    "DescribeGroups": (15, 0, 6),
    "WriteTxnMarkers": (27, 0, 1),
    "TxnOffsetCommit": (28, 0, 5),
    "DeleteGroups": (42, 0, 2),
    "OffsetDelete": (47, 0, 0),
    "ConsumerGroupHeartbeat": (68, 0, 1),
    "ConsumerGroupDescribe": (69, 0, 1),
    "TopicsDeleted": (None, 0, 0),
    "TopicsDescribed": (None, 0, 0),
    "SetGroupConfig": (None, 0, 0),
    "ReadQuarantinedGroup": (None, 0, 0),
    "DropQuarantinedGroup": (None, 0, 0),
    "ResetOffsets": (None, 0, 0),
    "TakeOverOffsets": (None, 0, 0),
}


def test_each_api_is_served_under_kafkas_key_and_in_its_versions() -> None:
    assert {name: (api.key, api.min_version, api.max_version) for name, api in APIS.items()} == SERVED
