"""Commits and fetches a group's offsets with the consumer's current membership.

Source: ConsumerCoordinator of Kafka's Java client; KIP-447 (a fetch waits until no transaction is open).
"""

import logging
import time
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from dataclasses import dataclass

from coordinator_logic import apis
from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.embedded_protocols.primitives import grouped_by_topic
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
from streaming.client.answers import Answer
from streaming.client.consumer.types import CommitCallback, OffsetAndMetadata, Offsets
from streaming.client.coordinator_client import CoordinatorClient
from streaming.client.errors import (
    CommitFailed,
    CoordinatorError,
    RebalanceInProgress,
    RequestTimedOut,
    coordinator_error,
)
from streaming.client.membership.group_member import GroupMember
from streaming.client.membership.membership_state import Generation

log = logging.getLogger(__name__)

CommittedOffsets = dict[TopicPartition, OffsetAndMetadata | None]


@dataclass(frozen=True)
class _Commit:
    """A commit whose answer is outstanding, or has not been processed."""

    offsets: Offsets
    generation: Generation
    answer: Future[Answer[OffsetCommitResponse]]
    callback: CommitCallback | None = None


class GroupOffsets:
    """The committed offsets of one member's group. Not thread-safe."""

    def __init__(self, client: CoordinatorClient, member: GroupMember) -> None:
        self._client = client
        self._member = member
        self._group_id = member.config.group_id
        self._retry_backoff = member.config.retry_backoff_ms / 1000
        self._asynchronous: list[_Commit] = []

    # ----------------------------------------------------------------------------------------------------------
    # Commit

    def commit(self, offsets: Offsets, deadline: float) -> None:
        """Commit and wait; retries retriable errors until ``deadline`` (of the monotonic clock).

        Raises:
            CommitFailed: this consumer is no longer a member; its partitions have other owners.
            RebalanceInProgress: the group is rebalancing; poll, then commit the partitions that are still assigned.
            CoordinatorError: any other error, with the coordinator's error code.
        """
        while True:
            commit = self._send(offsets, max(0.0, deadline - time.monotonic()))
            failure = self._outcome(commit)
            self.run_callbacks()
            if failure is None:
                return
            # The epoch of a consumer group's member may move on while the commit is on its way.
            is_outdated = failure.error is Error.STALE_MEMBER_EPOCH and self._member.generation != commit.generation
            if not (failure.retriable or is_outdated) or time.monotonic() + self._retry_backoff >= deadline:
                raise failure
            time.sleep(self._retry_backoff)

    def commit_async(self, offsets: Offsets, callback: CommitCallback | None) -> None:
        """Send a commit without retries; :meth:`run_callbacks` reports its result."""
        timeout = self._client.request_timeout_ms / 1000
        try:
            self._asynchronous.append(self._send(offsets, timeout, callback))
        except CoordinatorError as failure:
            _report(callback, offsets, failure)

    def run_callbacks(self) -> None:
        """Call the callbacks of answered asynchronous commits, in the order in which the commits were sent."""
        while self._asynchronous and self._asynchronous[0].answer.done():
            commit = self._asynchronous.pop(0)
            _report(commit.callback, commit.offsets, self._outcome(commit))

    def await_asynchronous(self, timeout: float) -> None:
        """Wait for the answers to asynchronous commits, at most ``timeout`` seconds, and call their callbacks."""
        wait_for_futures([commit.answer for commit in self._asynchronous], timeout)
        self.run_callbacks()

    def _send(self, offsets: Offsets, timeout: float, callback: CommitCallback | None = None) -> _Commit:
        generation = self._member.generation
        if not generation.is_member:
            raise CommitFailed(Error.UNKNOWN_MEMBER_ID, f"this consumer is not a member of group {self._group_id!r}")
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
        """Wait for the answer; returns its error, if any, after the member has handled it."""
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
        self._member.handle_error(failure.error, commit.generation, "OffsetCommit")
        current = self._member.generation
        if failure.error is Error.STALE_MEMBER_EPOCH and current.is_member and current != commit.generation:
            return failure
        if failure.error not in (Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.STALE_MEMBER_EPOCH):
            return failure
        if current.is_member and failure.error is not Error.STALE_MEMBER_EPOCH:
            return RebalanceInProgress(
                f"group {self._group_id!r} rebalanced before the commit was answered; poll, then commit again"
            )
        return CommitFailed(
            failure.error,
            f"group {self._group_id!r} has rebalanced without this consumer, and its partitions have other owners; "
            "either the time between two polls exceeded max_poll_interval_ms, or heartbeats did not arrive in time",
        )

    # ----------------------------------------------------------------------------------------------------------
    # Fetch

    def fetch(self, partitions: Iterable[TopicPartition], timeout: float) -> "OffsetFetch":
        """Request committed offsets; the coordinator reports them once no transaction on them is open."""
        topics = [TopicToFetch(topic, numbers) for topic, numbers in grouped_by_topic(partitions).items()]
        request = OffsetFetchRequest(groups=[GroupToFetch(self._group_id, topics)], require_stable=True)
        answer = self._client.ask(apis.OFFSET_FETCH, self._group_id, request, timeout_ms=int(timeout * 1000))
        return OffsetFetch(self._group_id, answer)

    def committed(self, partitions: list[TopicPartition], deadline: float) -> CommittedOffsets:
        """The committed offset of each partition, None if it has none; retries until ``deadline``.

        Raises:
            CoordinatorError: the group or one of the partitions has an error; RequestTimedOut without an answer.
        """
        while True:
            try:
                return self.fetch(partitions, max(0.0, deadline - time.monotonic())).result()
            except CoordinatorError as failure:
                if not failure.retriable or time.monotonic() + self._retry_backoff >= deadline:
                    raise
            time.sleep(self._retry_backoff)


class OffsetFetch:
    """An OffsetFetch request that was sent."""

    def __init__(self, group_id: str, answer: Future[Answer[OffsetFetchResponse]]) -> None:
        self._group_id = group_id
        self._answer = answer

    def wait(self, timeout: float) -> bool:
        """Wait for the answer, at most ``timeout`` seconds; returns whether it has arrived."""
        return bool(wait_for_futures([self._answer], timeout).done)

    def result(self) -> CommittedOffsets:
        """The committed offset of each requested partition, None if it has none.

        Raises:
            CoordinatorError: the group or one of the partitions has an error; RequestTimedOut without an answer.
        """
        for group in self._answer.result().unwrap().groups:
            return self._committed(group)
        raise RequestTimedOut(f"the answer to OffsetFetch for group {self._group_id!r} does not contain the group")

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


def _report(callback: CommitCallback | None, offsets: Offsets, failure: CoordinatorError | None) -> None:
    if callback is not None:
        callback(offsets, failure)
    elif failure is not None:
        log.warning("an asynchronous commit failed: %s", failure)
