"""The gauges of groups, members and offsets, summed from the directory whenever the metrics are read."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import nlargest

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from coordinator_logic.records import QUARANTINED, GroupDirectoryEntry
from streaming.contract.output.text import label_text
from streaming.job.group_types import GROUP_TYPES

OTHER = "other"
"""The label of every state that no group has: whoever can write to the directory could invent a series each."""

_STATES = [state.value for kind in GROUP_TYPES.values() for state in kind.states]

_NO_GROUPS = dict.fromkeys([*_STATES, QUARANTINED, OTHER], 0)

NAMED_GROUPS = 10
"""How many rebalancing groups are named at most: each is a series, and a client can invent group ids."""

NAMED_AFTER_SECONDS = 15.0
"""A group is named if it has rebalanced for longer, which an ordinary rebalance does not."""

Entries = Callable[[], Iterable[GroupDirectoryEntry]]


class RebalanceTimes:
    """How long groups have been rebalancing, as far as it was seen. A new generation starts the count again."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since: dict[tuple[str, int], float] = {}

    def seconds(self, entries: Iterable[GroupDirectoryEntry]) -> dict[str, float]:
        """The seconds since each group that rebalances was first seen to, by group id. Call it often."""
        now = self._clock()
        rebalances = [
            (entry.group_id, entry.generation - begun)
            for entry in entries
            if (begun := _REBALANCES.get((entry.group_type, entry.group_state))) is not None
        ]
        self._since = {rebalance: self._since.get(rebalance, now) for rebalance in rebalances}
        return {group_id: now - since for (group_id, _), since in self._since.items()}


_REBALANCES = {
    (name, state.value): begun for name, kind in GROUP_TYPES.items() for state, begun in kind.rebalances.items()
}
"""By type and state, how many generations have begun since the one that the rebalance ends."""


class GroupGauges(Collector):
    """The gauges of the entries that ``entries`` returns, which may be called on any thread."""

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic) -> None:
        self.entries: Entries = tuple
        self._rebalance_times = RebalanceTimes(clock)
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Sum the entries."""
        states = _NO_GROUPS.copy()
        members = offsets = 0
        entries = list(self.entries())
        for group in entries:
            states[group.group_state if group.group_state in states else OTHER] += 1
            members += group.members
            offsets += group.offsets
        groups = GaugeMetricFamily("group_coordinator_groups", "Groups by state.", labels=["state"])
        for state, count in states.items():
            groups.add_metric([state], count)
        yield groups
        yield GaugeMetricFamily("group_coordinator_members", "Members of all groups.", members)
        yield GaugeMetricFamily("group_coordinator_offsets", "Committed offsets of all groups.", offsets)
        yield from _rebalance_gauges(list(self._rebalance_times.seconds(entries).items()))


def _rebalance_gauges(rebalances: Sequence[tuple[str, float]]) -> Iterator[GaugeMetricFamily]:
    longest = max((seconds for _, seconds in rebalances), default=0.0)
    yield GaugeMetricFamily(
        "group_coordinator_longest_rebalance_seconds", "The longest rebalance under way.", value=longest
    )
    named = GaugeMetricFamily(
        "group_coordinator_group_rebalancing_seconds",
        f"How long a group has been rebalancing; the longest {NAMED_GROUPS} of {NAMED_AFTER_SECONDS:g} s and more.",
        labels=["group"],
    )
    for group_id, seconds in nlargest(NAMED_GROUPS, rebalances, key=lambda rebalance: rebalance[1]):
        if seconds >= NAMED_AFTER_SECONDS:
            named.add_metric([label_text(group_id)], seconds)
    yield named
