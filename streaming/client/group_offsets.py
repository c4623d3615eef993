"""Commits a group's positions and fetches them back, as the member that the consumer is at that moment.

Source: ConsumerCoordinator of Kafka's Java client; KIP-447 (a fetch waits until no transaction is open).
"""

import logging
import time
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from dataclasses import dataclass

from coordinator_logic.consumer_protocol import TopicPartition
from coordinator_logic.consumer_protocol.primitives import grouped_by_topic
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    FetchedGroup,
    GroupToFetch,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionToCommit,
    TopicToCommit,
    TopicToFetch,
)
from streaming.client import apis
from streaming.client.apis import Answer
from streaming.client.consumer_types import CommitCallback, OffsetAndMetadata, Offsets
from streaming.client.coordinator_client import CoordinatorClient
from streaming.client.errors import (
    CommitFailed,
    CoordinatorError,
    RebalanceInProgress,
    RequestTimedOut,
    coordinator_error,
)
from streaming.client.group_member import GroupMember
from streaming.client.membership import Generation

log = logging.getLogger(__name__)

RETRY_BACKOFF_SECONDS = 0.1

CommittedOffsets = dict[TopicPartition, OffsetAndMetadata | None]


@dataclass(frozen=True)
class _Commit:
    """A commit under way."""

    offsets: Offsets
    sent_as: Generation
    answer: Future[Answer[OffsetCommitResponse]]
    callback: CommitCallback | None = None


class GroupOffsets:
    """The committed offsets of one member's group. Belongs to the consumer's thread."""

    def __init__(self, client: CoordinatorClient, member: GroupMember) -> None:
        self._client = client
        self._member = member
        self._group_id = member.config.group_id
        self._asynchronous: list[_Commit] = []

    # ----------------------------------------------------------------------------------------------------------
    # Commit

    def commit(self, offsets: Offsets, deadline: float) -> None:
        """Commit and wait; retries what can be retried until ``deadline``, of the monotonic clock.

        Raises:
            CommitFailed: this consumer is no longer a member; its partitions are others' by now.
            RebalanceInProgress: the group is rebalancing; poll, then commit what is still assigned.
            CoordinatorError: anything else, with the coordinator's error code.
        """
        while True:
            commit = self._send(offsets, max(0.0, deadline - time.monotonic()))
            failure = self._outcome(commit)
            self.call_back()
            if failure is None:
                return
            if not failure.retriable or time.monotonic() + RETRY_BACKOFF_SECONDS >= deadline:
                raise failure
            time.sleep(RETRY_BACKOFF_SECONDS)

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        """Send a commit, which is not repeated; :meth:`call_back` tells what became of it."""
        timeout = self._client.request_timeout_ms / 1000
        try:
            self._asynchronous.append(self._send(offsets, timeout, callback))
        except CoordinatorError as failure:
            _tell(callback, offsets, failure)

    def call_back(self) -> None:
        """Call the callbacks of asynchronous commits that have been answered, in the order of sending."""
        while self._asynchronous and self._asynchronous[0].answer.done():
            commit = self._asynchronous.pop(0)
            _tell(commit.callback, commit.offsets, self._outcome(commit))

    def await_asynchronous(self, timeout: float) -> None:
        """Wait for asynchronous commits, at most ``timeout`` seconds, and call their callbacks."""
        wait_for_futures([commit.answer for commit in self._asynchronous], timeout)
        self.call_back()

    def _send(self, offsets: Offsets, timeout: float, callback: CommitCallback | None = None) -> _Commit:
        generation = self._member.generation
        if not generation.is_member:
            raise CommitFailed(
                Error.UNKNOWN_MEMBER_ID, f"this consumer is not a member of group {self._group_id!r} at present"
            )
        request = OffsetCommitRequest(
            self._group_id,
            [
                TopicToCommit(topic, [_to_commit(number, offsets[TopicPartition(topic, number)]) for number in numbers])
                for topic, numbers in grouped_by_topic(offsets).items()
            ],
            generation.generation_id,
            generation.member_id,
            self._member.config.group_instance_id,
        )
        answer = self._client.ask(apis.OFFSET_COMMIT, self._group_id, request, timeout_ms=int(timeout * 1000))
        return _Commit(offsets, generation, answer, callback)

    def _outcome(self, commit: _Commit) -> CoordinatorError | None:
        """Wait for the answer; what the member must know of it, it is told."""
        try:
            response = commit.answer.result().unwrap()
        except CoordinatorError as failure:
            return self._group_failure(commit, failure)
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code != Error.NONE:
                    return coordinator_error(
                        partition.error_code, f"commit of {topic.name}-{partition.partition_index}"
                    )
        return None

    def _group_failure(self, commit: _Commit, failure: CoordinatorError) -> CoordinatorError:
        self._member.heard(failure.error, commit.sent_as, "OffsetCommit")
        if failure.error not in (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID):
            return failure
        if self._member.generation.is_member:
            return RebalanceInProgress(
                f"group {self._group_id!r} rebalanced while the commit was under way; poll, then commit again"
            )
        return CommitFailed(
            failure.error,
            f"group {self._group_id!r} has rebalanced and given the partitions to others; the time between two "
            "polls was longer than max_poll_interval_ms, or heartbeats did not get through",
        )

    # ----------------------------------------------------------------------------------------------------------
    # Fetch

    def fetch(self, partitions: Iterable[TopicPartition], timeout: float) -> "OffsetFetch":
        """Ask for committed offsets, not before every transaction on them has ended."""
        topics = [TopicToFetch(topic, numbers) for topic, numbers in grouped_by_topic(partitions).items()]
        request = OffsetFetchRequest(groups=[GroupToFetch(self._group_id, topics)], require_stable=True)
        answer = self._client.ask(apis.OFFSET_FETCH, self._group_id, request, timeout_ms=int(timeout * 1000))
        return OffsetFetch(self._group_id, answer)

    def committed(self, partitions: list[TopicPartition], deadline: float) -> CommittedOffsets:
        """Committed offsets, None where there is none; waits until ``deadline``, of the monotonic clock."""
        while True:
            try:
                return self.fetch(partitions, max(0.0, deadline - time.monotonic())).result()
            except CoordinatorError as failure:
                if not failure.retriable or time.monotonic() + RETRY_BACKOFF_SECONDS >= deadline:
                    raise
            time.sleep(RETRY_BACKOFF_SECONDS)


