"""Backups of a job under load, and the check of each: with Spark, and with the journal."""

import re
import shutil
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from streaming.contract.errors import CannotRun
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.backups.backup import back_up, finished_backups
from streaming.job.backups.manifest import CHECKPOINT, MANIFEST, read_manifest
from streaming.job.backups.verification import Verification, verify
from streaming.job.options import load_options
from streaming.job.spark_internals.checkpoint_layout.needed_files import newest_complete_batch
from streaming.job.state_stores import StateStore
from tests.job.backups.damage import replace_in_state
from tests.recovery.conversation import Conversation, join_request, sync_request
from tests.support.coordinator_process import SHORT_LIVED_JVM, CoordinatorProcess
from tests.support.kafka_io import append, reading
from tests.support.parameters.long_tests import mostly_long
from tests.support.request_events import commit, dumped
from tests.support.waiting import LIMIT_SECONDS, wait_until

GROUPS = 40
BACKUPS = 3
PAID, FORGED = b"paid by alice", b"paid by mally"


class Load:
    """Clients that commit, join and sync until they are stopped."""

    def __init__(self, coordinator: CoordinatorProcess) -> None:
        self._coordinator = coordinator
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.rounds = 0

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        servers, topics = self._coordinator.bootstrap_servers, self._coordinator.topics
        with reading(servers, topics.responses) as responses:
            clients = Conversation(servers, topics, responses)
            while not self._stop.is_set():
                commits = [(f"committing-{number}".encode(), self._commit(number)) for number in range(GROUPS)]
                append(servers, topics.requests, *commits)
                _form_generation(clients, f"joining-{self.rounds % 3}")
                self.rounds += 1

    def _commit(self, number: int) -> bytes:
        request = commit(f"committing-{number}", self.rounds)
        request["body"]["topics"][0]["partitions"][0]["committedMetadata"] = PAID.decode()
        return dumped(request)


def _form_generation(clients: Conversation, group_id: str) -> None:
    """The first round makes a group of one static member; later ones restart the member, or let its leader rejoin."""
    joined = clients.ask(group_id, "JoinGroup", 9, join_request(group_id, instance_id="worker"))["body"]
    sync = sync_request(group_id, joined["generationId"], joined["memberId"], {joined["memberId"]: b"all"})
    clients.ask(group_id, "SyncGroup", 5, sync)


class BackedUp:
    """A job that has stopped, with backups from its life."""

    def __init__(self, coordinator: CoordinatorProcess, target: Path) -> None:
        self.coordinator = coordinator
        self.target = target

    @property
    def backups(self) -> list[Path]:
        return finished_backups(self.target)

    def verify(self, folder: Path) -> Verification:
        """Verify with the journal."""
        flags = {
            "bootstrap_servers": self.coordinator.bootstrap_servers,
            "topic_prefix": self.coordinator.topics.prefix,
            "checkpoint": str(folder),
            "driver_memory": "512m",
            **SHORT_LIVED_JVM,
        }
        return verify(folder, load_options(flags, {}), LIMIT_SECONDS, print)

    def copy_of_newest(self, folder: Path) -> Path:
        """A copy of the newest backup's checkpoint, without its manifest."""
        return Path(shutil.copytree(self.backups[-1] / CHECKPOINT, folder / "copy"))


def has_moved_on(checkpoint: Path, batch: int) -> bool:
    """Whether a newer batch than this one is complete, and Spark has written a snapshot of the state."""
    snapshots = [*checkpoint.glob("state/0/*/*.snapshot"), *checkpoint.glob("state/0/*/*.zip")]
    return (newest_complete_batch(checkpoint) or 0) > batch and bool(snapshots)


