"""Folders that cannot be written or are not there, with brokers that answer: one line, and nothing is left behind."""

from pathlib import Path

import pytest

from streaming.cli.exit_codes import REFUSED
from tests.cli.every_command.test_mistakes import assert_one_line, tried
from tests.support.coordinator_process import CoordinatorProcess

NO_FOLDER = "/proc/nope/checkpoint"
"""Neither a folder nor a place for one, also for root."""


@pytest.fixture(scope="module")
def backup(coordinator: CoordinatorProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished backup of the coordinator's checkpoint."""
    backups = tmp_path_factory.mktemp("backups")
    taken = tried("checkpoint", "backup", str(coordinator.checkpoint), str(backups))
    assert taken.exit_code == 0, taken.output
    return next(backups.glob("*-batch-*"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--checkpoint", NO_FOLDER, "BROKERS"],
        ["run", "--embedded", "--checkpoint", NO_FOLDER],
        ["broker", "--data-dir", NO_FOLDER],
        ["drill", "kill", "-o", NO_FOLDER],
        ["sql", "select 1", "--checkpoint", NO_FOLDER, "BROKERS"],
        ["checkpoint", "backup", NO_FOLDER, "x"],
        ["checkpoint", "backup", "CHECKPOINT", NO_FOLDER],
        ["checkpoint", "list", NO_FOLDER],
        ["checkpoint", "verify", NO_FOLDER, "BROKERS"],
        ["checkpoint", "restore", "BACKUP", NO_FOLDER],
        ["checkpoint", "restore", NO_FOLDER, "x", "BROKERS"],
        ["checkpoint", "rebuild", NO_FOLDER, "BROKERS"],
        ["checkpoint", "rebuild", "x", "--backup", NO_FOLDER, "BROKERS"],
        ["checkpoint", "repartition", NO_FOLDER, "--state-partitions", "2", "BROKERS"],
        ["checkpoint", "migrate", NO_FOLDER, "x"],
        ["checkpoint", "migrate", "CHECKPOINT", NO_FOLDER],
        ["checkpoint", "downgrade", NO_FOLDER, "--to", "0.1.0"],
    ],
    ids=" ".join,
)
def test_a_folder_that_cannot_be_used_is_one_line(
    coordinator: CoordinatorProcess,
    backup: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
) -> None:
    words = {
        "BROKERS": ["-b", coordinator.bootstrap_servers, "--topic-prefix", coordinator.topics.prefix],
        "BACKUP": [str(backup)],
        "CHECKPOINT": [str(backup / "checkpoint")],
    }
    monkeypatch.chdir(tmp_path)
    result = tried(*(word for each in arguments for word in words.get(each, [each])))
    assert_one_line(result, REFUSED)
    assert NO_FOLDER in result.stderr
    assert list(tmp_path.iterdir()) == []
