"""Hand-made histories: each operation with the times of its call and its answer."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from coordinator_logic.errors import Error
from tests.recovery.checker.checks import check
from tests.recovery.checker.history import Event, Function, Kind, Position
from tests.recovery.checker.operations import NS_PER_MS, Rule, Violation

GROUP = "billing"
SESSION_MS, REBALANCE_MS = 6_000, 5_000


class Did(NamedTuple):
    """An operation from ``begin`` to ``end`` (ms); None if no completion was recorded."""

    f: Function
    begin: int
    end: int | None
    kind: Kind
    sent: Mapping[str, Any]
    got: Mapping[str, Any]


def did(f: Function, begin: int, end: int | None, kind: Kind = Kind.OK, got: Any = None, **sent: Any) -> Did:
    """An operation; ``got`` are the fields of the answer that differ from those of the request."""
    return Did(f, begin, end, kind, sent, got or {})


def history(*done: Did) -> list[Event]:
    """The events of operations, each with a process of its own unless it names one."""
    lines: list[tuple[int, int, Event]] = []
    for number, operation in enumerate(done):
        fields: dict[str, Any] = {"process": number, "client": "client", "group": GROUP, "wall": 0, "f": operation.f}
        fields |= operation.sent
        lines.append((operation.begin, 1, Event(kind=Kind.INVOKE, time=operation.begin * NS_PER_MS, **fields)))
        if operation.end is not None:
            time = operation.end * NS_PER_MS
            lines.append((operation.end, 0, Event(kind=operation.kind, time=time, **(fields | dict(operation.got)))))
    return [event for _, _, event in sorted(lines, key=lambda line: line[:2])]


def broken(*done: Did, journal: Sequence[bytes] = (), state: Any = None, **options: Any) -> set[Rule]:
    """The rules that the operations violate."""
    return {violation.rule for violation in violations(*done, journal=journal, state=state, **options)}


def violations(*done: Did, journal: Sequence[bytes] = (), state: Any = None, **options: Any) -> list[Violation]:
    """What is wrong with the operations."""
    return check(history(*done), journal, state, **options)


# ---- offsets ---------------------------------------------------------------------------------------------------


def at(offset: int, metadata: str = "", partition: int = 0) -> list[Position]:
    """The value of a commit or a fetch of one partition."""
    return [Position("orders", partition, offset, metadata)]


def commit(offset: int, begin: int, end: int | None, kind: Kind = Kind.OK, **sent: Any) -> Did:
    """A commit of one partition."""
    return did(Function.COMMIT, begin, end, kind, value=at(offset), **sent)


def refused(offset: int, begin: int, end: int, error: Error = Error.ILLEGAL_GENERATION, **sent: Any) -> Did:
    """A commit that the coordinator refused."""
    return did(Function.COMMIT, begin, end, Kind.FAIL, {"error": error}, value=at(offset), **sent)


def reset(offset: int, begin: int, end: int | None, kind: Kind = Kind.OK) -> Did:
    """A reset of one partition."""
    return did(Function.RESET, begin, end, kind, value=at(offset))


def fetch(offset: int, begin: int, end: int) -> Did:
    """A fetch of one partition that read this offset."""
    return did(Function.FETCH, begin, end, Kind.OK, {"value": at(offset)}, value=at(-1))


# ---- membership ------------------------------------------------------------------------------------------------


def join(member: str, generation: int, begin: int, end: int, leader: str = "a", **fields: Any) -> Did:
    """A successful JoinGroup; the member's client has its name."""
    got = {"generation": generation, "leader": leader, "protocol": fields.pop("protocol", "range")}
    sent = {"member": member, "client": member, "session_ms": SESSION_MS, "rebalance_ms": REBALANCE_MS} | fields
    return did(Function.JOIN, begin, end, Kind.OK, got, **sent)


def sync(member: str, generation: int, begin: int, end: int, *partitions: int, **fields: Any) -> Did:
    """A successful SyncGroup that assigned these partitions."""
    value = [Position("orders", partition) for partition in partitions]
    sent = {"member": member, "client": member, "generation": generation} | fields
    return did(Function.SYNC, begin, end, Kind.OK, {"value": value}, **sent)


def heartbeat(
    member: str, generation: int, begin: int, end: int | None, error: Error = Error.NONE, **fields: Any
) -> Did:
    """A Heartbeat with its error."""
    sent = {"member": member, "client": member, "generation": generation} | fields
    kind = Kind.OK if error is Error.NONE else Kind.FAIL
    return did(Function.HEARTBEAT, begin, end, kind, {"error": error}, **sent)


def noted(f: Function, member: str, moment: int, *partitions: int, **fields: Any) -> Did:
    """A note of a client."""
    value = [Position("orders", partition) for partition in partitions]
    return did(f, moment, moment + 1, Kind.OK, member=member, client=member, value=value, **fields)


# ---- members of consumer groups -----------------------------------------------------------------------------


def beat(
    member: str,
    epoch: int,
    begin: int,
    end: int | None,
    *,
    sent: int | None = None,
    owned: Sequence[int] | None = None,
    assigned: Sequence[int] | None = None,
    error: Error = Error.NONE,
    **fields: Any,
) -> Did:
    """A heartbeat that is answered with this epoch, and was sent with it unless ``sent`` says otherwise."""
    call = {
        "member": member,
        "client": member,
        "generation": epoch if sent is None else sent,
        "session_ms": SESSION_MS,
        "rebalance_ms": REBALANCE_MS,
        "value": [Position("orders", partition) for partition in owned or ()],
        "lists_partitions": owned is not None,
    } | fields
    got = {
        "generation": epoch,
        "error": error,
        "value": [Position("orders", partition) for partition in assigned or ()],
        "lists_partitions": assigned is not None,
    }
    kind = Kind.OK if error is Error.NONE else Kind.FAIL
    return did(Function.CONSUMER_HEARTBEAT, begin, end, kind, got, **call)


def first_beat(member: str, epoch: int, begin: int, end: int, *assigned: int, **fields: Any) -> Did:
    """A join of the consumer group protocol that is answered with an assignment."""
    return beat(member, epoch, begin, end, sent=0, owned=(), assigned=assigned, **fields)
