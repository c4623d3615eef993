"""A consumer whose group this coordinator manages, with the methods of Kafka's own consumer.

    with Consumer("localhost:9092", "invoices", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"])
        while True:
            for record in consumer.poll(1.0):
                ...

Group requests go over the coordinator's topics; records come from the brokers, through librdkafka.
"""

import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Self

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.errors import Error
from streaming.client.consumer.committed_offsets import OffsetFetch
from streaming.client.consumer.fetcher import Fetcher
from streaming.client.consumer.group_coordination import ConsumerCoordinator
from streaming.client.consumer.reconciling_coordination import ReconcilingCoordinator
from streaming.client.consumer.subscription_state import SubscriptionState
from streaming.client.consumer.types import (
    CommitCallback,
    ConsumerConfig,
    ConsumerRecord,
    OffsetAndMetadata,
    RebalanceListener,
    offsets_of,
    partitions_of,
)
from streaming.client.coordinator_client import CoordinatorClient
from streaming.client.errors import CoordinatorError, NoOffsetForPartition, RequestTimedOut
from streaming.client.membership.membership_state import Generation
from streaming.client.membership.types import GroupProtocol

_COORDINATORS: Mapping[GroupProtocol, type[ConsumerCoordinator | ReconcilingCoordinator]] = {
    "classic": ConsumerCoordinator,
    "consumer": ReconcilingCoordinator,
}
"""The consumer's part in each protocol."""

_FETCH_SECONDS = 0.1
"""How long a poll waits for records before it continues with the group's work."""


