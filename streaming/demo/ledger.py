"""What the consumers of the demo have reported, and what must be true of it in the end."""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streaming.demo.consumer_process import ConsumerReport


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    passed: bool
    detail: str


class Ledger:
    """Keeps every report, and lets the story wait for a state of affairs. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.owned: dict[str, set[int]] = {}
        self.generations: dict[str, int] = {}
        self.owners: dict[int, dict[str, set[int]]] = defaultdict(dict)
        self.consumed: dict[int, set[int]] = defaultdict(set)
        self.delivered = 0
        self.closed: set[str] = set()

    def take(self, name: str, report: ConsumerReport) -> None:
        """Enter a consumer's report."""
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
        """A consumer has gone; it owns nothing any more."""
        with self._changed:
            self.owned.pop(name, None)
            self.generations.pop(name, None)

    def wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Whether the condition came true in time; it is looked at again after every report."""
        with self._changed:
            return self._changed.wait_for(condition, seconds)

    def shared_by(self, *names: str, partitions: int) -> bool:
        """Whether exactly these consumers own all partitions, evenly, in one and the same generation."""
        shares = [len(self.owned.get(name, ())) for name in names]
        everything = set().union(*self.owned.values()) if self.owned else set()
        return (
            set(self.owned) == set(names)
            and everything == set(range(partitions))
            and sum(shares) == partitions
            and max(shares) - min(shares) <= 1
            and len({self.generations[name] for name in names}) == 1
        )

    def has_consumed(self, ends: Mapping[int, int]) -> bool:
        """Whether every record below the end offset of each partition has been consumed."""
        return all(len(self.consumed[partition]) >= end for partition, end in ends.items())

    # ---- checks --------------------------------------------------------------------------------------------

    def every_record_consumed(self, ends: Mapping[int, int]) -> Check:
        """No record was skipped."""
        missing = {p: end - len(self.consumed[p] & set(range(end))) for p, end in ends.items()}
        missing = {p: count for p, count in missing.items() if count}
        total = sum(ends.values())
        again = self.delivered - sum(map(len, self.consumed.values()))
        detail = f"{total} records, {again} of them delivered twice" if not missing else f"missing: {missing}"
        return Check("every record was consumed", not missing and total > 0, detail)

    def one_owner_per_generation(self) -> Check:
        """In no generation two consumers owned the same partition."""
        conflicts = [
            f"generation {generation}: {first} and {second} both own {sorted(owners[first] & owners[second])}"
            for generation, owners in self.owners.items()
            for first in owners
            for second in owners
            if first < second and owners[first] & owners[second]
        ]
        detail = "; ".join(conflicts) or f"{len(self.owners)} generations"
        return Check("no partition had two owners in one generation", not conflicts, detail)

    @staticmethod
    def committed_everything(committed: Mapping[int, int], ends: Mapping[int, int]) -> Check:
        """The committed offsets stand at the end of the topic."""
        wrong = {p: (committed.get(p), end) for p, end in ends.items() if committed.get(p) != end}
        detail = f"(committed, end) by partition: {wrong}" if wrong else ", ".join(f"{p}: {o}" for p, o in ends.items())
        return Check("committed offsets are at the end of every partition", not wrong, detail)
