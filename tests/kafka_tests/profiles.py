"""Which of Kafka's test classes run on which cluster.

A test's annotation says what it asks of the brokers. All tests of a profile share one cluster and one coordinator, so
that a profile has the settings of its tests; those that ask for others are aborted there, and run in another profile.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

REBALANCE_DELAY = "group.initial.rebalance.delay.ms"
ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"
MIGRATION_POLICY = "group.consumer.migration.policy"
AT_ONCE = {REBALANCE_DELAY: "0", ASSIGNMENT_INTERVAL: "0"}
FREQUENT_HEARTBEATS = {
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
}


class Profile(NamedTuple):
    """``settings`` are of brokers and coordinator; ``classes`` may name a method behind ``#``."""

    classes: Sequence[str]
    settings: Mapping[str, str] = MappingProxyType({})
    brokers: int = 1


def _requests(*names: str) -> list[str]:
    return [f"kafka.server.{name}RequestTest" for name in names]


def _clients(*names: str) -> list[str]:
    return [f"org.apache.kafka.clients.consumer.{name}Test" for name in names]


def _tools(*names: str) -> list[str]:
    return [f"org.apache.kafka.tools.consumer.group.{name}Test" for name in names]


HEARTBEATS = "kafka.server.ConsumerGroupHeartbeatRequestTest"
MIGRATION = "kafka.server.ConsumerProtocolMigrationTest"
UNBATCHED = "$WithAssignmentBatchingDisabledTest"

PROFILES: Mapping[str, Profile] = {
    "requests": Profile(
        [
            *_requests("Heartbeat", "LeaveGroup", "DescribeGroups", "DeleteGroups", "OffsetDelete"),
            *_requests("ConsumerGroupDescribe", "ListGroups", "OffsetCommit", "OffsetFetch"),
            HEARTBEATS + UNBATCHED,
            MIGRATION + UNBATCHED,
        ],
        AT_ONCE,
    ),
    "transactions": Profile(_requests("TxnOffsetCommit", "WriteTxnMarkers"), AT_ONCE),
    "joins": Profile(_requests("JoinGroup", "SyncGroup"), {REBALANCE_DELAY: "1000"}),
    "batching": Profile([HEARTBEATS, MIGRATION], {REBALANCE_DELAY: "0"}),
    "upgrade": Profile([MIGRATION], {REBALANCE_DELAY: "0", MIGRATION_POLICY: "upgrade"}),
    "downgrade": Profile([MIGRATION], {REBALANCE_DELAY: "0", MIGRATION_POLICY: "downgrade"}),
    "disabled": Profile([MIGRATION], {REBALANCE_DELAY: "0", MIGRATION_POLICY: "disabled"}),
    "session": Profile(
        [f"{HEARTBEATS}#testStaticMemberRemovedAfterSessionTimeoutExpiryWhenNewGroupCoordinatorIsEnabled"],
        {"group.consumer.session.timeout.ms": "5001", "group.consumer.min.session.timeout.ms": "5001"},
    ),
    "tools": Profile(
        _tools(
            *("DeleteConsumerGroups", "DeleteOffsetsConsumerGroupCommandIntegration", "ListConsumerGroup"),
            *("DescribeConsumerGroup", "ResetConsumerGroupOffset"),
        ),
        {REBALANCE_DELAY: "1000", **FREQUENT_HEARTBEATS},
    ),
    "commits": Profile(
        _clients("PlaintextConsumerCommit", "PlaintextConsumerClose", "PlaintextConsumerAssign", "ConsumerIntegration"),
        {REBALANCE_DELAY: "10"},
        brokers=3,
    ),
    "subscriptions": Profile(
        _clients("PlaintextConsumerSubscription", "PlaintextConsumerCallback"), {REBALANCE_DELAY: "10"}, brokers=3
    ),
    "subscriptions-unbatched": Profile(
        _clients("PlaintextConsumerSubscription", "ConsumerIntegration"),
        {REBALANCE_DELAY: "10", ASSIGNMENT_INTERVAL: "0"},
        brokers=3,
    ),
    "polls": Profile(_clients("PlaintextConsumerPoll"), {REBALANCE_DELAY: "10", **FREQUENT_HEARTBEATS}, brokers=3),
    "consumers": Profile(_clients("PlaintextConsumer", "PlaintextConsumerFetch"), {REBALANCE_DELAY: "10"}, brokers=3),
}
