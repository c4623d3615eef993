"""The commands on a checkpoint and on backups in an object store, beside a job that runs on it."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.object_store.server import S3Server
from tests.support.coordinator_process import SHORT_LIVED_JVM, CoordinatorProcess, commit_offsets, committed_offsets

CHECKPOINT, BACKUPS, RESTORED, REBUILT, MIGRATED = (
    f"s3a://commands/{name}" for name in ("coordinator", "backups", "restored", "rebuilt", "migrated")
)


LIMIT_SECONDS = 180.0


@pytest.fixture(scope="module")
def job(broker: EmbeddedBroker, s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    """A job on a checkpoint in the store, which has groups."""
    s3.bucket("commands")
    options = {"checkpoint": CHECKPOINT, **s3.options}
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path_factory.mktemp("commands"), options) as process:
        process.start()
        commit_offsets(process, "billing", 5, 6)
        yield process


@pytest.fixture(scope="module")
def backup(job: CoordinatorProcess, s3: S3Server) -> str:
    """A backup in the store of the store's checkpoint, taken while the job runs."""
    return str(ran(s3, "checkpoint", "backup", CHECKPOINT, BACKUPS)["folder"])


def run(s3: S3Server, *words: str) -> subprocess.CompletedProcess[str]:
    settings = {**s3.options, **SHORT_LIVED_JVM, "driver-memory": "512m"}
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "streaming.cli", *words, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)


def ran(s3: S3Server, *words: str) -> Any:
    """What a command prints as JSON."""
    done = run(s3, *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def topics(job: CoordinatorProcess) -> Sequence[str]:
    return "-b", job.bootstrap_servers, "--topic-prefix", job.topics.prefix


def test_a_backup_of_a_running_job_is_listed_and_verified(job: CoordinatorProcess, s3: S3Server, backup: str) -> None:
    assert backup.startswith(f"{BACKUPS}/")
    manifest = json.loads((s3.folder / backup.removeprefix("s3a://") / "manifest.json").read_bytes())
    assert manifest["checkpoint"] == CHECKPOINT
    (held,) = ran(s3, "checkpoint", "list", BACKUPS)
    assert (held["folder"], held["batch"]) == (backup, manifest["batch"])
    verified = ran(s3, "checkpoint", "verify", backup, *topics(job))
    assert (verified["differences"], verified["groups"], verified["comparedInFull"]) == ([], 1, 1)


def test_only_the_newest_backups_are_kept(job: CoordinatorProcess, s3: S3Server) -> None:
    target = f"{BACKUPS}-of-two"
    for offset in (7, 8, 9):
        commit_offsets(job, "kept", offset)
        newest = ran(s3, "checkpoint", "backup", CHECKPOINT, target, "--keep", "2")["folder"]
    held = ran(s3, "checkpoint", "list", target)
    assert len(held) == 2
    assert held[-1]["folder"] == newest


def test_a_checkpoint_is_backed_up_to_a_folder_and_from_there(s3: S3Server, backup: str, tmp_path: Path) -> None:
    taken = ran(s3, "checkpoint", "backup", CHECKPOINT, str(tmp_path / "backups"))
    restored = ran(s3, "checkpoint", "restore", str(taken["folder"]), f"{RESTORED}-from-here", "--yes")
    assert restored["checkpoint"] == f"{RESTORED}-from-here"
    batches = ran(s3, "checkpoint", "list", f"{RESTORED}-from-here")
    assert [each["batch"] for each in batches] == [taken["batch"]]


def test_doctor_and_tables_read_the_checkpoint_of_the_running_job(job: CoordinatorProcess, s3: S3Server) -> None:
    found = {each["check"]: each for each in ran(s3, "doctor", "--checkpoint", CHECKPOINT, *topics(job))}
    assert found["checkpoint"]["status"] == "ok"
    found = {each["check"]: each for each in json.loads(run(s3, "doctor", "--checkpoint", CHECKPOINT, "--json").stdout)}
    assert f"belongs to {job.topics.requests}, not to" in found["checkpoint"]["detail"]
    query = "select groupId, offset from offsets where groupId = 'billing' and partition = 0"
    assert ran(s3, "sql", query, "--checkpoint", CHECKPOINT, *topics(job))["offset"] == 5


def test_a_place_in_the_store_that_is_not_free_is_refused(s3: S3Server, backup: str) -> None:
    refused = run(s3, "checkpoint", "restore", backup, CHECKPOINT, "--yes")
    assert refused.returncode == 1
    assert f"error: {CHECKPOINT} has a checkpoint, or a part of one: move it away first" in refused.stderr


def test_a_checkpoint_that_is_restored_and_rewritten_in_the_store_has_the_groups(
    job: CoordinatorProcess, s3: S3Server, backup: str
) -> None:
    job.stop()
    ran(s3, "checkpoint", "restore", backup, RESTORED, *topics(job))
    ran(s3, "checkpoint", "migrate", RESTORED, MIGRATED, *topics(job))
    changed = ran(s3, "checkpoint", "repartition", MIGRATED, "--state-partitions", "2", *topics(job))
    assert (changed["checkpoint"], changed["statePartitions"]) == (MIGRATED, 2)
    former = str(changed["former"])
    assert former.startswith(f"{MIGRATED}.20")
    assert (s3.folder / former.removeprefix("s3a://") / "offsets").is_dir()
    check_served(job, MIGRATED, state_partitions=2)


def test_a_checkpoint_that_is_rebuilt_in_the_store_has_the_groups(
    job: CoordinatorProcess, s3: S3Server, backup: str
) -> None:
    job.stop()
    ran(s3, "checkpoint", "rebuild", REBUILT, "--backup", backup, *topics(job))
    check_served(job, REBUILT, state_partitions=1)


def check_served(job: CoordinatorProcess, checkpoint: str, state_partitions: int) -> None:
    job.options |= {"checkpoint": checkpoint, "state-partitions": state_partitions}
    job.start()
    assert committed_offsets(job, "billing") == [5, 6]
    job.stop()
