"""A consumer of a group that this coordinator looks after, used as one uses Kafka's own.

    with Consumer("localhost:9092", "invoices", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"])
        while True:
            for record in consumer.poll(1.0):
                ...

Membership and offsets go over the coordinator's topics; records come from the brokers, through librdkafka.
"""

import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Self

from coordinator_logic.consumer_protocol import TopicPartition
from coordinator_logic.errors import Error
from streaming.client.consumer_coordinator import ConsumerCoordinator
from streaming.client.consumer_types import (
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
from streaming.client.fetcher import Fetcher
from streaming.client.group_offsets import RETRY_BACKOFF_SECONDS, OffsetFetch
from streaming.client.membership import Generation
from streaming.client.subscription_state import SubscriptionState

_FETCH_SECONDS = 0.1
"""How long a poll waits for records before it looks after the membership again."""


class Consumer:
    """One member of a consumer group. Not for several threads: a call while another is under way is refused.

    ``settings`` are the other fields of :class:`~streaming.client.consumer_types.ConsumerConfig`. Timeouts of
    methods are in seconds; where there is none, ``default_api_timeout_ms`` holds.

    Call :meth:`poll` at least every ``max_poll_interval_ms``: the consumer leaves the group otherwise. All
    callbacks come from inside these methods.
    """

    def __init__(self, bootstrap_servers: str, group_id: str, **settings: Any) -> None:
        self.config = config = ConsumerConfig(bootstrap_servers=bootstrap_servers, group_id=group_id, **settings)
        self._owner = threading.RLock()
        self._closed = False
        self._state = SubscriptionState()
        self._fetch: OffsetFetch | None = None
        self._fetch_generation: Generation | None = None
        self._next_fetch = 0.0
        with ExitStack() as undo:
            self._client = undo.enter_context(
                CoordinatorClient(
                    config.bootstrap_servers,
                    topic_prefix=config.topic_prefix,
                    client_id=config.client_id,
                    request_timeout_ms=config.request_timeout_ms,
                    config=config.config,
                )
            )
            self._fetcher = Fetcher(config)
            undo.callback(self._fetcher.close)
            self._coordinator = ConsumerCoordinator(self._client, config, self._state, self._fetcher)
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
        """Want these topics instead of what was wanted before; the next polls join the group for them.

        A regular expression, given as ``pattern`` or compiled in the place of the topics, stands for every topic whose
        whole name it matches, also those that are created later. Internal topics do not match unless
        ``exclude_internal_topics`` is False.

        Raises:
            RuntimeError: topics are wanted instead of a pattern, or a pattern instead of topics: unsubscribe first.
            re.error: ``pattern`` is no regular expression.
            TypeError: ``topics`` is a single name.
        """
        if isinstance(topics, str):
            raise TypeError(f"topics is {topics!r}: give a list of names, or a pattern")
        with self._alone():
            if isinstance(topics, re.Pattern):
                names, pattern = frozenset[str](), topics
            else:
                names = frozenset(topics)
            if names and pattern is not None:
                raise ValueError("topics and a pattern exclude each other")
            if not names and pattern is None:
                self.unsubscribe()
                return
            self._coordinator.subscribe(names, None if pattern is None else self.config.topic_pattern(pattern))
            self._state.listener = RebalanceListener() if listener is None else listener

    def unsubscribe(self) -> None:
        """Give up all partitions and leave the group; a static member stays in it."""
        with self._alone():
            self._coordinator.unsubscribe()

    @property
    def subscription(self) -> frozenset[str]:
        """The topics that are wanted; with a pattern those that matched it last."""
        return self._state.topics

    @property
    def assignment(self) -> list[TopicPartition]:
        """The partitions that this consumer has, sorted; may be read from any thread."""
        return self._state.assigned

    @property
    def generation(self) -> Generation:
        """Generation, member id and assignor of the membership at this moment."""
        return self._coordinator.member.generation

    def close(self) -> None:
        """Commit (if auto-commit is on), give up the partitions, leave the group (if dynamic), disconnect.

        Without an answer of the coordinator each of commit and leaving is given up after ``request_timeout_ms``.
        """
        if self._closed:
            return
        with self._alone():
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
        """Records, at most ``max_poll_records``; waits up to ``timeout`` seconds for the first.

        Does all that a member has to do: joins, rebalances (calling the listener), commits if auto-commit is on.

        Raises:
            FencedInstanceId: another process has this consumer's instance id; close it.
            CoordinatorError: the group does not take this consumer.
            NoOffsetForPartition: there is no position to begin at, and ``auto_offset_reset`` is none.
            confluent_kafka.KafkaException: records cannot be fetched.
        """
        deadline = time.monotonic() + timeout
        with self._alone():
            if not self._state.is_subscribed:
                raise RuntimeError("the consumer is not subscribed to any topic")
            while True:
                self._offsets.call_back()
                self._coordinator.auto_commit_if_due()
                self._coordinator.poll(self._patience(deadline))
                self._find_positions(time.monotonic() + self._patience(deadline))
                records = self._fetcher.poll(min(_FETCH_SECONDS, max(0.0, deadline - time.monotonic())))
                self._state.consumed(records)
                if records or time.monotonic() >= deadline:
                    return records

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The offset of the next record that will be handed out of an assigned partition."""
        with self._alone():
            state = self._state[TopicPartition(*partition)]
            deadline = self._deadline(timeout)
            while state.position is None:
                self._find_positions(deadline)
                if state.position is None and time.monotonic() >= deadline:
                    raise RequestTimedOut(f"the position of {partition} is not known yet")
            return state.position.offset

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on from ``offset`` in an assigned partition."""
        if offset < 0:
            raise ValueError(f"offset {offset} is negative")
        with self._alone():
            self._start(TopicPartition(*partition), OffsetAndMetadata(offset))

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """Go on from the lowest offset that the log has."""
        with self._alone():
            for partition in partitions_of(partitions):
                self.seek(partition, self._fetcher.beginning_offset(partition))

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """Go on with what is appended from now on."""
        with self._alone():
            for partition in partitions_of(partitions):
                self.seek(partition, self._fetcher.end_offset(partition))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand out no records of these until they are resumed; the membership is not touched."""
        with self._alone():
            for partition in partitions_of(partitions):
                self._state[partition].paused = True
                self._fetcher.pause(partition)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand out records of these again."""
        with self._alone():
            for partition in partitions_of(partitions):
                self._state[partition].paused = False
                self._fetcher.resume(partition)

    @property
    def paused(self) -> list[TopicPartition]:
        """What is paused, sorted."""
        return self._state.paused

    # ----------------------------------------------------------------------------------------------------------
    # Offsets

    def commit(
        self,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit ``offsets``, or the position of every assigned partition, and wait until it is done.

        Raises:
            CommitFailed: the group has given the partitions to others.
            RebalanceInProgress: the group is rebalancing; poll, then commit what is still assigned.
            CoordinatorError: anything else, e.g. OFFSET_METADATA_TOO_LARGE.
        """
        with self._alone():
            to_commit = self._state.positions if offsets is None else offsets_of(offsets)
            if to_commit:
                self._offsets.commit(to_commit, self._deadline(timeout))

    def commit_async(
        self,
        callback: CommitCallback | None = None,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | None = None,
    ) -> None:
        """Commit without waiting. A later ``poll``, ``commit`` or ``close`` calls ``callback(offsets, error)``."""
        with self._alone():
            to_commit = self._state.positions if offsets is None else offsets_of(offsets)
            if to_commit:
                self._offsets.commit_async(to_commit, callback)

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed for any partitions; None where nothing."""
        with self._alone():
            return self._offsets.committed(partitions_of(partitions), self._deadline(timeout))

    # ----------------------------------------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse a call from another thread while one is under way; callbacks may call back in."""
        if not self._owner.acquire(blocking=False):
            raise RuntimeError("a consumer is not for several threads: another one is using it at this moment")
        try:
            if self._closed:
                raise RuntimeError("the consumer is closed")
            yield
        finally:
            self._owner.release()

    def _deadline(self, timeout: float | None) -> float:
        return time.monotonic() + (self.config.default_api_timeout_ms / 1000 if timeout is None else timeout)

    def _patience(self, deadline: float) -> float:
        """How long a poll may wait for the coordinator: not at all while there are records to hand out."""
        return 0.0 if self._state.is_fetching else max(0.0, deadline - time.monotonic())

    def _find_positions(self, deadline: float) -> None:
        """Begin every new partition where the group left off, as far as that is known by ``deadline``."""
        if not self._state.without_position:
            return
        if self._fetch_generation != self.generation:
            # Others may have had the partition since, and have committed.
            self._fetch = None
        if self._fetch is None:
            if time.monotonic() < self._next_fetch:
                time.sleep(max(0.0, min(self._next_fetch, deadline) - time.monotonic()))
                return
            timeout = self.config.request_timeout_ms / 1000
            self._fetch_generation = self.generation
            self._fetch = self._offsets.fetch(self._state.without_position, timeout)
        if self._fetch.wait(max(0.0, deadline - time.monotonic())):
            fetch, self._fetch = self._fetch, None
            with self._retrying():
                self._begin_at(fetch.result())

    def _begin_at(self, committed: Mapping[TopicPartition, OffsetAndMetadata | None]) -> None:
        for partition in self._state.without_position:
            if partition in committed:
                # One by one: the others must not wait for a partition that is gone.
                with self._retrying():
                    self._start(partition, committed[partition] or self._reset_position(partition))

    @contextmanager
    def _retrying(self) -> Iterator[None]:
        try:
            yield
        except CoordinatorError as failure:
            if not failure.retriable:
                raise
            if failure.error is Error.UNKNOWN_TOPIC_OR_PARTITION:
                self._fetcher.met_unknown_partition = True
            self._next_fetch = time.monotonic() + RETRY_BACKOFF_SECONDS

    def _reset_position(self, partition: TopicPartition) -> OffsetAndMetadata:
        match self.config.auto_offset_reset:
            case "earliest":
                return OffsetAndMetadata(self._fetcher.beginning_offset(partition))
            case "latest":
                return OffsetAndMetadata(self._fetcher.end_offset(partition))
            case _:
                raise NoOffsetForPartition(
                    f"group {self.config.group_id!r} has no offset committed for {partition}, "
                    "and auto_offset_reset is none"
                )

    def _start(self, partition: TopicPartition, position: OffsetAndMetadata) -> None:
        state = self._state[partition]
        state.position = position
        self._fetcher.start(partition, position.offset, paused=state.paused)
