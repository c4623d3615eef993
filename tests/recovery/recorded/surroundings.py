"""What a recorded client needs from where it lives: a clock, a future, a history, and a network."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, NamedTuple, Protocol

from coordinator_logic.messages import RequestBody, TopicDescription
from tests.recovery.checker.history import Function, OpenOperation, Position, Recorder

API_OF = {
    Function.ASK: "JoinGroup",
    Function.JOIN: "JoinGroup",
    Function.SYNC: "SyncGroup",
    Function.HEARTBEAT: "Heartbeat",
    Function.CONSUMER_HEARTBEAT: "ConsumerGroupHeartbeat",
    Function.LEAVE: "LeaveGroup",
    Function.COMMIT: "OffsetCommit",
    Function.FETCH: "OffsetFetch",
    Function.RESET: "OffsetCommit",
}


SESSION_MS = 6_000
HEARTBEAT_MS = 1_000


class GroupPlan(NamedTuple):
    """The settings that the clients of a group share; times in ms.

    For members of the consumer group protocol the coordinator is configured with ``session_ms`` and ``heartbeat_ms``.
    """

    group: str
    topic: str
    partitions: int
    is_cooperative: bool = False
    rebalance_ms: int = 20_000
    session_ms: int = SESSION_MS
    heartbeat_ms: int = HEARTBEAT_MS
    commit_ms: int = 1_500
    request_timeout_ms: int = 3_000
    join_timeout_ms: int = 12_000
    has_unique_metadata: bool = True

    @property
    def described(self) -> TopicDescription:
        """The topic, which needs not exist on any broker."""
        return TopicDescription(self.topic, f"{self.topic:_<22}"[:22], self.partitions)

    def positions_of(self, partitions: set[int]) -> list[Position]:
        """Partitions as the value of an event."""
        return [Position(self.topic, partition) for partition in sorted(partitions)]


class Answer(Protocol):
    """An answer: the error of the whole request, and the typed body."""

    @property
    def error_code(self) -> int:
        """Kafka's error code."""
        ...

    @property
    def body(self) -> Any:
        """The body; None if the request could not be read."""
        ...


class Call:
    """A request that was sent. ``answered`` and ``gave_up`` are the client's functions for its end.

    ``answered`` gets the answer and the hash of its bytes. ``appended_ns``: when the request was appended, by the clock
    of the history; 0 while that is not known.
    """

    def __init__(self, client: str, group: str, operation: OpenOperation, correlation_id: str) -> None:
        self.client = client
        self.group = group
        self.operation = operation
        self.correlation_id = correlation_id
        self.appended_ns = 0
        self.is_open = True
        self.answered: Callable[[Answer, str], None]
        self.gave_up: Callable[[], None]

    def give_up(self) -> None:
        """End the call without an answer, unless it has ended."""
        if self.is_open:
            self.is_open = False
            self.gave_up()


class Surroundings(Protocol):
    """A clock, the future and the history. Everything happens on one thread."""

    @property
    def now(self) -> int:
        """The time since the start, ms."""
        ...

    @property
    def chance(self) -> Random:
        """The random numbers of the run."""
        ...

    @property
    def recorder(self) -> Recorder:
        """The history."""
        ...

    def after(self, ms: int, do: Callable[[], None]) -> None:
        """Do something later."""

    def about(self, ms: int) -> int:
        """A time around this one."""
        ...

    def fault(self, note: str) -> None:
        """Record a fault."""


class Network(Protocol):
    """Carries requests and answers."""

    @property
    def world(self) -> Surroundings:
        """Where the clients live."""
        ...

    def send(
        self,
        client: str,
        group: str,
        f: Function,
        body: RequestBody,
        timeout_ms: int,
        details: Mapping[str, Any],
        version: int | None,
    ) -> Call:
        """Record and send a request, in the API's newest version for None; the caller sets the call's functions."""
        ...
