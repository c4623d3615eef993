"""What the consumers of the demo report, and the checks of these reports."""

import sys
import threading
from collections import defaultdict
from collections.abc import Mapping
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

    def described(self, consumer: str) -> str:
        """The report for people; empty for records, of which there are many."""
        partitions = " ".join(map(str, self.partitions)) or "none"
        match self.event:
            case "owns":
                return f"{consumer} owns {partitions}" + f" in generation {self.generation}" * (self.generation >= 0)
            case "revoked":
                return f"{consumer} gives up {partitions}"
            case "lost":
                return f"{consumer} loses {partitions}"
            case "closed":
                return f"{consumer} has closed"
            case _:
                return ""


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
    """Collects the reports of a group's consumers. Thread-safe.

    owned, generations: each live consumer's partitions and generation. assignments: how many the consumers received.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.owned: dict[str, set[int]] = {}
        self.generations: dict[str, int] = {}
        self.assignments = 0
        self._owners: dict[int, dict[str, set[int]]] = defaultdict(dict)
        self._consumed: dict[int, set[int]] = defaultdict(set)
        self._delivered = 0

    def add(self, name: str, report: ConsumerReport) -> None:
        """Add a report of the consumer ``name``."""
        with self._lock:
            match report.event:
                case "owns":
                    self.assignments += 1
                    self.owned[name] = set(report.partitions)
                    self.generations[name] = report.generation
                    self._owners[report.generation][name] = set(report.partitions)
                case "revoked" | "lost":
                    self.owned[name] = self.owned.get(name, set()) - set(report.partitions)
                case "consumed":
                    self._consumed[report.partitions[0]].update(range(report.first, report.last + 1))
                    self._delivered += report.last - report.first + 1
                case "closed":
                    self.forget(name)

    def forget(self, name: str) -> None:
        """Remove a consumer that has ended from the live ones."""
        with self._lock:
            self.owned.pop(name, None)
            self.generations.pop(name, None)

    @property
    def delivered(self) -> int:
        """The number of records that were delivered, counting repeated deliveries."""
        return self._delivered

    def shared_by(self, *names: str, partitions: int) -> bool:
        """Whether exactly these consumers are live and share all partitions evenly in one generation."""
        with self._lock:
            shares = [len(self.owned.get(name, ())) for name in names]
            return (
                set(self.owned) == set(names)
                and set().union(*self.owned.values()) == set(range(partitions))
                and sum(shares) == partitions
                and max(shares) - min(shares) <= 1
                and len({self.generations[name] for name in names}) == 1
            )

    def has_consumed(self, ends: Mapping[int, int]) -> bool:
        """Whether every record before the end offset of each partition was consumed."""
        with self._lock:
            return all(len(self._consumed[partition]) >= end for partition, end in ends.items())

    # ---- checks --------------------------------------------------------------------------------------------

    def every_record_consumed(self, ends: Mapping[int, int]) -> Check:
        """Check that no record before the end offsets was skipped."""
        missing = {p: end - len(self._consumed[p] & set(range(end))) for p, end in ends.items()}
        missing = {p: count for p, count in missing.items() if count}
        total = sum(ends.values())
        repeated = self._delivered - sum(map(len, self._consumed.values()))
        detail = (
            f"missing, by partition: {missing}" if missing else f"records: {total}, repeated deliveries: {repeated}"
        )
        return Check("every record was consumed", not missing and total > 0, detail)

    def one_owner_per_generation(self) -> Check:
        """Check that no two consumers owned the same partition in one generation."""
        conflicts = [
            f"generation {generation}: {first} and {second} both own {sorted(owners[first] & owners[second])}"
            for generation, owners in self._owners.items()
            for first in owners
            for second in owners
            if first < second and owners[first] & owners[second]
        ]
        detail = "; ".join(conflicts) or f"generations seen: {len(self._owners)}"
        return Check("no partition had two owners in one generation", not conflicts, detail)


def committed_everything(committed: Mapping[int, int], ends: Mapping[int, int]) -> Check:
    """Check that the committed offset of every partition is its end offset."""
    wrong = {p: (committed.get(p), end) for p, end in ends.items() if committed.get(p) != end}
    offsets = ", ".join(f"{partition}: {offset}" for partition, offset in ends.items())
    detail = f"(committed, end) by partition: {wrong}" if wrong else f"by partition: {offsets}"
    return Check("the committed offset of every partition is its end", not wrong, detail)
