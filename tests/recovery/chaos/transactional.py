"""Members behind the gateway that commit their offsets in transactions, with librdkafka; recorded as the others are."""

import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import inf
from random import Random
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from coordinator_logic.errors import Error
from coordinator_logic.messages import NO_OFFSET
from tests.recovery.checker.history import Function, OpenOperation, Position, Recorder

POLL_SECONDS = 0.2
CALL_SECONDS = 5.0
INIT_SECONDS = 20.0
COMMIT_EVERY_SECONDS = 0.7
FETCH_AFTER_COMMITS = 4
"""After so many transactions a member reads its offsets again, as after an assignment."""

END_SECONDS = 60.0
SESSION_MS = 60_000
"""Longer than any fault: librdkafka gives its partitions up by its own clock."""

RETURN_SECONDS = 30.0
"""A call that has not returned by then never does: ``send_offsets_to_transaction`` of librdkafka 2.12 and 2.16 can wait
forever, whatever its limit, when a broker or the gateway was killed (docs/clients.md)."""

ABORT_SHARE = 0.25

NUL = "\0"
"""confluent-kafka 2.16 sends a metadata's closing NUL as a part of it, and leaves it out of what it returns."""

COMMON = {
    "reconnect.backoff.max.ms": 500,
    # When librdkafka 2.16.0 reaches no broker, it bootstraps again and forgets the group coordinator. Then
    # send_offsets_to_transaction never returns (confluentinc/librdkafka#5511).
    "metadata.recovery.strategy": "none",
    "log_level": 0,
}


