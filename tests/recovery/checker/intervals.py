"""The times in which members own partitions, whatever protocol they speak."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import inf

from tests.recovery.checker.history import Key
from tests.recovery.checker.operations import Operation, Rule, Violation, grouped, lines_of


@dataclass(slots=True)
class Interval:
    """That a member owned a partition, from ``begin`` to ``end`` (ns); it got it in ``generation``."""

    key: Key
    member: str
    begin: float
    assigned_by: Operation
    generation: int
    end: float = inf


@dataclass(slots=True)
class Owner:
    """A member while its operations are gone through in the order in which it sees them.

    Until ``last_contact`` + ``guaranteed_ns``, the coordinator must not give its partitions away.
    """

    member_id: str
    guaranteed_ns: float = inf
    last_contact: float = -inf
    owned: dict[Key, Interval] = field(default_factory=dict)
    intervals: list[Interval] = field(default_factory=list)

    @property
    def guaranteed_until(self) -> float:
        """Until when it keeps its partitions whatever it does, ns."""
        return self.last_contact + self.guaranteed_ns

    def assign(self, keys: Sequence[Key], operation: Operation) -> None:
        """Own these partitions from now on, besides those that the member has not given up yet."""
        begin, generation = operation.answer.time, operation.answer.generation
        for key in keys:
            if key not in self.owned:
                self.owned[key] = Interval(key, self.member_id, begin, operation, generation)
                self.intervals.append(self.owned[key])

    def give_up(self, keys: Sequence[Key], at: float) -> None:
        """Own these partitions no longer."""
        for key in keys:
            interval = self.owned.pop(key, None)
            if interval is not None:
                interval.end = min(at, self.guaranteed_until)

    def give_up_all(self, at: float) -> None:
        """Own nothing."""
        self.give_up(list(self.owned), at)


def is_same_instance(one: Operation, other: Operation) -> bool:
    """Whether two operations are of the same static member."""
    return one.call.instance is not None and one.call.instance == other.call.instance


def check_intervals(group: str, intervals: Sequence[Interval]) -> Iterator[Violation]:
    """Check that no two members own a partition at a time."""
    for (topic, partition), of_partition in grouped(intervals, lambda interval: interval.key).items():
        furthest: Interval | None = None
        for interval in sorted(of_partition, key=lambda entry: entry.begin):
            if interval.end <= interval.begin:
                continue
            if furthest is not None and interval.begin < furthest.end and not _is_same_owner(furthest, interval):
                yield Violation(
                    Rule.ONE_OWNER,
                    group,
                    f"{interval.member} got {topic}-{partition} while {furthest.member} owned it",
                    lines_of(furthest.assigned_by, interval.assigned_by),
                )
            if furthest is None or interval.end > furthest.end:
                furthest = interval


def _is_same_owner(one: Interval, other: Interval) -> bool:
    return one.member == other.member or is_same_instance(one.assigned_by, other.assigned_by)
