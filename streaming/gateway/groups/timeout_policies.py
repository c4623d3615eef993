"""The timeout policy of each group API: how long to wait for the coordinator, and which error follows.

The coordinator is a job that restarts now and then, for seconds. Meanwhile clients must retry and keep their
membership, and no response may claim what is not known. Clients accept different errors for each API; the table follows
the sources of the Java client, librdkafka, kafka-python and aiokafka.

A request in the log is carried out once the job is back, whatever its client was answered. So a retriable error is
allowed only where carrying out a request twice, in log order, does no harm: a member's second join replaces its first,
a newer commit follows the older one, a second leave finds the member gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from coordinator_logic.apis import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
    TOPICS_DELETED,
    TOPICS_DESCRIBED,
    TXN_OFFSET_COMMIT,
    Api,
)
from coordinator_logic.errors import Error
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, JoinGroupRequest, Message

__all__ = ["GroupTimeouts", "TimeoutPolicies", "TimeoutPolicy"]


@dataclass(frozen=True, kw_only=True)
class GroupTimeouts:
    """The timeouts of the group APIs, in seconds."""

    consumer_seconds: float = 5.0
    """For heartbeats, OffsetCommit and OffsetFetch: Kafka's default for a commit (``offsets.commit.timeout.ms``).

    Responses leave a connection in order, so a longer wait would delay the heartbeats behind it. Kafka's shortest
    session is 6 s by default."""

    request_seconds: float = 25.0
    """For all other APIs: less than the 30 s after which clients close the connection (``request.timeout.ms``)."""

    leave_seconds: float = 4.0
    """For LeaveGroup: every client's ``close()`` waits for the response, librdkafka for at most 5 s."""

    join_margin_seconds: float = 5.0
    """For JoinGroup, added to the rebalance timeout, as the Java client does; librdkafka adds 3 s."""

    max_join_seconds: float = 1_800.0
    """The longest wait for JoinGroup, whatever rebalance timeout the client names: Kafka's longest session
    (``group.max.session.timeout.ms``). The client is then answered with an error after which it joins again with its
    member id, which replaces its earlier join. A wait ends earlier with the client's connection."""

    late_heartbeat_seconds: float = 25.0
    """How long after a heartbeat the coordinator's response to it still counts."""

    late_deletion_seconds: float = 120.0
    """How long after a DeleteGroups the coordinator's result still answers the same request of the same client: twice
    the patience of admin clients (``default.api.timeout.ms``)."""

    stall_seconds: float = 3.0
    """How long a broker may take to append a request event; then further events for it are not sent, and fail after as
    long.

    Less than every timeout above, so that the client learns that its request was not sent."""

    topic_lookup_seconds: float = 4.0
    """How long Kafka may take to say which topics exist."""

    topic_refresh_seconds: float = 5.0
    """How often the topics of consumer groups are looked up, so that the groups learn of changes."""


class TimeoutPolicy(NamedTuple):
    """How long to wait for a response, and the error without one.

    ``unanswered`` is the error for a request that is in the log, ``unsent`` for one that is not known to be: the client
    must send it again.
    """

    seconds: float
    unanswered: Error
    unsent: Error


class TimeoutPolicies:
    """The policies of all APIs, ``by_api`` name, with these timeouts."""

    def __init__(self, timeouts: GroupTimeouts) -> None:
        self.timeouts = timeouts
        self.by_api = _policies(timeouts)

    def for_request(self, api: Api[Any, Any], body: Message) -> TimeoutPolicy:
        """The policy for one request; a JoinGroup waits as long as its client does, a leave as long as a LeaveGroup."""
        policy = self.by_api[api.name]
        if isinstance(body, JoinGroupRequest):
            rebalance_seconds = max(body.rebalance_timeout_ms, body.session_timeout_ms) / 1000
            seconds = max(policy.seconds, rebalance_seconds + self.timeouts.join_margin_seconds)
            return policy._replace(seconds=min(seconds, self.timeouts.max_join_seconds))
        if isinstance(body, ConsumerGroupHeartbeatRequest) and not body.member_id:
            # The coordinator generates an id (v0): each repeated join would leave an unused member behind.
            return policy._replace(seconds=self.timeouts.request_seconds)
        if isinstance(body, ConsumerGroupHeartbeatRequest) and body.member_epoch < 0:
            return policy._replace(seconds=self.timeouts.leave_seconds)
        return policy


def _policies(timeouts: GroupTimeouts) -> Mapping[str, TimeoutPolicy]:
    loading = Error.COORDINATOR_LOAD_IN_PROGRESS
    consumer = TimeoutPolicy(timeouts.consumer_seconds, loading, loading)
    default = TimeoutPolicy(timeouts.request_seconds, loading, loading)
    return {
        # NONE without a response, as a broker answers while it loads a group. librdkafka gives up its member id when
        # no heartbeat succeeds for a session. The heartbeat in the log will extend the session, so NONE is true.
        # A heartbeat that is not in the log will not: the client looks up its coordinator and continues.
        HEARTBEAT.name: consumer._replace(unanswered=Error.NONE, unsent=Error.COORDINATOR_NOT_AVAILABLE),
        # Clients pause, then join again with the member id that they have. A join without an id leaves an unused
        # member behind each time it is repeated, hence the long wait.
        JOIN_GROUP.name: default,
        # COORDINATOR_LOAD_IN_PROGRESS is fatal to the Java client here. A broker that loads the group answers
        # REBALANCE_IN_PROGRESS: the client joins again with its id, without looking up the coordinator.
        SYNC_GROUP.name: default._replace(
            unanswered=Error.REBALANCE_IN_PROGRESS, unsent=Error.COORDINATOR_NOT_AVAILABLE
        ),
        # A client that leaves closes next, whatever the response; Java's admin client retries.
        LEAVE_GROUP.name: default._replace(seconds=timeouts.leave_seconds),
        # All clients retry the commit at the same coordinator.
        OFFSET_COMMIT.name: consumer,
        # The only retriable error here that all clients know: COORDINATOR_NOT_AVAILABLE ends the consumers of
        # kafka-python and aiokafka.
        OFFSET_FETCH.name: consumer,
        # After either error, Java's client sends its next heartbeat with all fields, and so does librdkafka after
        # COORDINATOR_NOT_AVAILABLE: the member is not fenced if the heartbeat in the log has advanced its epoch.
        # librdkafka repeats the same request after COORDINATOR_LOAD_IN_PROGRESS, so that must not be in the log.
        CONSUMER_GROUP_HEARTBEAT.name: consumer._replace(unanswered=Error.COORDINATOR_NOT_AVAILABLE),
        # Admin clients and producers, whose connections carry no heartbeats, retry the rest.
        DESCRIBE_GROUPS.name: default,
        CONSUMER_GROUP_DESCRIBE.name: default,
        DELETE_GROUPS.name: default,
        OFFSET_DELETE.name: default,
        TXN_OFFSET_COMMIT.name: default,
        # The gateway's own, which it repeats.
        TOPICS_DESCRIBED.name: default,
        TOPICS_DELETED.name: default,
    }
