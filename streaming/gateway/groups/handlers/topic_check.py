"""The check of a request's topics, which a broker makes before its coordinator sees the request."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    CommittedPartition,
    CommittedTopic,
    DeletedPartition,
    DeletedTopic,
    TopicToCommit,
    TxnTopicToCommit,
)
from streaming.gateway.groups.backend import GroupBackend
from streaming.gateway.wire.client_request import Caller

ID_SECONDS = 1.0
"""How old the id at most is that goes with an offset. With the id of a deleted topic, the offset would be deleted."""
_COMMITTED = TopicToCommit | TxnTopicToCommit


class CheckedTopics(NamedTuple):
    """The topics of a request that the coordinator is asked for, and the response's entries for all others."""

    accepted: list[Any]
    rejected: list[Any]

    def merge(self, answered: Sequence[Any]) -> list[Any]:
        """The response's topics, see :func:`merged`."""
        return merged(self.rejected, answered)


def merged(rejected: Sequence[Any], answered: Sequence[Any]) -> list[Any]:
    """The topics of a response as a broker merges them: rejected partitions first, then answered ones.

    If there are both, a topic that the request names twice is there once; otherwise it stays as it was answered.
    """
    if not rejected:
        return list(answered)
    found: dict[str, Any] = {}
    for topic in (*rejected, *answered):
        # A topic whose id is unknown has no name.
        key = topic.name or topic.topic_id
        if key in found:
            topic = replace(topic, partitions=[*found[key].partitions, *topic.partitions])  # noqa: PLW2901
        found[key] = topic
    return list(found.values())


async def check_topics(
    backend: GroupBackend,
    caller: Caller,
    topics: Sequence[Any],
    response_topic: type[CommittedTopic] | type[DeletedTopic],
    response_partition: type[CommittedPartition] | type[DeletedPartition],
) -> CheckedTopics:
    """Split topics into those that exist and that the caller may read, and the rest; both keep the request's order.

    A topic may be in both: only some of the partitions that the request names may exist. Rejected partitions carry
    TOPIC_AUTHORIZATION_FAILED or UNKNOWN_TOPIC_OR_PARTITION. Raises :class:`CoordinatorNotAvailable` when Kafka does
    not say which topics exist.
    """
    named: dict[str, int] = {}
    for topic in topics:
        indexes = (partition.partition_index for partition in topic.partitions)
        named[topic.name] = max(named.get(topic.name, -1), *indexes, -1)
    accesses = await backend.authorizer.fitting_topics(
        caller, named, lambda name, access: named[name] < access.partitions, ID_SECONDS
    )
    accepted, rejected = [], []
    for topic in topics:
        access = accesses[topic.name]
        count = access.partitions if access.may_read else 0
        error = Error.UNKNOWN_TOPIC_OR_PARTITION if access.may_read else Error.TOPIC_AUTHORIZATION_FAILED
        existing = [partition for partition in topic.partitions if 0 <= partition.partition_index < count]
        missing = [partition for partition in topic.partitions if not 0 <= partition.partition_index < count]
        # The id is stored with the offsets, whether the client names it or not: a later topic of that name is another.
        of_id = {"topic_id": topic.topic_id or access.topic_id} if isinstance(topic, _COMMITTED) else {}
        if existing and of_id.get("topic_id"):
            backend.committed_topics.add((topic.name, of_id["topic_id"]))
        if existing:
            accepted.append(replace(topic, partitions=existing, **of_id))
        if missing:
            failed: list[Any] = [response_partition(partition.partition_index, error) for partition in missing]
            rejected.append(response_topic(topic.name, failed, **of_id))
    return CheckedTopics(accepted, rejected)