class TransactionalMember:
    """A consumer and its transactional producer. ``bootstrap_servers`` is the gateway's address."""

    def __init__(
        self, recorder: Recorder, bootstrap_servers: str, group: str, topic: str, output: str, name: str, seed: int
    ) -> None:
        self.name = name
        self.committed = 0
        self.failures: list[str] = []
        """What librdkafka reported; while something is broken, some of it is to be expected."""
        self.crash: str | None = None
        """What has ended the member, beside the end of the run."""
        self._begun = 0
        self._committed_at = self._fetched_at = -inf
        self._recorder = recorder
        self._group = group
        self._topic = topic
        self._output = output
        self._chance = Random(seed)
        common = COMMON | {"bootstrap.servers": bootstrap_servers}
        self._consumer_settings: dict[str, Any] = common | {
            "group.id": group,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 1_000,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
        self._producer_settings: dict[str, Any] = common | {"transactional.id": f"{topic}-{name}", "linger.ms": 0}
        self._positions: dict[int, int] = {}
        self._owned: set[int] = set()

    @property
    def has_partitions(self) -> bool:
        """Whether it owns partitions now."""
        return bool(self._owned)

    def has_worked_since(self, moment: float) -> bool:
        """Whether a transaction and a fetch have succeeded that began at or after this moment (s, monotonic clock)."""
        return min(self._committed_at, self._fetched_at) >= moment

    def describe(self) -> str:
        """What it owns and has done, and its last failure."""
        last = self.failures[-1] if self.failures else "none"
        return f"{self.name}: partitions {sorted(self._owned)}, {self.committed} transactions, last failure: {last}"

    def run(self, ended: threading.Event) -> None:
        """Live until the end."""
        try:
            self._live(ended)
        except Exception:
            self.crash = traceback.format_exc()

    def _live(self, ended: threading.Event) -> None:
        consumer = Consumer(self._consumer_settings)
        consumer.subscribe([self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke)
        try:
            while not ended.is_set():
                try:
                    self._produce_until_failure(consumer, ended)
                except KafkaException as failure:
                    self.failures.append(str(failure))
                    self._positions.clear()
                    consumer.poll(POLL_SECONDS)
        finally:
            self._recorder.note(self.name, Function.STOPPED, self._group)
            consumer.close()

    def _produce_until_failure(self, consumer: Consumer, ended: threading.Event) -> None:
        """One producer's life. Its first step ends what a former one has left."""
        producer = Producer(self._producer_settings)
        self._retry(producer.init_transactions, ended, INIT_SECONDS)
        due = time.monotonic()
        while not ended.is_set():
            consumer.poll(POLL_SECONDS)
            if self._owned - self._positions.keys():
                self._fetch(consumer)
            elif self._positions and time.monotonic() >= due:
                self._transact(consumer, producer, ended)
                due = time.monotonic() + self._chance.uniform(0.5, 1.5) * COMMIT_EVERY_SECONDS

    def _transact(self, consumer: Consumer, producer: Producer, ended: threading.Event) -> None:
        moved = {partition: offset + self._chance.randint(1, 3) for partition, offset in self._positions.items()}
        metadata = f"{self.name}-{self._begun}"
        self._begun += 1
        began = time.monotonic()
        sent = metadata + NUL
        value = [Position(self._topic, partition, offset, sent) for partition, offset in sorted(moved.items())]
        operation = self._recorder.invoke(self.name, Function.COMMIT, self._group, value=value)
        try:
            producer.begin_transaction()
            producer.produce(self._output, metadata.encode(), partition=0)
            # No record may be in flight at an abort: librdkafka 2.16.0 would use its sequence number again.
            producer.flush(INIT_SECONDS)
            offsets = [TopicPartition(p.topic, p.partition, p.offset, metadata) for p in value]
            send = producer.send_offsets_to_transaction
            self._retry(lambda limit: send(offsets, consumer.consumer_group_metadata(), limit), ended)
            is_to_abort = self._chance.random() < ABORT_SHARE
            if not is_to_abort:
                self._retry(producer.commit_transaction, ended)
        except KafkaException as failure:
            if failure.args[0].txn_requires_abort():
                self._abort(producer, operation, ended)
                return
            operation.info()
            raise
        if is_to_abort:
            # Behind the try: an abort that fails has completed the operation.
            self._abort(producer, operation, ended)
            return
        operation.ok()
        self.committed += 1
        self._committed_at = began
        if self.committed % FETCH_AFTER_COMMITS == 0:
            self._positions.clear()
        # Partitions may have gone meanwhile.
        self._positions |= {partition: moved[partition] for partition in moved if partition in self._positions}

    def _abort(self, producer: Producer, operation: OpenOperation, ended: threading.Event) -> None:
        try:
            self._retry(producer.abort_transaction, ended)
        except KafkaException:
            operation.info()
            raise
        operation.fail(Error.UNKNOWN_SERVER_ERROR, note="aborted")

    def _fetch(self, consumer: Consumer) -> None:
        wanted = sorted(self._owned)
        value = [Position(self._topic, partition) for partition in wanted]
        began = time.monotonic()
        operation = self._recorder.invoke(self.name, Function.FETCH, self._group, value=value)
        try:
            found = consumer.committed([TopicPartition(self._topic, partition) for partition in wanted], CALL_SECONDS)
        except KafkaException:
            operation.info()
            raise
        if any(partition.error for partition in found):
            operation.info()
            return
        offsets = {partition.partition: max(partition.offset, NO_OFFSET) for partition in found}
        stored = {
            partition.partition: f"{partition.metadata}{NUL}" if partition.metadata else "" for partition in found
        }
        operation.ok(value=[Position(self._topic, p, offset, stored[p]) for p, offset in offsets.items()])
        self._fetched_at = began
        self._positions = {partition: max(offset, 0) for partition, offset in offsets.items()}

    def _retry(self, call: Callable[[float], object], ended: threading.Event, limit: float = CALL_SECONDS) -> None:
        """Repeat a call while librdkafka reports a retriable error, and the run goes on."""
        while True:
            try:
                _returning(call, limit)
            except KafkaException as failure:
                if not failure.args[0].retriable() or ended.is_set():
                    raise
            else:
                return

    def _on_assign(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._note(Function.ASSIGNED, partitions)
        self._owned |= {partition.partition for partition in partitions}
        self._positions.clear()

    def _on_revoke(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._note(Function.REVOKED, partitions)
        self._owned -= {partition.partition for partition in partitions}
        self._positions.clear()

    def _note(self, f: Function, partitions: list[TopicPartition]) -> None:
        value = [Position(partition.topic, partition.partition) for partition in partitions]
        # Not with its member id: when it is told to give partitions up, it may have lost that one already.
        self._recorder.note(self.name, f, self._group, member=self.name, value=value)


def _returning(call: Callable[[float], object], limit: float) -> None:
    """Make a call that may never return. Raises what it raises, and KafkaException if it does not return."""
    raised: list[BaseException] = []

    def make() -> None:
        try:
            call(limit)
        except BaseException as failure:
            raised.append(failure)

    # A producer that is stuck lives on with its thread; the next one with the same transactional id fences it.
    thread = threading.Thread(target=make, name="transactional call", daemon=True)
    thread.start()
    thread.join(RETURN_SECONDS)
    if thread.is_alive():
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"a call with a limit of {limit:g} s has not returned"))
    if raised:
        raise raised[0]


@contextmanager
def living(
    members: Sequence[TransactionalMember], failures: list[str], end_seconds: float = END_SECONDS
) -> Iterator[None]:
    """Run the members on threads until the end of the block; ``failures`` gets those that crashed or do not end."""
    ended = threading.Event()
    threads = [threading.Thread(target=member.run, args=(ended,), name=member.name, daemon=True) for member in members]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        deadline = time.monotonic() + end_seconds
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        failures += [f"{thread.name} has not ended within {end_seconds:g} s" for thread in threads if thread.is_alive()]
        failures += [f"{member.name}: {member.crash}" for member in members if member.crash is not None]
