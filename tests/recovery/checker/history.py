"""The form of a history: one line of JSON an event, written while a run goes on, in one file a run.

An operation has two lines, as in Jepsen: ``invoke`` when a client sends it, and its completion. ``ok``: it took effect.
``fail``: it did not, and never will. ``info``: nobody knows; it may take effect at any later time, or never. An
operation without a completion is like ``info``.

The lines of operations are in the order of time. The journal and the final states of the groups follow them.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import IO, Any, NamedTuple

import msgspec

from coordinator_logic import snapshot
from coordinator_logic.group import Group
from coordinator_logic.messages import NO_GENERATION, NO_OFFSET


class Kind(StrEnum):
    """What a line says about its operation; the values are those of ``:type`` in Jepsen."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Function(StrEnum):
    """What an operation does; the values are those of ``:f`` in Jepsen.

    ``reset`` sets offsets, also to earlier ones, or deletes them (offset -1); ``commit`` only moves them ahead. The
    values from ``assigned`` on are notes of a client without a request: the partitions that it was assigned or gave
    up, an answer that it read again, a fault that was injected, and that it was stopped or killed.
    """

    ASK = "ask"
    """A join without a member id, of a client that does not come back with the id that it is given."""
    JOIN = "join"
    SYNC = "sync"
    HEARTBEAT = "heartbeat"
    CONSUMER_HEARTBEAT = "consumer-heartbeat"
    """The heartbeat of a consumer group's member (KIP-848), with which it also joins (epoch 0) and leaves."""
    LEAVE = "leave"
    COMMIT = "commit"
    FETCH = "fetch"
    RESET = "reset"
    ASSIGNED = "assigned"
    REVOKED = "revoked"
    ANSWER = "answer"
    FAULT = "fault"
    STOPPED = "stopped"


Key = tuple[str, int]
"""A topic and a partition."""


ONLY_BROKER = "the only broker"
"""What the note of a fault says whose end is the return of all brokers."""


class Position(msgspec.Struct, frozen=True, array_like=True):
    """A partition with its committed offset, -1 for none.

    ``metadata`` is what was committed with the offset. A client that commits one offset several times makes it unique:
    then a read tells which commit it has read.
    """

    topic: str
    partition: int
    offset: int = NO_OFFSET
    metadata: str = ""

    @property
    def key(self) -> Key:
        """The topic and the partition."""
        return self.topic, self.partition


class Event(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="line", tag="event", rename={"kind": "type"}):
    """A line: the invocation of an operation, or its completion.

    process: a client's strand. It has one operation at a time, and none after an ``info``, as in Jepsen.
    time: ns of a monotonic clock, one for all clients of a run. wall: ns since the epoch.
    client: who sends; it may have several strands. group, member, instance, generation: as sent, or as answered; the
        generation of a member of the consumer group protocol is its member epoch.
    value: of a commit and a reset the positions, of a fetch the partitions and then the positions, of a heartbeat of
        a consumer group's member the partitions that are owned and then those that are assigned, otherwise the
        partitions that are assigned or revoked.
    lists_partitions: whether such a heartbeat or its answer says which partitions are owned or assigned.
    error: Kafka's error code of the answer.
    answer: SHA-256 of the answer's bytes, in hex.
    job_epoch: the epoch of the job whose answers a reader takes from then on; 0 if it says nothing about jobs.
    appended: ns of the monotonic clock at which the broker had appended the request; 0 if unknown.
    session_ms, rebalance_ms: a join's timeouts, and those of a member of the consumer group protocol.
    is_cooperative: whether the member keeps its partitions when it joins.
    leader, protocol: those of the answer to a join.
    note: what a fault was.
    """

    process: int
    kind: Kind
    f: Function
    time: int
    wall: int
    client: str
    group: str = ""
    member: str = ""
    instance: str | None = None
    generation: int = NO_GENERATION
    value: list[Position] = []
    lists_partitions: bool = False
    error: int = 0
    correlation_id: str = ""
    answer: str = ""
    job_epoch: int = 0
    appended: int = 0
    session_ms: int = 0
    rebalance_ms: int = 0
    is_cooperative: bool = False
    leader: str = ""
    protocol: str = ""
    note: str = ""


class JournalLine(msgspec.Struct, frozen=True, tag_field="line", tag="journal"):
    """A record's value in ``group-journal``, in the order of the log."""

    value: bytes


