"""Every target of the Makefile is run by a test, or it says here why not; so is every module that a document runs."""

import re
from pathlib import Path

import pytest

from tests.bench.environment import ROOT

TESTS = {
    "demo": "tests/recovery/test_demo.py",
    "drill": "tests/cli/test_drill.py",
    "bench": "tests/smokes/test_bench.py",
    "bench-quick": "tests/smokes/test_bench.py",
    "bench-compare": "tests/smokes/test_bench.py",
    "bench-idle": "tests/smokes/test_bench.py",
    "bench-growth": "tests/smokes/test_bench.py",
    "bench-operators": "tests/smokes/test_bench.py",
    "bench-backlog": "tests/smokes/test_outages.py",
    "bench-backup": "tests/smokes/test_outages.py",
    "bench-checkpoints": "tests/smokes/test_outages.py",
    "bench-store": "tests/smokes/test_outages.py",
    "bench-takeover": "tests/smokes/test_outages.py",
    "bench-partitions": "tests/smokes/test_outages.py",
    "bench-upgrade": "tests/smokes/test_outages.py",
    "bench-scale": "tests/smokes/test_outages.py",
    "spark-next": "tests/spark_next/test_spark_next.py",
    "kafka-tests": "tests/smokes/test_campaigns.py",
    "oracle": "tests/smokes/test_campaigns.py",
    "oracle-consumer": "tests/smokes/test_campaigns.py",
    "fuzz": "tests/fuzz/test_fuzz.py",
    "soak": "tests/smokes/test_campaigns.py",
    "chart": "tests/chart/test_kinds.py",
    "chaos": "tests/smokes/test_campaigns.py",
    "chaos-broken": "tests/smokes/test_campaigns.py",
    "documents": "tests/docs/test_documents.py",
    "release": "tests/release/test_release.py",
    "image": "tests/image/test_image.py",
}
REASONS = {
    "console-pages": "it writes the pages, and needs fixed ports for them",
    "help": "make itself prints it",
    "setup": "every other target begins with it",
    "archive": "make test begins with it",
    "test": "it runs this test",
    "check": "it is make lint and a part of make test",
    "lint": ".ci/run begins with it",
    "properties": "it is a part of make test with more examples",
    "smokes": "it is the tests of the measurements, too long for make test on a slow machine",
    "long": "it is the tests that are too long for make test on a slow machine",
    "cluster": "it is tests of a cluster, too long for make test on a slow machine",
    "cluster-demo": "tests/cluster/long/test_demo.py runs it, which is too long for make test",
    "image-test": "it is tests of containers, which need docker or podman and are too long for make test",
    "kills": "it is tests/recovery/test_kill_9.py with more kills",
    "lowest": "it installs another environment of more than a gigabyte",
    "clean": "it removes what the tests need",
}
MODULE = re.compile(r"python -m (tests\.[\w.]+)")


def targets() -> list[str]:
    """The targets of the Makefile that `make help` lists."""
    return re.findall(r"^([a-z][a-z-]*):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)


def test_every_target_has_a_test_or_a_reason() -> None:
    assert sorted([*TESTS, *REASONS]) == sorted(targets())


@pytest.mark.parametrize("test", sorted(set(TESTS.values())))
def test_the_test_exists(test: str) -> None:
    assert (ROOT / test).is_file()


@pytest.mark.parametrize("document", sorted((ROOT / "docs").rglob("*.md")), ids=lambda path: path.name)
def test_a_smoke_runs_every_module_that_a_document_runs(document: Path) -> None:
    smokes = "".join(file.read_text() for file in (ROOT / "tests" / "smokes").glob("test_*.py"))
    assert [name for name in MODULE.findall(document.read_text()) if f'"{name}"' not in smokes] == []
