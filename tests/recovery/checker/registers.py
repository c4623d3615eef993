"""Decide whether a register's history is linearizable: a partition's committed offset is a register.

If every value was written once, the algorithm of Gibbons and Korach decides ("Testing Shared Memories", 1997) in
O(n log n): a value's write and reads form a cluster, and clusters must not be interleaved. If a value was written
several times, the search of Wing and Gong decides, with Lowe's memory of the configurations that it has visited: at
most n * 2^c of them for c operations that are open at a time. Writes of unknown outcome whose value nobody read are
left out first: they need not have happened.

An operation takes effect at one moment between its call and its return; both are part of the interval, as in porcupine.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from tests.recovery.checker.operations import Operation, grouped

MOST_CONFIGURATIONS = 200_000
"""How many configurations the search visits before it gives up."""

Value = tuple[int, str]
"""An offset and its metadata."""

_Configuration = tuple[int, int, int, Value | None]


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """A read or a write of a register. ``returned`` of a write is infinite if its outcome is unknown.

    ``operation`` is None for the initial value and for the state at the end of a run.
    """

    value: Value
    called: float
    returned: float
    is_write: bool
    operation: Operation | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """Why a history is not linearizable: accesses that no order explains."""

    what: str
    accesses: tuple[Access, ...]


def initial(value: Value) -> Access:
    """The write of the value that the register has at the beginning."""
    return Access(value, -inf, -inf, is_write=True)


def conflict_in(accesses: Sequence[Access]) -> Conflict | None:
    """The first reason why the accesses, with the initial write among them, are not linearizable; None if they are."""
    read = {access.value for access in accesses if not access.is_write}
    relevant = [access for access in accesses if not access.is_write or access.value in read or access.returned < inf]
    writes = Counter(access.value for access in relevant if access.is_write)
    for access in relevant:
        if access.value not in writes:
            return Conflict("it was never written", (access,))
    if all(count == 1 for count in writes.values()):
        return _interleaved_clusters(relevant)
    return _search(relevant)


# ---- every value is written once -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cluster:
    """A value's write and reads: the access that returns first, and the one that is called last."""

    first: Access
    last: Access
    write: Access

    @property
    def is_forward(self) -> bool:
        """Whether one access ends before another begins: in between, the register has the value all the time."""
        return self.first.returned < self.last.called

    def must_precede(self, other: "_Cluster") -> bool:
        return self.first.returned < other.last.called


def _interleaved_clusters(accesses: Sequence[Access]) -> Conflict | None:
    clusters = [_cluster(same_value) for same_value in grouped(accesses, lambda access: access.value).values()]
    for cluster in clusters:
        if cluster.first.returned < cluster.write.called:
            return Conflict("it was read before it was written", (cluster.first, cluster.write))
    forward = sorted((c for c in clusters if c.is_forward), key=lambda c: c.first.returned)
    begins = [cluster.first.returned for cluster in forward]
    for earlier, later in pairwise(forward):
        if later.must_precede(earlier):
            return _interleaved(earlier, later)
    for cluster in clusters:
        if not cluster.is_forward:
            at = bisect_left(begins, cluster.last.called) - 1
            if at >= 0 and cluster.must_precede(forward[at]):
                return _interleaved(forward[at], cluster)
    return None


def _cluster(accesses: Sequence[Access]) -> _Cluster:
    first = min(accesses, key=lambda access: access.returned)
    last = max(accesses, key=lambda access: access.called)
    return _Cluster(first, last, next(access for access in accesses if access.is_write))


def _interleaved(around: _Cluster, within: _Cluster) -> Conflict:
    what = f"it had this value before and after {within.write.value}, and nothing wrote it again"
    return Conflict(what, (around.first, around.last, within.first, within.last, within.write))


# ---- values that are written several times ---------------------------------------------------------------------


def _search(accesses: Sequence[Access]) -> Conflict | None:
    certain = sorted((a for a in accesses if a.returned < inf), key=lambda access: access.called)
    uncertain = sorted((a for a in accesses if a.returned == inf), key=lambda access: access.called)
    furthest = 0
    # A configuration: the certain accesses that are done, as the number of the first ones and bits for the others; bits
    # for the uncertain ones; and the value.
    stack: list[_Configuration] = [(0, 0, 0, None)]
    visited = set(stack)
    while stack:
        configuration = stack.pop()
        start = configuration[0]
        if start == len(certain):
            return None
        furthest = max(furthest, start)
        following = [c for c in _following(certain, uncertain, *configuration) if c not in visited]
        stack += following
        visited.update(following)
        if len(visited) > MOST_CONFIGURATIONS:
            return Conflict("too many orders are possible to decide this", (certain[furthest],))
    return Conflict("no order of the accesses explains it", (certain[furthest],))


def _following(
    certain: Sequence[Access], uncertain: Sequence[Access], start: int, done: int, used: int, value: Value | None
) -> list[_Configuration]:
    following: list[_Configuration] = []
    candidates = _candidates(certain, start, done)
    until = min(certain[index].returned for index in candidates)
    for index in candidates:
        access = certain[index]
        after = _advance(start, done | 1 << index - start)
        if not access.is_write and access.value == value:
            # A read changes nothing: it may as well come first.
            return [(*after, used, value)]
        if access.is_write:
            following.append((*after, used, access.value))
        else:
            # An uncertain write is of use only right before a read of its value. Of equal ones the earliest is enough.
            wanted = (bit for bit, write in enumerate(uncertain) if write.value == access.value and not used >> bit & 1)
            bit = next(wanted, None)
            if bit is not None and uncertain[bit].called <= until:
                following.append((*after, used | 1 << bit, access.value))
    return following


def _candidates(certain: Sequence[Access], start: int, done: int) -> list[int]:
    """The accesses that may come next: nothing that is not done has returned before they were called."""
    candidates: list[int] = []
    until = inf
    for index in range(start, len(certain)):
        access = certain[index]
        if access.called > until:
            break
        if not done >> index - start & 1:
            candidates.append(index)
            until = min(until, access.returned)
    return [index for index in candidates if certain[index].called <= until]


def _advance(start: int, done: int) -> tuple[int, int]:
    while done & 1:
        start, done = start + 1, done >> 1
    return start, done
