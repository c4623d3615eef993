"""Timeout policies of group APIs: how long to wait for the coordinator, and which error follows.

The coordinator is a job that restarts now and then, for seconds. Meanwhile clients must retry and keep their
membership, and no response may claim what is not known. Clients accept different errors for each API; the policies,
most of them beside the handlers, follow the sources of the Java client, librdkafka, kafka-python and aiokafka.

A request in the log is carried out once the job is back, whatever its client was answered. So a retriable error is
allowed only where carrying out a request twice, in log order, does no harm: a member's second join replaces its first,
a newer commit follows the older one, a second leave finds the member gone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from coordinator_logic.apis import Api
from coordinator_logic.errors import Error
from coordinator_logic.messages import Message


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

    listing_seconds: float = 4.0
    """How long ListGroups waits for the newest records of the directory."""

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


PolicyOf = Callable[[GroupTimeouts, Message | None], TimeoutPolicy]
"""The policy for a request; without the request, for every request of its API."""


def default_policy(timeouts: GroupTimeouts, _body: Message | None = None) -> TimeoutPolicy:
    """For admin clients and producers, whose connections carry no heartbeats: they retry the same request."""
    loading = Error.COORDINATOR_LOAD_IN_PROGRESS
    return TimeoutPolicy(timeouts.request_seconds, loading, loading)


def consumer_policy(timeouts: GroupTimeouts, _body: Message | None = None) -> TimeoutPolicy:
    """For requests that share a connection with heartbeats."""
    return default_policy(timeouts)._replace(seconds=timeouts.consumer_seconds)


class TimeoutPolicies:
    """The policies of all APIs, ``by_api`` name, with these timeouts."""

    def __init__(self, timeouts: GroupTimeouts, by_api: Mapping[str, PolicyOf]) -> None:
        self.timeouts = timeouts
        self.by_api = by_api

    def of(self, api: Api[Any, Any], body: Message | None = None) -> TimeoutPolicy:
        """The policy for a request; without the request, for every request of the API."""
        return self.by_api[api.name](self.timeouts, body)