class OffsetFetch:
    """An OffsetFetch under way."""

    def __init__(self, group_id: str, answer: Future[Answer[OffsetFetchResponse]]) -> None:
        self._group_id = group_id
        self._answer = answer

    def wait(self, timeout: float) -> bool:
        """Wait for the answer; whether it has come."""
        return bool(wait_for_futures([self._answer], timeout).done)

    def result(self) -> CommittedOffsets:
        """What is committed for each partition that was asked for; None where nothing is.

        Raises:
            CoordinatorError: the group or one of its partitions was answered with an error.
        """
        for group in self._answer.result().unwrap().groups:
            return self._committed(group)
        raise RequestTimedOut(f"OffsetFetch for group {self._group_id!r} was answered for other groups")

    def _committed(self, group: FetchedGroup) -> CommittedOffsets:
        if group.error_code != Error.NONE:
            raise coordinator_error(group.error_code, f"OffsetFetch for group {group.group_id!r}")
        committed: CommittedOffsets = {}
        for topic in group.topics:
            for found in topic.partitions:
                partition = TopicPartition(topic.name, found.partition_index)
                if found.error_code != Error.NONE:
                    raise coordinator_error(found.error_code, f"committed offset of {partition}")
                offset = OffsetAndMetadata(found.committed_offset, found.metadata, found.committed_leader_epoch)
                committed[partition] = offset if found.committed_offset >= 0 else None
        return committed


def _to_commit(number: int, offset: OffsetAndMetadata) -> PartitionToCommit:
    return PartitionToCommit(number, offset.offset, offset.leader_epoch, committed_metadata=offset.metadata)


def _tell(callback: CommitCallback | None, offsets: Offsets, failure: CoordinatorError | None) -> None:
    if callback is not None:
        callback(offsets, failure)
    elif failure is not None:
        log.warning("asynchronous commit: %s", failure)
