"""Make an archive of what the code of a commit writes: ``python -m tests.recovery.kept.keep COMMIT``.

Runs the job of that commit on a new broker, brings a few groups into the states that a failover should preserve, and
takes a backup. ``archives/COMMIT.tar.gz`` then has the checkpoint, with the backup in a folder ``backup``, and in
``contents.json`` the records of the topics, what the clients know, and each group's stored state.
"""

import base64
import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from streaming.embedded.broker import EmbeddedBroker
from streaming.job.backups.checkpoint_writing import complete_batch, local_session, read_groups
from streaming.job.checkpoints.lock import LOCKS
from streaming.job.options import load_options
from tests.recovery.conversation import Body, Conversation
from tests.recovery.kept.archive import ARCHIVES, BACKUP, CONTENTS, OPTIONS
from tests.recovery.kept.groups import after_backup, converse
from tests.support.coordinator_process import QUICK_OF_0_1, CoordinatorProcess
from tests.support.kafka_io import reading
from tests.support.processes import Process
from tests.support.source_tree import code_of, unpack_commit


def main(commit: str) -> None:
    """Run the job of ``commit`` and write its archive."""
    with tempfile.TemporaryDirectory() as scratch, EmbeddedBroker() as broker:
        folder = Path(scratch)
        code = code_of(unpack_commit(commit, folder / "code"))
        coordinator = CoordinatorProcess(
            broker.bootstrap_servers, folder, OPTIONS, defaults=QUICK_OF_0_1, environment=code
        )
        backups = folder / "backups"
        back_up = [sys.executable, "-m", "streaming.cli", "checkpoint", "backup", str(coordinator.checkpoint)]
        taking = Process("backup", [*back_up, str(backups)], environment=code)
        try:
            coordinator.start()
            with reading(broker.bootstrap_servers, coordinator.topics.responses) as responses:
                clients = Conversation(broker.bootstrap_servers, coordinator.topics, responses)
                known = converse(clients)
                taking.start()
                assert taking.wait() == 0, taking.tail()
                after_backup(clients)
            assert coordinator.stop() == 0, coordinator.tail()
        finally:
            taking.kill()
            coordinator.kill()
        (backup,) = backups.glob("*-batch-*")
        _pack(commit, coordinator.checkpoint, backup, {"known": known, **_records(coordinator)})


def _records(coordinator: CoordinatorProcess) -> Body:
    """The records of the topics, each as its partition, key and value in base64."""
    topics = coordinator.topics
    kept = {"requests": topics.requests, "journal": topics.journal, "directory": topics.directory}
    found = {}
    for name, topic in kept.items():
        with reading(coordinator.bootstrap_servers, topic) as reader:
            found[name] = [[one.partition, _text(one.key), _text(one.raw)] for one in reader.to_the_end()]
    return found


def _states(checkpoint: Path) -> dict[str, str | None]:
    """The stored state of each group."""
    flags = {"bootstrap_servers": "kafka:9092", "checkpoint": str(checkpoint), "driver_memory": "512m"}
    with local_session(load_options(flags, {}), checkpoint, print) as spark:
        groups = read_groups(spark, checkpoint, complete_batch(checkpoint), print)
    return {group.group_id: _text(group.stored) for group in groups}


def _text(column: bytes | None) -> str | None:
    return None if column is None else base64.b64encode(column).decode()


def _pack(commit: str, checkpoint: Path, backup: Path, contents: Body) -> None:
    contents["states"] = _states(checkpoint)
    for name in LOCKS:
        (checkpoint / name).unlink()
    for checksum in checkpoint.rglob(".*.crc"):
        checksum.unlink()
    shutil.copytree(backup, checkpoint / BACKUP)
    (checkpoint / CONTENTS).write_text(json.dumps(contents))
    packed = shutil.make_archive(str(checkpoint), "gztar", checkpoint)
    archive = ARCHIVES / f"{commit}.tar.gz"
    shutil.move(packed, archive)
    with tarfile.open(archive) as members:
        print(f"{archive}: {len(members.getnames())} files, {archive.stat().st_size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
