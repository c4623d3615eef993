"""The metrics of a gateway: what a client sends adds no series, and a reader that does not run shows."""

import pytest
from kio.schema.errors import ErrorCode

from streaming.client.directory import GroupDirectory
from streaming.gateway.instrumentation import NO_RESPONSE, NOT_DECODED, OTHER, GatewayMetrics
from streaming.gateway.wire.codec import KNOWN_VERSIONS

API_VERSIONS = 18


def series(metrics: GatewayMetrics) -> set[tuple[str, str, str]]:
    """The labels of the counted requests."""
    return {
        (sample.labels["api"], sample.labels["version"], sample.labels["error"])
        for metric in metrics.registry.collect()
        for sample in metric.samples
        if sample.name.endswith("_requests_total")
    }


def requests(metrics: GatewayMetrics, api: str, version: str, error: str) -> float | None:
    labels = {"api": api, "version": version, "error": error}
    return metrics.registry.get_sample_value("group_coordinator_gateway_requests_total", labels)


def test_invented_versions_share_one_series() -> None:
    metrics = GatewayMetrics()
    highest = KNOWN_VERSIONS[API_VERSIONS][1]
    for version in range(-1000, 2000):
        metrics.count_answer("ApiVersions", version, "UNSUPPORTED_VERSION")
    assert len(series(metrics)) == highest + 2
    assert requests(metrics, "ApiVersions", OTHER, "UNSUPPORTED_VERSION") == 3000 - (highest + 1)
    assert requests(metrics, "ApiVersions", "0", "UNSUPPORTED_VERSION") == 1


def test_unknown_names_share_one_series() -> None:
    metrics = GatewayMetrics()
    for number in range(100):
        metrics.count_answer(str(1000 + number), 0, f"ERROR_{number}")
        metrics.time_handler(f"Api{number}", 0.1)
        metrics.time_upstream(f"Api{number}", 0.1)
        metrics.count_failed_handler(f"Api{number}")
    assert series(metrics) == {(OTHER, OTHER, OTHER)}
    apis = {
        sample.labels["api"]
        for metric in metrics.registry.collect()
        for sample in metric.samples
        if "api" in sample.labels
    }
    assert apis == {OTHER}


@pytest.mark.parametrize(
    "error", [NOT_DECODED, NO_RESPONSE, "NONE", *(code.name.upper() for code in list(ErrorCode)[:5])]
)
def test_known_names_keep_their_own_series(error: str) -> None:
    metrics = GatewayMetrics()
    metrics.count_answer("Heartbeat", 4, error)
    metrics.count_answer("Heartbeat", 4, error)
    assert requests(metrics, "Heartbeat", "4", error) == 2


def test_a_reader_of_the_directory_that_does_not_run_shows() -> None:
    metrics = GatewayMetrics()
    metrics.watch(GroupDirectory("127.0.0.1:1", "group-directory", "gateway", {}))
    alive = metrics.registry.get_sample_value("group_coordinator_gateway_reader_alive", {"reader": "directory"})
    assert alive == 0
