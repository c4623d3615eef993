"""Which of Kafka's test classes run on which cluster.

A test's annotation says what it asks of the brokers. All tests of a profile share one cluster and one coordinator, so
that a profile has the settings of its tests; those that ask for others are aborted there, and run in another profile.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

REBALANCE_DELAY = "group.initial.rebalance.delay.ms"
ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"
HEARTBEAT_INTERVAL = "group.consumer.heartbeat.interval.ms"
MIGRATION_POLICY = "group.consumer.migration.policy"
POLICIES = ("upgrade", "downgrade", "disabled")
AT_ONCE = {REBALANCE_DELAY: "0", ASSIGNMENT_INTERVAL: "0"}
# Tests expect several answers within an interval, by default a second; those of migrations never wait for its end.
SHORTLY_BATCHED = {REBALANCE_DELAY: "0", ASSIGNMENT_INTERVAL: "3000"}
BATCHED = {REBALANCE_DELAY: "0", ASSIGNMENT_INTERVAL: "60000", "group.consumer.max.assignment.interval.ms": "60000"}
FREQUENT_HEARTBEATS = {
    HEARTBEAT_INTERVAL: "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
}


class Profile(NamedTuple):
    """``settings`` are of brokers and coordinator, ``gateway_variables`` environment variables of the latter.

    ``classes`` may name a method behind ``#``.
    """

    classes: Sequence[str]
    settings: Mapping[str, str] = MappingProxyType({})
    brokers: int = 1
    gateway_variables: Mapping[str, str] = MappingProxyType({})


def _requests(*names: str) -> list[str]:
    return [f"kafka.server.{name}RequestTest" for name in names]


def _clients(*names: str) -> list[str]:
    return [f"org.apache.kafka.clients.consumer.{name}Test" for name in names]


def _tools(*names: str) -> list[str]:
    return [f"org.apache.kafka.tools.consumer.group.{name}Test" for name in names]


HEARTBEATS = "kafka.server.ConsumerGroupHeartbeatRequestTest"
MIGRATION = "kafka.server.ConsumerProtocolMigrationTest"
EXPIRY = "testStaticMemberRemovedAfterSessionTimeoutExpiryWhenNewGroupCoordinatorIsEnabled"
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
    "transactions": Profile(
        _requests("TxnOffsetCommit", "WriteTxnMarkers"),
        AT_ONCE,
        gateway_variables={"GROUP_COORDINATOR_GATEWAY_TRANSACTIONS_V2": "true"},
    ),
    "joins": Profile(_requests("JoinGroup", "SyncGroup"), {REBALANCE_DELAY: "1000"}),
    "heartbeats": Profile([HEARTBEATS], SHORTLY_BATCHED),
    "bidirectional": Profile([MIGRATION], BATCHED),
    **{policy: Profile([MIGRATION], BATCHED | {MIGRATION_POLICY: policy}) for policy in POLICIES},
    **{
        f"{policy}-unbatched": Profile([MIGRATION + UNBATCHED], AT_ONCE | {MIGRATION_POLICY: policy})
        for policy in POLICIES
    },
    "session": Profile(
        [f"{HEARTBEATS}#{EXPIRY}", f"{HEARTBEATS}{UNBATCHED}#{EXPIRY}"],
        AT_ONCE | {"group.consumer.session.timeout.ms": "5001", "group.consumer.min.session.timeout.ms": "5001"},
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
