"""The audit of packages, against a service on this machine, and the bill of materials. The tools need a network."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from streaming.embedded.ports import free_address
from tests.release.audit import Audit, audit, read_answer
from tests.release.bill_of_materials import bill_of_materials, jar_components, needed_packages
from tests.release.repository import version_of
from tests.release.tools import release_tools

ROOT = Path(__file__).resolve().parents[2]
VULNERABLE = {"tornado": "6.0.0"}


class Service(BaseHTTPRequestHandler):
    """As OSV's: one package has a vulnerability."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = []
        if asked["package"]["name"] == "tornado":
            ranges = [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "6.5.3"}]}]
            affected = [{"package": {"name": "tornado", "ecosystem": "PyPI"}, "ranges": ranges}]
            found = [{"id": "TEST-1", "summary": "a test", "published": "2026-01-01T00:00:00Z", "affected": affected}]
        answer = json.dumps({"vulns": found} if found else {}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def tools() -> Path:
    return release_tools()


@pytest.fixture
def service() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def variables(url: str) -> dict[str, str]:
    return {"PIP_AUDIT_VULNERABILITY_SERVICE": "osv", "PIP_AUDIT_OSV_URL": url}


def test_a_vulnerable_package_is_named_with_the_version_that_helps(tools: Path, service: str) -> None:
    found = audit({**VULNERABLE, "typer": "0.21.0"}, tools, variables(service))
    assert found == Audit(["tornado 6.0.0: TEST-1, fixed in 6.5.3"], [], 2)
    assert found.summary == "audited 2 packages: 1 known vulnerabilities"


def test_packages_without_a_vulnerability_pass(tools: Path, service: str) -> None:
    assert audit({"typer": "0.21.0"}, tools, variables(service)) == Audit([], [], 1)


def test_a_service_that_cannot_be_reached_is_no_clean_result(tools: Path) -> None:
    found = audit(VULNERABLE, tools, variables(f"http://{free_address()}/"))
    assert not found.vulnerabilities
    assert found.summary.startswith("not audited: ")


def test_a_package_that_the_service_skips_was_not_audited() -> None:
    answered: list[dict[str, object]] = [
        {"name": "a", "skip_reason": "not found"},
        {"name": "b", "version": "1", "vulns": []},
    ]
    found = read_answer(answered, {"a": "1", "b": "1", "c": "1"})
    assert found == Audit([], ["a (not found)", "c (no answer)"], 1)


def test_the_needed_packages_are_those_of_the_wheel_and_none_of_the_tests() -> None:
    packages = needed_packages()
    assert {"msgspec", "confluent-kafka", "pyspark", "py4j", "kio", "typer", "textual"} <= packages.keys()
    assert not {"pytest", "ruff", "hypothesis", "spark-group-coordinator", "libfaketime"} & packages.keys()


@pytest.mark.jvm
def test_the_bill_of_materials_has_every_package_and_every_jar(tools: Path) -> None:
    bill = bill_of_materials(ROOT, tools, "99.0.0")
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", "99.0.0")
    urls = {component["purl"] for component in bill["components"]}
    for name, version in needed_packages().items():
        assert f"pkg:pypi/{name}@{version}" in urls
    assert "pkg:maven/org.apache.kafka/kafka_2.13@4.3.1" in urls
    jars = [component for component in bill["components"] if component["purl"].startswith("pkg:maven/")]
    assert len(jars) == len(jar_components())
    assert all(jar["hashes"] for jar in jars)
    assert len(bill["components"]) == len(needed_packages()) + len(jars)
    assert version_of(ROOT) != "99.0.0"
