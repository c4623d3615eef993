"""The measurements of outages, of the journal, of the gateway and of consumer groups, each in its smallest form."""

from pathlib import Path

import pytest

from tests.smokes.running import run
from tests.support.source_tree import RELEASE_0_1_0, CommitNotThere, unpack_commit

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(1_000)]


@pytest.mark.parametrize(
    ("module", "arguments", "printed"),
    [
        ("tests.bench.outages.backlog", "--requests 2000 --groups 2 --max-requests-per-batch 500", "requests a second"),
        ("tests.bench.outages.backup", "--groups 5 --backups 1 --warm-up 1 --before 2", "1 backups of"),
        ("tests.bench.outages.checkpoints", "--groups 3 --driver-memory 512m", '"command":"restore"'),
        (
            "tests.bench.outages.takeover",
            "--kills 1 --stops 0 --alone 0 --groups 5 --warm 20",
            "kill with a standby, 1 times",
        ),
        ("tests.bench.outages.partitions", "--groups 3 --driver-memory 512m", "state partitions"),
        (
            "tests.bench.outages.takeover",
            "--kills 1 --stops 0 --alone 0 --groups 5 --warm 60 --in-store",
            "kill with a standby, 1 times",
        ),
        ("tests.bench.cluster.scale", "--executors 1 --share 0.9 --requests 200 --groups 5", "| 1 | "),
        ("tests.bench.stores.idle_groups", "--smallest", "many groups, Spark's map"),
        ("tests.bench.stores.requests", "--busy 5 --idle 2 --settle 1", "dollars for an idle month"),
        (
            "tests.bench.consumer_group_protocol",
            "--groups 5 --rounds 1 --seconds 1 --members 2 --partitions 4",
            '"reconciled"',
        ),
        ("tests.bench.journal.explain", "--records 2000", "s"),
        ("tests.bench.journal.cost", "", "goal"),
        ("tests.bench.gateway.formation", "--members 2 --groups 1 --delay-ms 0", "gateway: 2 members"),
        ("tests.bench.gateway.overhead", "--rate 50 --seconds 1 --connections 5 --members 10", "ms"),
        ("tests.bench.gateway.throughput", "--megabytes 5", "MB"),
        ("tests.bench.gateway.topic_changes", "--smallest", "1 members, gateway: mean"),
    ],
)
def test_a_measurement_prints_its_figures(module: str, arguments: str, printed: str, tmp_path: Path) -> None:
    assert printed in run(module, *arguments.split(), results=tmp_path)


def test_an_upgrade_and_the_way_back_lose_no_offset(tmp_path: Path) -> None:
    try:
        unpack_commit(RELEASE_0_1_0, tmp_path / "code")
    except CommitNotThere as reason:
        pytest.skip(f"no job of 0.1.0: {reason}")
    printed = run("tests.bench.outages.upgrade", "--rounds", "1", "--warm", "10", results=tmp_path)
    assert '"to":"0.1.0"' in printed
    assert "offsets, lost: none" in printed
