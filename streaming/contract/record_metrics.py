"""The metric of records that a process has skipped because they cannot be read."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from streaming.contract.records import skipped_records


class _SkippedRecords(Collector):
    def __init__(self, prefix: str) -> None:
        self._name = f"{prefix}_unreadable_records"

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(
            self._name,
            "Records of own topics that were skipped, each time that they were read.",
            labels=["topic", "kind"],
        )
        for (topic, kind), count in skipped_records().items():
            family.add_metric([topic, kind], count)
        yield family


def show_skipped_records(registry: CollectorRegistry, prefix: str) -> None:
    """Show what :func:`~streaming.contract.records.skipped_records` counts, by topic and kind."""
    registry.register(_SkippedRecords(prefix))
