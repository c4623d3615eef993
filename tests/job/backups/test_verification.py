"""Faults in the files of a backup, and folders and locations that are refused; found without Spark."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streaming.cli.app import app
from streaming.job.backups.backup import back_up
from streaming.job.backups.manifest import CHECKPOINT
from streaming.job.backups.verification import Verification, verify
from streaming.job.options import load_options
from tests.job.backups.fake_checkpoints import changes, memory_checkpoint


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    checkpoint = memory_checkpoint(tmp_path / "checkpoint", 3)
    return Path(back_up(checkpoint, tmp_path / "target", None, datetime.now(UTC), print).folder)


def verified(folder: Path) -> Verification:
    return verify(folder, load_options({"bootstrap_servers": "kafka:9092", "checkpoint": str(folder)}, {}), None, print)


def rewritten(path: Path, contents: str) -> None:
    """Write a new file: the old one is linked from the checkpoint."""
    path.unlink()
    path.write_text(contents)


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda root: rewritten(root / "state/0/0/2.delta", "chang"), "state/0/0/2.delta: 5 bytes, in the manifest 30"),
        (
            lambda root: rewritten(root / "state/0/0/2.delta", changes("changes X")),
            "state/0/0/2.delta: its contents are not those of the manifest",
        ),
        (lambda root: (root / "state/0/0/2.delta").unlink(), "state/0/0/2.delta: missing"),
        (lambda root: (root / "starts/1000").unlink(), "starts/1000: missing"),
        (lambda root: (root / "commits/9").write_text("v1\n{}"), "commits/9: not in the manifest"),
        (lambda root: rewritten(root / "offsets/2", "v1"), "offsets/2 cannot be read"),
    ],
)
def test_a_fault_in_the_files_of_a_backup_is_named(backup: Path, damage: Callable[[Path], object], found: str) -> None:
    damage(backup / CHECKPOINT)
    result = verified(backup)
    assert any(line.startswith(found) for line in result.differences), result.differences
    assert result.groups == 0


def test_a_missing_file_of_a_checkpoint_is_named(tmp_path: Path) -> None:
    checkpoint = memory_checkpoint(tmp_path / "checkpoint", 3)
    (checkpoint / "state/0/0/2.delta").unlink()
    assert verified(checkpoint).differences == ["state/0/0/2.delta: missing"]


def test_every_difference_is_a_line_and_the_exit_code_is_one(backup: Path) -> None:
    shutil.rmtree(backup / CHECKPOINT / "sources")
    verified_by_command = CliRunner().invoke(app, ["checkpoint", "verify", str(backup)], env={"COLUMNS": "80"})
    assert verified_by_command.exit_code == 1
    assert "sources/0/0: missing" in verified_by_command.stdout.splitlines()
    assert verified_by_command.stdout.splitlines()[-1] == "1 difference"


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, ["checkpoint", "verify", str(tmp_path)])
    assert refused.exit_code == 1
    assert "is neither a backup nor a checkpoint" in refused.stderr
