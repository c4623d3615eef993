"""The gauges of groups, members and offsets, summed from the directory whenever the metrics are read."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from coordinator_logic.records import QUARANTINED, GroupDirectoryEntry
from coordinator_logic.states import State

OTHER = "other"
"""The label of every state that no group has: whoever can write to the directory could invent a series each."""

_NO_GROUPS = dict.fromkeys([*(state.value for state in State if state is not State.DEAD), QUARANTINED, OTHER], 0)

Entries = Callable[[], Iterable[GroupDirectoryEntry]]


class GroupGauges(Collector):
    """The gauges of the entries that ``entries`` returns, which may be called on any thread."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.entries: Entries = tuple
        registry.register(self)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Sum the entries."""
        states = _NO_GROUPS.copy()
        members = offsets = 0
        for group in self.entries():
            states[group.group_state if group.group_state in states else OTHER] += 1
            members += group.members
            offsets += group.offsets
        groups = GaugeMetricFamily("group_coordinator_groups", "Groups by state.", labels=["state"])
        for state, count in states.items():
            groups.add_metric([state], count)
        yield groups
        yield GaugeMetricFamily("group_coordinator_members", "Members of all groups.", members)
        yield GaugeMetricFamily("group_coordinator_offsets", "Committed offsets of all groups.", offsets)
