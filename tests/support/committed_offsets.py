"""Commits offsets as a client without a group membership does; the topic need not exist."""

from coordinator_logic.messages import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from streaming.client import CoordinatorClient
from tests.support.coordinator_process import CoordinatorProcess


def commit_offsets(coordinator: CoordinatorProcess, group: str, *offsets: int, topic: str = "orders") -> None:
    """Commit an offset for each partition of a topic from 0 on. Fails if one is refused."""
    partitions = [PartitionToCommit(number, offset) for number, offset in enumerate(offsets)]
    with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix) as client:
        answer = client.offset_commit(OffsetCommitRequest(group, [TopicToCommit(topic, partitions)]))
    assert not any(each.error_code for topic in answer.topics for each in topic.partitions)
