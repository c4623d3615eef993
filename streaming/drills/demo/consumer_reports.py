"""What the consumers of the demo report, and the checks of these reports."""

import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec


class ConsumerReport(msgspec.Struct, rename="camel", omit_defaults=True):
    """A line of a consumer's output.

    owns: the consumer owns exactly ``partitions`` in ``generation``. revoked, lost: it no longer owns ``partitions``.
    consumed: it has consumed the offsets ``first`` to ``last`` of one partition. closed: it has ended.
    """

    event: Literal["owns", "revoked", "lost", "consumed", "closed"]
    generation: int = -1
    partitions: list[int] = []
    first: int = -1
    last: int = -1


def write_report(report: ConsumerReport) -> None:
    """Write a line to standard output and flush it: a kill -9 may be next."""
    sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class Check:
    """The result of a check. ``detail`` has the figures behind it."""

    name: str
    passed: bool
    detail: str


class ConsumerReports:
    """Collects the reports of a group's consumers, and waits for conditions on them. Thread-safe.

    owned, generations: each live consumer's partitions and generation. owners: by generation, each consumer's
    partitions. consumed: the consumed offsets of each partition. delivered: the number of records, counting repeated
    deliveries. closed: the consumers that closed cleanly.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.owned: dict[str, set[int]] = {}
        self.generations: dict[str, int] = {}
        self.owners: dict[int, dict[str, set[int]]] = defaultdict(dict)
        self.consumed: dict[int, set[int]] = defaultdict(set)
        self.delivered = 0
        self.closed: set[str] = set()

    def add(self, name: str, report: ConsumerReport) -> None:
        """Add a report of the consumer ``name``."""
        with self._changed:
            match report.event:
                case "owns":
                    self.owned[name] = set(report.partitions)
                    self.generations[name] = report.generation
                    self.owners[report.generation][name] = set(report.partitions)
                case "revoked" | "lost":
                    self.owned[name] = self.owned.get(name, set()) - set(report.partitions)
                case "consumed":
                    self.consumed[report.partitions[0]].update(range(report.first, report.last + 1))
                    self.delivered += report.last - report.first + 1
                case "closed":
                    self.forget(name)
                    self.closed.add(name)
            self._changed.notify_all()

    def forget(self, name: str) -> None:
        """Remove a consumer that has ended from the live ones."""
        with self._changed:
            self.owned.pop(name, None)
            self.generations.pop(name, None)

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Check a condition after every report until it holds; returns False after ``seconds``."""
        with self._changed:
            return self._changed.wait_for(condition, seconds)

    def shared_by(self, *names: str, partitions: int) -> bool:
        """Whether exactly these consumers are live and share all partitions evenly in one generation."""
        shares = [len(self.owned.get(name, ())) for name in names]
        owned = set().union(*self.owned.values()) if self.owned else set()
        return (
            set(self.owned) == set(names)
            and owned == set(range(partitions))
            and sum(shares) == partitions
            and max(shares) - min(shares) <= 1
            and len({self.generations[name] for name in names}) == 1
        )

    def has_consumed(self, ends: Mapping[int, int]) -> bool:
        """Whether every record before the end offset of each partition was consumed."""
        return all(len(self.consumed[partition]) >= end for partition, end in ends.items())

    # ---- checks --------------------------------------------------------------------------------------------

    def every_record_consumed(self, ends: Mapping[int, int]) -> Check:
        """Check that no record before the end offsets was skipped."""
        missing = {p: end - len(self.consumed[p] & set(range(end))) for p, end in ends.items()}
        missing = {p: count for p, count in missing.items() if count}
        total = sum(ends.values())
        repeated = self.delivered - sum(map(len, self.consumed.values()))
        detail = (
            f"missing, by partition: {missing}" if missing else f"records: {total}, repeated deliveries: {repeated}"
        )
        return Check("every record was consumed", not missing and total > 0, detail)

    def one_owner_per_generation(self) -> Check:
        """Check that no two consumers owned the same partition in one generation."""
        conflicts = [
            f"generation {generation}: {first} and {second} both own {sorted(owners[first] & owners[second])}"
            for generation, owners in self.owners.items()
            for first in owners
            for second in owners
            if first < second and owners[first] & owners[second]
        ]
        detail = "; ".join(conflicts) or f"generations seen: {len(self.owners)}"
        return Check("no partition had two owners in one generation", not conflicts, detail)

    @staticmethod
    def committed_everything(committed: Mapping[int, int], ends: Mapping[int, int]) -> Check:
        """Check that the committed offset of every partition is its end offset."""
        wrong = {p: (committed.get(p), end) for p, end in ends.items() if committed.get(p) != end}
        offsets = ", ".join(f"{partition}: {offset}" for partition, offset in ends.items())
        detail = f"(committed, end) by partition: {wrong}" if wrong else f"by partition: {offsets}"
        return Check("the committed offset of every partition is its end", not wrong, detail)