class Consumer:
    """A member of a consumer group.

    bootstrap_servers: the brokers, as ``host:port,...``. group_id: the group.
    settings: the other fields of :class:`~streaming.client.ConsumerConfig`.

    Call :meth:`poll` at least every ``max_poll_interval_ms``; otherwise the consumer leaves the group. Timeouts of the
    methods are in seconds, and ``default_api_timeout_ms`` by default. Callbacks are called from these methods.

    A consumer is not for several threads: a call during a call from another thread raises RuntimeError, and so does
    every call after :meth:`close`. Methods that wait for the coordinator raise
    :class:`~streaming.client.CoordinatorError`.
    """

    def __init__(self, bootstrap_servers: str, group_id: str, **settings: Any) -> None:
        self.config = config = ConsumerConfig(bootstrap_servers=bootstrap_servers, group_id=group_id, **settings)
        self._owner = threading.RLock()
        self._closed = False
        self._state = SubscriptionState()
        self._offset_fetch: OffsetFetch | None = None
        self._offset_fetch_generation: Generation | None = None
        self._next_offset_fetch = 0.0
        with ExitStack() as undo:
            self._client = undo.enter_context(
                CoordinatorClient(
                    config.bootstrap_servers,
                    topic_prefix=config.topic_prefix,
                    client_id=config.client_id,
                    principal_key=config.principal_key,
                    request_timeout_ms=config.request_timeout_ms,
                    config=config.config,
                )
            )
            self._fetcher = Fetcher(config)
            undo.callback(self._fetcher.close)
            self._coordinator = _COORDINATORS[config.group_protocol](self._client, config, self._state, self._fetcher)
            undo.pop_all()
        self._offsets = self._coordinator.offsets

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    # ----------------------------------------------------------------------------------------------------------
    # Subscription and membership

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str] = (),
        listener: RebalanceListener | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
    ) -> None:
        """Replace the subscription; the next polls join the group with the new one.

        topics: names of topics; none of them, and no pattern, is the same as :meth:`unsubscribe`.
        listener: called on every change of the assignment.
        pattern: a regular expression, which may also be passed compiled in place of ``topics``. It subscribes to every
            topic whose whole name it matches, including topics that are created later. It does not match internal
            topics unless ``exclude_internal_topics`` is False. With ``group_protocol="consumer"``, the coordinator
            evaluates a string, which has RE2's syntax; a compiled pattern is evaluated here, as with Kafka's client.

        Raises:
            RuntimeError: topics would replace a pattern, or a pattern topics; call :meth:`unsubscribe` first.
            ValueError: both topics and a pattern are given.
            re.error: ``pattern`` is not a regular expression.
            TypeError: ``topics`` is a string.
        """
        if isinstance(topics, str):
            raise TypeError(f"topics is the string {topics!r}: pass a list of names, or a pattern")
        with self._exclusive():
            if isinstance(topics, re.Pattern):
                names, pattern = frozenset[str](), topics
            else:
                names = frozenset(topics)
            if names and pattern is not None:
                raise ValueError("subscribe to either topics or a pattern, not both")
            if not names and pattern is None:
                self.unsubscribe()
                return
            self._coordinator.subscribe(names, None if pattern is None else self.config.topic_pattern(pattern))
            self._state.listener = RebalanceListener() if listener is None else listener

    def unsubscribe(self) -> None:
        """Give up all partitions and leave the group; a static member stays in the group (KIP-345)."""
        with self._exclusive():
            self._coordinator.unsubscribe()

    @property
    def subscription(self) -> frozenset[str]:
        """The subscribed topics; with a pattern, the topics that it matched last."""
        return self._state.topics

    @property
    def assignment(self) -> list[TopicPartition]:
        """The partitions that this consumer owns, sorted. May be read from any thread."""
        return self._state.assigned

    @property
    def generation(self) -> Generation:
        """The current generation id, member id and assignor of the membership.

        With ``group_protocol="consumer"``, the generation id is the member epoch, and there is no assignor.
        """
        return self._coordinator.member.generation

    def close(self) -> None:
        """Commit (with auto-commit), give up the partitions, leave the group (unless static), and disconnect.

        Waits at most ``request_timeout_ms`` for the commit, and as long for the departure. Further calls do nothing.
        """
        if self._closed:
            return
        with self._exclusive():
            try:
                self._coordinator.close()
                self._offsets.await_asynchronous(self.config.request_timeout_ms / 1000)
            finally:
                self._closed = True
                self._fetcher.close()
                self._client.close()

    # ----------------------------------------------------------------------------------------------------------
    # Records

    def poll(self, timeout: float = 1.0) -> list[ConsumerRecord]:
        """Return records, at most ``max_poll_records``; wait up to ``timeout`` seconds for the first.

        Also does the member's work: joins, rebalances (calling the listener), and commits with auto-commit. Records of
        a partition come in the order of their offsets.

        Raises:
            RuntimeError: there is no subscription.
            FencedInstanceId: another process uses this consumer's ``group_instance_id``; close this one.
            UnreleasedInstanceId: with ``group_protocol="consumer"``, another process has joined with this
                ``group_instance_id`` before, and has neither left nor expired; the next poll retries.
            CoordinatorError: the group refuses this consumer, e.g. with INCONSISTENT_GROUP_PROTOCOL.
            NoOffsetForPartition: a partition has no valid position, and ``auto_offset_reset`` is ``none``.
            confluent_kafka.KafkaException: records cannot be fetched, e.g. for lack of authorization.
        """
        deadline = time.monotonic() + timeout
        with self._exclusive():
            if not self._state.is_subscribed:
                raise RuntimeError("the consumer is not subscribed to any topic")
            while True:
                self._offsets.run_callbacks()
                self._coordinator.assignment.auto_commit_if_due()
                self._coordinator.poll(self._coordinator_wait(deadline))
                self._find_positions(time.monotonic() + self._coordinator_wait(deadline))
                records = self._fetcher.poll(min(_FETCH_SECONDS, max(0.0, deadline - time.monotonic())))
                self._state.advance(records)
                if records or time.monotonic() >= deadline:
                    return records

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The offset of the next record that ``poll`` returns of an assigned partition.

        Raises:
            ValueError: the partition is not assigned to this consumer.
            RequestTimedOut: the committed offset is still unknown.
        """
        with self._exclusive():
            state = self._state[TopicPartition(*partition)]
            deadline = self._deadline(timeout)
            while state.position is None:
                self._find_positions(deadline)
                if state.position is None and time.monotonic() >= deadline:
                    raise RequestTimedOut(f"the position of {partition} is still unknown")
            return state.position.offset

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue at ``offset`` in an assigned partition. Raises ValueError for any other partition."""
        if offset < 0:
            raise ValueError(f"offset {offset} is negative")
        with self._exclusive():
            self._start(TopicPartition(*partition), OffsetAndMetadata(offset))

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """Continue at the lowest offset in the log of each of these assigned partitions."""
        with self._exclusive():
            for partition in partitions_of(partitions):
                self.seek(partition, self._fetcher.beginning_offset(partition))

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """Continue with the records that are appended from now on, in each of these assigned partitions."""
        with self._exclusive():
            for partition in partitions_of(partitions):
                self.seek(partition, self._fetcher.end_offset(partition))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these assigned partitions until :meth:`resume`. The group does not rebalance."""
        with self._exclusive():
            for partition in partitions_of(partitions):
                self._state[partition].paused = True
                self._fetcher.pause(partition)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of these paused partitions again."""
        with self._exclusive():
            for partition in partitions_of(partitions):
                self._state[partition].paused = False
                self._fetcher.resume(partition)

    @property
    def paused(self) -> list[TopicPartition]:
        """The assigned partitions that are paused, sorted."""
        return self._state.paused

    # ----------------------------------------------------------------------------------------------------------
    # Offsets

    def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit offsets and wait for the answer; retries retriable errors until ``timeout``.

        offsets: by partition, the offset of the next record to consume; by default the position of every assigned
            partition.

        Raises:
            CommitFailed: this consumer is no longer a member; its partitions have other owners.
            RebalanceInProgress: the group is rebalancing; poll, then commit the partitions that are still assigned.
            CoordinatorError: any other error, e.g. OFFSET_METADATA_TOO_LARGE.
        """
        with self._exclusive():
            to_commit = self._state.positions if offsets is None else offsets_of(offsets)
            if to_commit:
                self._offsets.commit(to_commit, self._deadline(timeout))

    def commit_async(
        self,
        callback: CommitCallback | None = None,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
    ) -> None:
        """Send a commit without waiting, and without retries.

        A later ``poll``, ``commit`` or ``close`` calls ``callback(offsets, error)``; ``error`` is None after success.
        Without a callback, errors are logged. ``offsets`` as in :meth:`commit`.
        """
        with self._exclusive():
            to_commit = self._state.positions if offsets is None else offsets_of(offsets)
            if to_commit:
                self._offsets.commit_async(to_commit, callback)

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The group's committed offset of each partition, None if it has none; any partitions may be queried."""
        with self._exclusive():
            return self._offsets.committed(partitions_of(partitions), self._deadline(timeout))

    # ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Raise if another thread is in a call, or if the consumer is closed. Callbacks may call the consumer."""
        if not self._owner.acquire(blocking=False):
            raise RuntimeError("a consumer is not thread-safe: another thread is using it")
        try:
            if self._closed:
                raise RuntimeError("the consumer is closed")
            yield
        finally:
            self._owner.release()

    def _deadline(self, timeout: float | None) -> float:
        return time.monotonic() + (self.config.default_api_timeout_ms / 1000 if timeout is None else timeout)

    def _coordinator_wait(self, deadline: float) -> float:
        """Seconds that a poll may wait for the coordinator: none while records can be fetched."""
        return 0.0 if self._state.is_fetching else max(0.0, deadline - time.monotonic())

    def _find_positions(self, deadline: float) -> None:
        """Start every new partition at its committed offset, as far as the offsets arrive before ``deadline``."""
        if not self._state.without_position:
            return
        if self._offset_fetch_generation != self.generation:
            # Another member may have owned the partition since, and committed.
            self._offset_fetch = None
        if self._offset_fetch is None:
            if time.monotonic() < self._next_offset_fetch:
                time.sleep(max(0.0, min(self._next_offset_fetch, deadline) - time.monotonic()))
                return
            timeout = self.config.request_timeout_ms / 1000
            self._offset_fetch_generation = self.generation
            self._offset_fetch = self._offsets.fetch(self._state.without_position, timeout)
        if self._offset_fetch.wait(max(0.0, deadline - time.monotonic())):
            fetch, self._offset_fetch = self._offset_fetch, None
            with self._delaying_retriable_errors():
                self._start_at(fetch.result())

    def _start_at(self, committed: Mapping[TopicPartition, OffsetAndMetadata | None]) -> None:
        for partition in self._state.without_position:
            if partition in committed:
                # One by one, so that a deleted partition does not delay the others.
                with self._delaying_retriable_errors():
                    self._start(partition, committed[partition] or self._reset_position(partition))

    @contextmanager
    def _delaying_retriable_errors(self) -> Iterator[None]:
        try:
            yield
        except CoordinatorError as failure:
            if not failure.retriable:
                raise
            if failure.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                self._fetcher.saw_unknown_partition = True
            self._next_offset_fetch = time.monotonic() + self.config.retry_backoff_ms / 1000

    def _reset_position(self, partition: TopicPartition) -> OffsetAndMetadata:
        match self.config.auto_offset_reset:
            case "earliest":
                return OffsetAndMetadata(self._fetcher.beginning_offset(partition))
            case "latest":
                return OffsetAndMetadata(self._fetcher.end_offset(partition))
            case _:
                raise NoOffsetForPartition(
                    f"group {self.config.group_id!r} has no committed offset for {partition}, "
                    "and auto_offset_reset is 'none'"
                )

    def _start(self, partition: TopicPartition, position: OffsetAndMetadata) -> None:
        state = self._state[partition]
        state.position = position
        self._fetcher.start(partition, position.offset, paused=state.paused)
