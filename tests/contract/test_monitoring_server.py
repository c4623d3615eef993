"""The HTTP pages for operators: metrics, liveness and readiness."""

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from streaming.contract.errors import CannotRun
from streaming.contract.monitoring_server import Check, Health, serving_monitoring
from streaming.contract.process_metrics import process_registry
from tests.support.waiting import LIMIT_SECONDS

LOOPBACK = "127.0.0.1"


class Checked:
    """Checks that a test can change."""

    def __init__(self) -> None:
        self.works = self.serves = True
        self.becomes_warm = False

    @property
    def health(self) -> Health:
        return Health(
            lambda: [Check("works", self.works, "as the test says")],
            lambda: [Check("works", self.works, ""), Check("serves", self.serves, "")],
            (lambda: [Check("is fast", False, "not yet")]) if self.becomes_warm else None,
        )


@pytest.fixture
def checked() -> Checked:
    return Checked()


@pytest.fixture
def port(checked: Checked) -> Iterator[int]:
    registry = CollectorRegistry()
    Gauge("answer", "An answer.", registry=registry).set(42)
    with serving_monitoring(LOOPBACK, 0, registry, checked.health) as port:
        yield port


def page(port: int, path: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}{path}", timeout=LIMIT_SECONDS) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read()


def health(port: int, path: str) -> tuple[int, Any]:
    status, body = page(port, path)
    return status, json.loads(body)


def test_metrics_and_both_health_pages_share_a_port(port: int) -> None:
    assert b"answer 42.0" in page(port, "/metrics")[1]
    assert health(port, "/health/live") == (
        200,
        {"ok": True, "checks": [{"name": "works", "ok": True, "detail": "as the test says"}]},
    )
    assert health(port, "/health/ready")[0] == 200


@pytest.mark.parametrize("path", ["/", "/healthz", "/metrics/", "/favicon.ico", "/health", "/%2e"])
def test_any_other_path_is_not_found_and_the_answer_names_those_that_are(port: int, path: str) -> None:
    status, body = page(port, path)
    assert (status, body) == (404, b"not found; served are /metrics, /health/live and /health/ready\n")


def test_a_registry_has_the_versions_and_no_creation_times() -> None:
    registry = process_registry("part", ("prometheus-client", "not-installed"))
    Counter("requests", "Requests.", ["api"], registry=registry).labels("JoinGroup").inc()
    Histogram("seconds", "Seconds.", registry=registry).observe(1)
    text = generate_latest(registry).decode()
    assert "_created" not in text
    (labels,) = [
        dict(sample.labels) for family in registry.collect() for sample in family.samples if "build" in family.name
    ]
    assert labels == {
        "version": version("spark-group-coordinator"),
        "prometheus_client": version("prometheus-client"),
        "not_installed": "unknown",
    }


def test_a_process_that_becomes_warm_has_a_page_that_says_when(checked: Checked) -> None:
    checked.becomes_warm = True
    with serving_monitoring(LOOPBACK, 0, CollectorRegistry(), checked.health) as port:
        status, found = health(port, "/health/warm")
        assert (status, [check["detail"] for check in found["checks"]]) == (503, ["not yet"])
        message = b"not found; served are /metrics, /health/live, /health/ready and /health/warm\n"
        assert page(port, "/healthz") == (404, message)


def test_a_check_that_fails_turns_its_page_to_503(port: int, checked: Checked) -> None:
    checked.serves = False
    assert health(port, "/health/live")[0] == 200
    status, found = health(port, "/health/ready")
    assert (status, found["ok"]) == (503, False)
    assert [check["name"] for check in found["checks"] if not check["ok"]] == ["serves"]


def test_a_port_in_use_is_named(port: int, checked: Checked) -> None:
    message = f"^port {port} is in use: choose another with --metrics-port$"
    with pytest.raises(CannotRun, match=message):  # noqa: SIM117
        with serving_monitoring(LOOPBACK, port, CollectorRegistry(), checked.health):
            pass
