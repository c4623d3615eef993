"""The active job's announcements: it repeats one on a topic while it lives, and the other jobs watch for silence.

Beside it, the topic keeps the starts of the last jobs, for a checkpoint that is older than they are.

No clock is compared: a job measures with its own clock how long it has seen no announcement while it could read the
topic. So a broker that is away does not look like a dead job.
"""

import time
from typing import Annotated, Self

import msgspec
from confluent_kafka import Message

from coordinator_logic.messages import Int32, JobEpoch, LogOffset, Time
from streaming.client.announced_epoch import KEY, PARTITION
from streaming.client.errors import CoordinatorError
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.client.topic_consumer import TO_END, TopicConsumer
from streaming.contract.records import RecordDecoder
from streaming.job.group_batch.starts import Start, later

CLIENT_ID = "group-coordinator-election"
"""Of the clients that read for the election; librdkafka looks up the coordinator of a group with this name."""

ANNOUNCEMENT_SECONDS = 0.5
"""The active job announces itself this often."""

START_KEY_PREFIX = b"start-"
"""The key of a start begins with it; the epoch follows."""

LEAST_READING_SECONDS = 0.05
"""How long a look reads, also if it has waited for the end of the topic up to its limit."""

SLOW_LOOK_SECONDS = 0.5
"""A look that takes longer has waited for the brokers: no more than this counts as silence of the active job."""

RECONNECTION_SECONDS = 3.0
"""How much longer an active job may be silent after an outage: it may reconnect later than who watches it."""

CONSUMER_SETTINGS: LibrdkafkaConfig = {
    **TO_END,
    "isolation.level": "read_committed",
    # A transaction does not end a fetch that waits at the broker: by default, it would be seen up to 500 ms late.
    "fetch.wait.max.ms": 50,
}


LONGEST_NAME = 1024
"""The most characters of a job's names. A host's name has at most 253."""

Name = Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]


