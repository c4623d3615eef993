"""What the metrics of every process have in common: a registry, and the versions of what runs."""

from prometheus_client import CollectorRegistry, Gauge, disable_created_metrics

from streaming.contract.distribution import DISTRIBUTION, installed_version

UNKNOWN = "unknown"
"""The version of a package that is on the path without being installed."""


def process_registry(prefix: str, packages: tuple[str, ...] = ()) -> CollectorRegistry:
    """A registry with the gauge ``<prefix>_build_info``, whose labels are versions: the program's and its packages'.

    Counters and histograms that are made afterwards have no series ``*_created``: each would double the series of a
    counter, and Prometheus reads the time of a reset from the counter itself.
    """
    disable_created_metrics()  # type: ignore[no-untyped-call]
    registry = CollectorRegistry()
    versions = {"version": _version(DISTRIBUTION), **{name.replace("-", "_"): _version(name) for name in packages}}
    text = "1, with the versions of the program and of the packages that it runs on."
    Gauge(f"{prefix}_build_info", text, list(versions), registry=registry).labels(**versions).set(1)
    return registry


def _version(distribution: str) -> str:
    return installed_version(distribution) or UNKNOWN
