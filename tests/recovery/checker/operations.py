"""Operations: the invocations of a history with their completions, and what a rule finds wrong with them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import TypeVar

from coordinator_logic.errors import Error
from coordinator_logic.groups.consumer.epochs import JOIN_EPOCH
from tests.recovery.checker.history import Event, Function, Key, Kind, Position

NS_PER_MS = 1_000_000


class Rule(StrEnum):
    """What must hold in every run."""

    WELL_FORMED = "the history is well-formed"
    READS_WHAT_WAS_COMMITTED = "what is read was committed"
    LINEARIZABLE_OFFSETS = "an acknowledged commit is readable until it is overwritten"
    OFFSETS_GO_AHEAD = "an offset goes back only by a reset"
    FENCED_COMMITS = "a commit of an old generation does not follow one of a newer generation"
    COMMITS_BY_EPOCH = "a commit is accepted with the member's epoch, or one in which it had the partitions already"
    ONE_OWNER = "a partition has one owner"
    GENERATIONS_GO_AHEAD = "generations and epochs never go back"
    ONE_GENERATION = "a generation has one leader, one protocol, and one assignment for a member"
    LIVE_MEMBERS_STAY = "a member that keeps its heartbeats is not expelled"
    SAME_ANSWER = "a request has one answer, byte for byte"
    OWN_ANSWER = "an answer answers its own request"
    NEWEST_JOB = "answers of a job are not taken after those of its successor"
    UNBROKEN_JOURNAL = "the journal has no hole and no fork"
    JOURNAL_IS_STATE = "folding the journal gives the state"
    JOURNAL_AND_ANSWERS = "journal and answers agree"
    STABLE_AGAIN = "members are assigned again within the bound"


@dataclass(frozen=True, slots=True)
class Violation:
    """What is wrong: the rule, the group, a sentence, and the lines of the history that show it."""

    rule: Rule
    group: str
    what: str
    lines: tuple[int, ...] = ()

    def __str__(self) -> str:
        where = f" (lines {', '.join(map(str, self.lines))})" if self.lines else ""
        return f"{self.group or 'run'}: not true: {self.rule}: {self.what}{where}"


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """An operation: its invocation in line ``line``, and its completion in line ``end_line``, 0 if there is none."""

    call: Event
    line: int
    end: Event | None = None
    end_line: int = 0

    @property
    def f(self) -> Function:
        """What it does."""
        return self.call.f

    @property
    def kind(self) -> Kind:
        """How it ended."""
        return Kind.INFO if self.end is None else self.end.kind

    @property
    def is_ok(self) -> bool:
        """Whether it took effect."""
        return self.kind is Kind.OK

    @property
    def joins(self) -> bool:
        """Whether it asks to join the group."""
        is_first = self.f is Function.CONSUMER_HEARTBEAT and self.call.generation == JOIN_EPOCH
        return is_first or self.f is Function.JOIN

    @property
    def leaves(self) -> bool:
        """Whether it leaves the group, also for a while only."""
        is_last = self.f is Function.CONSUMER_HEARTBEAT and self.call.generation < JOIN_EPOCH
        return is_last or self.f is Function.LEAVE

    @property
    def answer(self) -> Event:
        """Its completion, or its invocation if there is none."""
        return self.call if self.end is None else self.end

    @property
    def member(self) -> str:
        """The member id, as answered or as sent."""
        return self.answer.member

    @property
    def error(self) -> Error:
        """The error of the answer."""
        return Error(self.answer.error)

    @property
    def called(self) -> float:
        """When it began, ns: it had no effect before."""
        return self.call.time

    @property
    def returned(self) -> float:
        """When it ended, ns: it has no effect afterwards. Infinite if nobody knows."""
        return inf if self.end is None or self.end.kind is Kind.INFO else self.end.time

    @property
    def appended(self) -> float:
        """The latest time at which the request was appended, ns. Infinite if it may never have been."""
        return self.answer.appended or self.returned

    @property
    def positions(self) -> list[Position]:
        """The value of the answer; that of the request if the answer has none."""
        return self.answer.value or self.call.value

    @property
    def keys(self) -> list[Key]:
        """The partitions of its value."""
        return [position.key for position in self.positions]

    @property
    def lines(self) -> tuple[int, ...]:
        """Its lines."""
        return (self.line, self.end_line) if self.end_line else (self.line,)


def lines_of(*operations: Operation | None) -> tuple[int, ...]:
    """The lines of several operations, in order."""
    return tuple(sorted({line for operation in operations if operation is not None for line in operation.lines}))


def paired(events: Sequence[Event]) -> tuple[list[Operation], list[Violation]]:
    """Pair invocations with completions; returns the operations in the order of invocation, and what is malformed."""
    open_calls: dict[int, int] = {}
    crashed: set[int] = set()
    ends: dict[int, int] = {}
    malformed: list[Violation] = []

    def complain(index: int, what: str) -> None:
        malformed.append(Violation(Rule.WELL_FORMED, events[index].group, what, (index + 1,)))

    for index, event in enumerate(events):
        if index and event.time < events[index - 1].time:
            complain(index, "the time goes back")
        begun = open_calls.get(event.process)
        if event.kind is Kind.INVOKE:
            if begun is not None or event.process in crashed:
                complain(index, f"process {event.process} begins an operation before it has ended another")
            open_calls[event.process] = index
        elif begun is None or events[begun].f is not event.f:
            complain(index, f"process {event.process} ends an operation that it did not begin")
        else:
            ends[open_calls.pop(event.process)] = index
            if event.kind is Kind.INFO:
                crashed.add(event.process)
    return [_operation(events, index, ends.get(index)) for index in _calls(events)], malformed


def _calls(events: Sequence[Event]) -> list[int]:
    return [index for index, event in enumerate(events) if event.kind is Kind.INVOKE]


def _operation(events: Sequence[Event], index: int, end: int | None) -> Operation:
    if end is None:
        return Operation(events[index], index + 1)
    return Operation(events[index], index + 1, events[end], end + 1)


ItemT = TypeVar("ItemT")
GroupT = TypeVar("GroupT")


def grouped(items: Iterable[ItemT], by: Callable[[ItemT], GroupT]) -> dict[GroupT, list[ItemT]]:
    """The items by a property of theirs, each list in their order."""
    result: dict[GroupT, list[ItemT]] = defaultdict(list)
    for item in items:
        result[by(item)].append(item)
    return dict(result)


def reconciling_groups(operations: Iterable[Operation]) -> frozenset[str]:
    """The groups in which members spoke the consumer group protocol, perhaps beside classic ones."""
    return frozenset(o.call.group for o in operations if o.f is Function.CONSUMER_HEARTBEAT)