class StateLine(msgspec.Struct, frozen=True, tag_field="line", tag="state"):
    """A group's snapshot at the end of the run; None if the group does not exist."""

    group: str
    snapshot: bytes | None


class Run(NamedTuple):
    """A run: its events, its journal, and the groups at its end. Event i is line i + 1 of the file."""

    events: list[Event]
    journal: list[bytes]
    states: dict[str, Group | None]


_decode_line = msgspec.json.Decoder(Event | JournalLine | StateLine).decode
_encode_line = msgspec.json.Encoder().encode


class UnreadableHistory(ValueError):
    """A line is not one of a history, or out of place."""


def read(lines: Iterable[bytes]) -> Run:
    """Read a file's lines. The last line may be cut: the recording process was killed.

    Raises :class:`UnreadableHistory`.
    """
    run = Run([], [], {})
    for number, line in enumerate(lines, 1):
        try:
            decoded = _decode_line(line)
        except msgspec.DecodeError as error:
            if not line.endswith(b"\n"):
                break
            raise UnreadableHistory(f"line {number}: {error}") from error
        match decoded:
            case Event() if run.journal or run.states:
                raise UnreadableHistory(f"line {number}: an event behind the journal or the states")
            case Event():
                run.events.append(decoded)
            case JournalLine():
                run.journal.append(decoded.value)
            case StateLine():
                run.states[decoded.group] = None if decoded.snapshot is None else snapshot.decode(decoded.snapshot)
    return run


class Recorder:
    """Writes the history of a run to a file, each line at once. Any thread may use it.

    ``clock`` and ``wall_clock`` return ns.
    """

    def __init__(
        self,
        file: IO[bytes],
        clock: Callable[[], int] = time.monotonic_ns,
        wall_clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._file = file
        self._clock = clock
        self._wall_clock = wall_clock
        self._lock = threading.Lock()
        self._idle: dict[str, list[int]] = {}
        self._processes = 0

    def invoke(self, client: str, f: Function, group: str, **details: Any) -> "OpenOperation":
        """Record that a client sends a request; ``details`` are further fields of :class:`Event`."""
        with self._lock:
            idle = self._idle.setdefault(client, [])
            if idle:
                process = idle.pop()
            else:
                process = self._processes
                self._processes += 1
            details |= {"process": process, "f": f, "client": client, "group": group}
            self._write_event(Kind.INVOKE, details)
        return OpenOperation(self, details)

    def note(self, client: str, f: Function, group: str, **details: Any) -> None:
        """Record what happens at a client without a request: an operation that ends at once."""
        self.invoke(client, f, group, **details).ok()

    def complete(self, kind: Kind, details: Mapping[str, Any]) -> None:
        """Record a completion."""
        with self._lock:
            self._write_event(kind, details)
            if kind is not Kind.INFO:
                self._idle[details["client"]].append(details["process"])

    def end(self, journal: Sequence[bytes], snapshots: Mapping[str, bytes | None]) -> None:
        """Add the journal's values in the order of the log, and the groups' last snapshots. No event may follow."""
        with self._lock:
            for value in journal:
                self._write(JournalLine(value))
            for group, stored in snapshots.items():
                self._write(StateLine(group, stored))

    def _write_event(self, kind: Kind, details: Mapping[str, Any]) -> None:
        self._write(Event(kind=kind, time=self._clock(), wall=self._wall_clock(), **details))

    def _write(self, line: Event | JournalLine | StateLine) -> None:
        self._file.write(_encode_line(line) + b"\n")
        self._file.flush()


class OpenOperation:
    """An operation that has not been completed. A completion's fields replace those of the invocation.

    A second completion is an error of the client: it would make the whole history malformed, and no other rule could
    judge it.
    """

    def __init__(self, recorder: Recorder, details: dict[str, Any]) -> None:
        self._recorder = recorder
        self._details = details
        self._is_completed = False

    def ok(self, **details: Any) -> None:
        """The answer says that it took effect."""
        self._complete(Kind.OK, self._details | details)

    def fail(self, error: int, **details: Any) -> None:
        """The answer says that it did not take effect."""
        self._complete(Kind.FAIL, self._details | {"error": error} | details)

    def info(self, **details: Any) -> None:
        """The client does not wait any longer: it may have taken effect, or may do so later."""
        self._complete(Kind.INFO, self._details | details)

    def _complete(self, kind: Kind, details: Mapping[str, Any]) -> None:
        assert not self._is_completed, f"completed twice: {self._details}"
        self._is_completed = True
        self._recorder.complete(kind, details)
