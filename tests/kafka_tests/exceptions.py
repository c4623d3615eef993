"""Tests that cannot pass through job and gateway, or not always, by class and method, each with the reason."""

from collections.abc import Mapping, Sequence

_HEARTBEATS = "ConsumerGroupHeartbeatRequestTest"
_UNBATCHED = "$WithAssignmentBatchingDisabledTest"

_BY_REASON: Mapping[str, Sequence[str]] = {
    "Asks for brokers whose feature `group.version` is 0; the coordinator has consumer groups at any level": (
        "ConsumerGroupDescribeRequestTest#testConsumerGroupDescribeWhenFeatureFlagNotEnabled",
        "ConsumerIntegrationTest#testAsyncConsumerWithConsumerProtocolDisabled",
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
    "Asks for an assignor that is a Java class, which the coordinator cannot load": (
        "ConsumerIntegrationTest#testRackAwareAssignment",
    ),
    "Moves `__consumer_offsets` to another broker, and reads the metrics of the brokers' coordinators": (
        "ConsumerIntegrationTest#testSingleCoordinatorOwnershipAfterPartitionReassignment",
    ),
    "Counts all topics; the job writes in transactions, for which brokers create `__transaction_state`": (
        "PlaintextConsumerTest#testAsyncConsumerListTopics",
        "PlaintextConsumerTest#testClassicConsumerListTopics",
    ),
    "Stops a broker, and all tests share one cluster": (
        "ConsumerIntegrationTest#testLeaderEpoch",
        "DescribeConsumerGroupTest#testDescribeConsumerGroupWithoutLeaders",
        "PlaintextConsumerCommitTest#testCommitAsyncFailsWhenCoordinatorUnavailableDuringClose",
        "PlaintextConsumerTest#testAsyncConsumeCoordinatorFailover",
        "PlaintextConsumerTest#testAsyncConsumerCloseOnBrokerShutdown",
        "PlaintextConsumerTest#testClassicConsumerCloseOnBrokerShutdown",
        "PlaintextConsumerTest#testClassicConsumerCoordinatorFailover",
        "ResetConsumerGroupOffsetTest#testResetOffsetsWithOfflinePartitionNotInResetTarget",
        "ResetConsumerGroupOffsetTest#testResetOffsetsWithPartitionNoneLeader",
    ),
}

_BY_HASTE: Mapping[str, Sequence[str]] = {
    "Has a session of 100 ms, which can end before its member has the answer to a JoinGroup": (
        "PlaintextConsumerSubscriptionTest#testClassicConsumerUnsubscribeTopic",
        "PlaintextConsumerTest#testClassicConsumerPauseStateNotPreservedByRebalance",
    ),
    "Expects that a poll of 100 ms, which gets partitions, also gets their committed offsets": (
        "PlaintextConsumerCommitTest#testClassicConsumerAutoCommitIntercept",
    ),
}


def _by_test(by_reason: Mapping[str, Sequence[str]]) -> dict[str, str]:
    return {test: reason for reason, tests in by_reason.items() for test in tests}


CANNOT_RUN: Mapping[str, str] = _by_test(_BY_REASON)

MAY_FAIL: Mapping[str, str] = _by_test(_BY_HASTE)
"""They need answers sooner than a micro-batch gives them on every machine."""
