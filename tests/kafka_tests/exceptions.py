"""Tests that cannot pass through job and gateway, by class and method, each with the reason."""

from collections.abc import Mapping, Sequence

_HEARTBEATS = "ConsumerGroupHeartbeatRequestTest"
_UNBATCHED = "$WithAssignmentBatchingDisabledTest"

_BY_REASON: Mapping[str, Sequence[str]] = {
    "Asks for brokers whose feature `group.version` is 0; the coordinator has consumer groups at any level": (
        "ConsumerGroupDescribeRequestTest#testConsumerGroupDescribeWhenFeatureFlagNotEnabled",
        f"{_HEARTBEATS}#testConsumerGroupHeartbeatIsInaccessibleWhenFeatureFlagNotEnabled",
        f"{_HEARTBEATS}{_UNBATCHED}#testConsumerGroupHeartbeatIsInaccessibleWhenFeatureFlagNotEnabled",
    ),
    "Asks for `group.coordinator.rebalance.protocols=classic`; no option of the coordinator refuses consumer groups": (
        f"{_HEARTBEATS}#testConsumerGroupHeartbeatIsInaccessibleWhenDisabledByStaticConfig",
        f"{_HEARTBEATS}{_UNBATCHED}#testConsumerGroupHeartbeatIsInaccessibleWhenDisabledByStaticConfig",
    ),
    "Expects NOT_COORDINATOR from brokers that have yet to create `__consumer_offsets`": (
        "OffsetFetchRequestTest#testGroupErrors",
    ),
    "Sends WriteTxnMarkers for `__consumer_offsets`, as the transaction coordinator does to a broker": (
        "WriteTxnMarkersRequestTest#testDelayedWriteTxnMarkersShouldNotCommitTxnOffsetWithNewConsumerGroupProtocol",
        "WriteTxnMarkersRequestTest#testDelayedWriteTxnMarkersShouldNotCommitTxnOffsetWithOldConsumerGroupProtocol",
    ),
}

CANNOT_RUN: Mapping[str, str] = {test: reason for reason, tests in _BY_REASON.items() for test in tests}
