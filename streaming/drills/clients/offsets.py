"""Commits and fetches of the drills' groups, and which acknowledged commits are missing."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from coordinator_logic import apis
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    GroupToFetch,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionToCommit,
    TopicToCommit,
)
from streaming.client import Answer, CoordinatorClient, CoordinatorError, Generation

TOPIC = "drill-records"
"""The topic of the drills' offsets. Members over topics commit for it without reading it."""

Place = tuple[str, int]
"""A group and a partition."""


class Ledger:
    """The highest offset that each place has acknowledged. Thread-safe.

    Every place commits ascending offsets, so a committed offset below the acknowledged one means a lost commit.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._acknowledged: dict[Place, int] = {}
        self.count = 0

    def acknowledge(self, place: Place, offset: int) -> None:
        """Note an acknowledged commit."""
        with self._lock:
            self._acknowledged[place] = max(offset, self._acknowledged.get(place, -1))
            self.count += 1

    def outcome(self, place: Place, offset: int, answered: Future[Answer[OffsetCommitResponse]]) -> str:
        """Note an answered commit if it was acknowledged; returns its error, empty for none."""
        try:
            response = answered.result().unwrap()
        except CoordinatorError as failure:
            return str(failure)
        codes = {each.error_code for topic in response.topics for each in topic.partitions} - {Error.NONE}
        if not codes:
            self.acknowledge(place, offset)
        return ", ".join(Error(code).name for code in codes)

    def acknowledged(self) -> dict[Place, int]:
        """The acknowledged offset of each place that has one."""
        with self._lock:
            return dict(self._acknowledged)


def lost(acknowledged: Mapping[Place, int], committed: Mapping[Place, int]) -> list[str]:
    """What is missing: a sentence for each place whose committed offset is below the one acknowledged before it."""
    return [
        f"partition {partition} of group {group} has offset {committed.get((group, partition), -1)}, "
        f"but {offset} was acknowledged"
        for (group, partition), offset in sorted(acknowledged.items())
        if committed.get((group, partition), -1) < offset
    ]


def commit(
    client: CoordinatorClient, group: str, offsets: Mapping[int, int], generation: Generation | None = None
) -> Future[Answer[OffsetCommitResponse]]:
    """Send a commit of offsets by partition, as a member of ``generation`` or for a group without members."""
    member = generation or Generation()
    partitions = [PartitionToCommit(partition, offset) for partition, offset in offsets.items()]
    request = OffsetCommitRequest(group, [TopicToCommit(TOPIC, partitions)], member.generation_id, member.member_id)
    return client.ask(apis.OFFSET_COMMIT, group, request)


def fetch(client: CoordinatorClient, group: str) -> Future[Answer[OffsetFetchResponse]]:
    """Ask for all committed offsets of a group."""
    return client.ask(apis.OFFSET_FETCH, group, OffsetFetchRequest(groups=[GroupToFetch(group)]))


def committed(answer: Answer[OffsetFetchResponse]) -> dict[Place, int]:
    """The committed offsets in an answer. Raises CoordinatorError."""
    return {
        (fetched.group_id, each.partition_index): each.committed_offset
        for fetched in answer.unwrap().groups
        for topic in fetched.topics
        for each in topic.partitions
    }


def committed_of(client: CoordinatorClient, groups: Sequence[str]) -> dict[Place, int]:
    """The committed offsets of several groups. Raises CoordinatorError."""
    answers = [fetch(client, group) for group in groups]
    return {place: offset for answered in answers for place, offset in committed(answered.result()).items()}