class Reach(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How far the jobs have read the requests, with their last complete batch.

    topic_id: the id of the topic; None without a batch. read_until: the offset of the first request that was not read,
    by partition. batch_time: the time of that batch, ms since the epoch of Unix.
    """

    topic_id: Name | None = None
    read_until: dict[Int32, LogOffset] = {}
    batch_time: Time = 0

    def extended(self, further: "Reach") -> "Reach":
        """The reach of this and of what was read since. A job that plays requests again does not take it back."""
        if self.topic_id is None or self.topic_id != further.topic_id:
            return further
        read_until = later(self.read_until, further.read_until)
        return Reach(
            self.topic_id, read_until, further.batch_time if read_until == further.read_until else self.batch_time
        )


class ActiveJob(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The value of an announcement: which job is active, or was the last one.

    epoch: grows with every job that becomes active. host, process_id: where it runs. started_at: when it became
    active, ms since the epoch of Unix. process: its :func:`~streaming.embedded.process_identity.process_identity`.
    is_released: it has stopped, and another job may be active at once. reach: of this job, or until it has completed a
    batch, of the one before.
    """

    epoch: JobEpoch
    host: Name
    process_id: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    started_at: Time
    version: Name
    process: Name | None = None
    is_released: bool = False
    reach: Reach = Reach()


class AnnouncedStart(msgspec.Struct, frozen=True, rename="camel"):
    """A start of a job on the topic of requests with this id."""

    topic_id: Name | None
    start: Start


def start_key(epoch: int) -> bytes:
    """The key of the start with this epoch."""
    return START_KEY_PREFIX + str(epoch).encode()


_decode_job = msgspec.json.Decoder(ActiveJob).decode
_decode_start = msgspec.json.Decoder(AnnouncedStart).decode


class AnnouncementWatch:
    """Watches the announcements of one topic. Not thread-safe; call :meth:`look` every half second or more often."""

    def __init__(
        self, bootstrap_servers: str, client_id: str, config: LibrdkafkaConfig, topic: str, timeout: float
    ) -> None:
        """Raises as :class:`~streaming.client.topic_consumer.TopicConsumer`; ``timeout`` in seconds."""
        self.newest: ActiveJob | None = None
        self.silent_seconds = 0.0
        self._patience_seconds = 0.0
        self._starts: dict[bytes, AnnouncedStart] = {}
        self._job_decoder = RecordDecoder(topic, "announcement of the active job", _decode_job, lambda _: KEY)
        self._start_decoder = RecordDecoder(
            topic, "announcement of a start", _decode_start, lambda announced: start_key(announced.start.epoch)
        )
        self._timeout = timeout
        self._is_closed = False
        self._looked_at: float | None = None
        self._awaited: list[Message] = []
        self._consumer = TopicConsumer(bootstrap_servers, topic, client_id, config, timeout, CONSUMER_SETTINGS)
        self._consumer.assign({PARTITION: 0})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the watch; what it has seen stays known."""
        if not self._is_closed:
            self._is_closed = True
            self._consumer.close()

    def look(self) -> None:
        """Read what was announced since the last look.

        ``silent_seconds`` is 0 after an announcement, and otherwise grows by the time since the last look, if that
        could read the topic, too; by less if the brokers are slow.

        Raises:
            CoordinatorError: the topic cannot be read to its end within the time limit.
        """
        looked_at, self._looked_at = self._looked_at, None
        began = time.monotonic()
        try:
            is_silent = self._read_to_end(began + self._timeout)
        except CoordinatorError:
            self._patience_seconds = RECONNECTION_SECONDS
            self._awaited = []
            self._consumer.renew()
            raise
        self._looked_at = time.monotonic()
        is_slow = self._looked_at - began > SLOW_LOOK_SECONDS
        if is_slow:
            self._patience_seconds = RECONNECTION_SECONDS
        if not is_silent:
            self.silent_seconds = 0.0
            self._patience_seconds = self._patience_seconds if is_slow else 0.0
        elif looked_at is not None:
            silence = self._looked_at - looked_at
            self.silent_seconds += min(silence, SLOW_LOOK_SECONDS) if is_slow else silence

    def wait(self, seconds: float) -> None:
        """Wait until something is announced, but no longer than this; the next :meth:`look` reads it."""
        if not self._awaited:
            self._awaited = self._consumer.next_records(seconds)

    def is_free(self, lease_seconds: float) -> bool:
        """Whether no job is active, as far as the last look knows."""
        newest = self.newest
        if newest is None or newest.is_released:
            return True
        return self.silent_seconds >= lease_seconds + self._patience_seconds

    def starts(self, topic_id: str | None) -> list[Start]:
        """The starts of the last jobs on the topic of requests with this id, by epoch."""
        starts = [announced.start for announced in self._starts.values() if announced.topic_id == topic_id]
        return sorted(starts, key=lambda start: start.epoch)

    def _read_to_end(self, deadline: float) -> bool:
        """Read what the topic has now; returns whether there was no announcement. Raises as :meth:`look`."""
        awaited, self._awaited = self._awaited, []
        announced = [self._apply(record) for record in awaited if self._consumer.note(record)]
        ends = self._consumer.ends([PARTITION])
        within = max(LEAST_READING_SECONDS, deadline - time.monotonic())
        announced += [self._apply(record) for record in self._consumer.read_to_end(ends, within)]
        return not any(announced)

    def _apply(self, record: Message) -> bool:
        """Note a record; returns whether it is an announcement. One that cannot be read is as if it were not there."""
        key = record.key() or b""
        if key.startswith(START_KEY_PREFIX):
            if record.value() is None:
                self._starts.pop(key, None)
            elif (start := self._start_decoder.read(record)) is not None:
                self._starts[key] = start
        elif key == KEY and (job := self._job_decoder.read(record)) is not None:
            self.newest = job
            return True
        return False