@pytest.fixture(scope="module", params=mostly_long(["memory", "rocksdb"], ["memory"]))
def backed_up(
    broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[BackedUp]:
    """Backups of a job under load, each of a later batch, after snapshots and Spark's cleaning of old files."""
    store: StateStore = request.param
    folder = tmp_path_factory.mktemp("backed-up")
    quick = {"spark.sql.streaming.stateStore.maintenanceInterval": "2s", "spark.sql.streaming.minBatchesToRetain": "5"}
    options = {"state-store": store, "state-partitions": 2, **quick}
    coordinator = CoordinatorProcess(broker.bootstrap_servers, folder, options)
    target = folder / "backups"
    try:
        coordinator.start()
        with Load(coordinator) as load:
            batch = 0
            for _ in range(BACKUPS):
                rounds = load.rounds
                wait_until(partial(has_moved_on, coordinator.checkpoint, batch + 3), "further batches and a snapshot")
                wait_until(lambda rounds=rounds: load.rounds > rounds, "further requests")  # type: ignore[misc]
                batch = back_up(coordinator.checkpoint, target, None, datetime.now(UTC), print).batch
        coordinator.stop()
        yield BackedUp(coordinator, target)
    finally:
        coordinator.kill()


def test_a_backup_and_the_stopped_checkpoint_are_sound_and_agree_with_the_journal(backed_up: BackedUp) -> None:
    batches = []
    for folder in (backed_up.backups[-1], backed_up.coordinator.checkpoint):
        found = backed_up.verify(folder)
        assert found.differences == []
        assert found.groups == found.compared_in_full
        assert found.groups > GROUPS
        batches.append(found.batch)
    # The journal has gone on since the backup.
    assert batches[0] < batches[1]


def test_each_backup_is_of_a_later_batch_and_the_last_begins_with_a_snapshot(backed_up: BackedUp) -> None:
    manifests = [manifest for backup in backed_up.backups if (manifest := read_manifest(backup))]
    batches = [manifest.batch for manifest in manifests]
    assert len(batches) == BACKUPS
    assert batches == sorted(set(batches))
    assert any(name.endswith((".snapshot", ".zip")) for name in manifests[-1].files)


def test_a_changed_group_is_found_by_the_journal(backed_up: BackedUp, tmp_path: Path) -> None:
    if backed_up.coordinator.options["state-store"] != "memory":
        pytest.skip("the files of RocksDB cannot be forged here")
    copy = backed_up.copy_of_newest(tmp_path)
    assert replace_in_state(copy, PAID, FORGED) > 0
    found = backed_up.verify(copy)
    assert len(found.differences) == GROUPS
    assert all(FORGED.decode() in line and PAID.decode() in line for line in found.differences)


def test_a_state_file_that_is_cut_is_found_without_a_manifest(backed_up: BackedUp, tmp_path: Path) -> None:
    copy = backed_up.copy_of_newest(tmp_path)
    newest = max(copy.glob("state/0/1/[0-9]*.*"), key=lambda path: int(re.split("[._]", path.name)[0]))
    cut = newest.read_bytes()[: newest.stat().st_size // 2]
    newest.unlink()
    newest.write_bytes(cut)
    (difference,) = backed_up.verify(copy).differences
    assert "cannot be read" in difference


def test_a_copy_in_the_place_of_the_checkpoint_starts_with_its_groups(backed_up: BackedUp) -> None:
    coordinator = backed_up.coordinator
    manifest = read_manifest(backed_up.backups[0])
    assert manifest is not None
    shutil.rmtree(coordinator.checkpoint)
    shutil.copytree(backed_up.backups[0] / CHECKPOINT, coordinator.checkpoint)
    coordinator.start()
    try:
        assert any("loading groups from checkpoint" in line for line in coordinator.output)
        assert (newest_complete_batch(coordinator.checkpoint) or 0) > manifest.batch
        with pytest.raises(CannotRun, match=f"is in use by process {coordinator.pid} \\(group-coordinator run\\)"):
            backed_up.verify(coordinator.checkpoint)
    finally:
        coordinator.stop()


def test_an_unfinished_backup_and_a_folder_of_backups_are_refused(backed_up: BackedUp, tmp_path: Path) -> None:
    unfinished = Path(shutil.copytree(backed_up.backups[0], tmp_path / "unfinished"))
    (unfinished / MANIFEST).unlink()
    with pytest.raises(CannotRun, match="is an unfinished backup"):
        backed_up.verify(unfinished)
    with pytest.raises(CannotRun, match=f"holds {BACKUPS} backups"):
        backed_up.verify(backed_up.target)
