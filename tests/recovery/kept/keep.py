"""Make a checkpoint that :mod:`tests.recovery.kept.test_checkpoint` goes on with.

``python -m tests.recovery.kept.keep SOURCE_TREE`` runs the job of another source tree (a clone of this project at
some commit) on a new broker, brings a few groups into the states that a failover should preserve, and packs the
checkpoint, the log of requests and what the clients know into ``archives/COMMIT.tar.gz``.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from streaming.embedded.broker import EmbeddedBroker
from streaming.job.checkpoints.lock import LOCKS
from tests.recovery.conversation import Body, Conversation, join_request, offsets, sync_request
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import reading

KEPT = Path(__file__).with_name("archives")
REQUEST_PARTITIONS = RESPONSE_PARTITIONS = 2
OPTIONS = {
    "topic-prefix": "kept-",
    "request-partitions": REQUEST_PARTITIONS,
    "response-partitions": RESPONSE_PARTITIONS,
}
MEMBER_ID_REQUIRED = 79
REBALANCE_IN_PROGRESS = 27
PRODUCER = {"transactionalId": "payments-writer", "producerId": 4000, "producerEpoch": 0}


def main(source_tree: Path) -> None:
    """Run the job of ``source_tree`` and write the archive of its commit into :data:`KEPT`."""
    commit = ["git", "-C", str(source_tree), "rev-parse", "--short=7", "HEAD"]
    archive = KEPT / f"{subprocess.check_output(commit, text=True).strip()}.tar.gz"
    # The job's process, and nothing else, imports the other tree.
    os.environ["PYTHONPATH"] = str(source_tree)
    os.chdir(source_tree)
    with tempfile.TemporaryDirectory() as folder, EmbeddedBroker() as broker:
        coordinator = CoordinatorProcess(broker.bootstrap_servers, Path(folder), OPTIONS)
        coordinator.start()
        try:
            topics = coordinator.topics
            with reading(broker.bootstrap_servers, topics.responses) as responses:
                known = _converse(Conversation(broker.bootstrap_servers, topics, responses))
            coordinator.stop()
        finally:
            coordinator.kill()
        with reading(broker.bootstrap_servers, topics.requests) as requests:
            log = [
                [record.partition, *(base64.b64encode(part or b"").decode() for part in (record.key, record.raw))]
                for record in requests.to_the_end()
            ]
        _pack(archive, coordinator.checkpoint, {"known": known, "requests": log})


def _converse(clients: Conversation) -> Body:
    """Bring the groups into their states; returns what their clients know afterwards."""
    known = {"stable": _stable_group(clients), "joining": _joining_group(clients)}
    commit = {"groupId": "simple", "generationIdOrMemberEpoch": -1, "memberId": "", "topics": offsets(7, 8)}
    assert clients.ask("simple", "OffsetCommit", 5, commit)["errorCode"] == 0
    commit |= {"groupId": "transactional", "topics": offsets(20)}
    assert clients.ask("transactional", "OffsetCommit", 5, commit)["errorCode"] == 0
    pending = {**PRODUCER, "groupId": "transactional", "topics": offsets(21)}
    assert clients.ask("transactional", "TxnOffsetCommit", 3, pending)["errorCode"] == 0
    return known


def _stable_group(clients: Conversation) -> Body:
    """A static and a dynamic member, both assigned, and a commit of theirs."""
    static = clients.ask("stable", "JoinGroup", 9, join_request("stable", instance_id="worker-1"))["body"]
    dynamic_id = clients.ask("stable", "JoinGroup", 9, join_request("stable"))["body"]["memberId"]
    static_id = static["memberId"]
    parked = clients.send("stable", "JoinGroup", 9, join_request("stable", dynamic_id))
    rejoined = clients.ask("stable", "JoinGroup", 9, join_request("stable", static_id, "worker-1"))["body"]
    generation_id = rejoined["generationId"]
    assert clients.response(parked)["body"]["generationId"] == generation_id
    assignments = {static_id: b"even partitions", dynamic_id: b"odd partitions"}
    for member_id, sent in ((static_id, assignments), (dynamic_id, {})):
        synced = clients.ask("stable", "SyncGroup", 5, sync_request("stable", generation_id, member_id, sent))
        assert base64.b64decode(synced["body"]["assignment"]) == assignments[member_id]
    commit = {
        "groupId": "stable",
        "generationIdOrMemberEpoch": generation_id,
        "memberId": dynamic_id,
        "topics": offsets(41, 42),
    }
    assert clients.ask("stable", "OffsetCommit", 7, commit)["errorCode"] == 0
    return {"generationId": generation_id, "static": static_id, "dynamic": dynamic_id}


def _joining_group(clients: Conversation) -> Body:
    """A member in a generation of its own, and the parked join of a second one."""
    first_id = clients.ask("joining", "JoinGroup", 9, join_request("joining"), partition=1)["body"]["memberId"]
    joined = clients.ask("joining", "JoinGroup", 9, join_request("joining", first_id), partition=1)["body"]
    generation_id = joined["generationId"]
    sync = sync_request("joining", generation_id, first_id, {first_id: b"all partitions"})
    assert clients.ask("joining", "SyncGroup", 5, sync, partition=1)["errorCode"] == 0
    required = clients.ask("joining", "JoinGroup", 9, join_request("joining"), partition=1)
    assert required["errorCode"] == MEMBER_ID_REQUIRED
    second_id = required["body"]["memberId"]
    parked = clients.send("joining", "JoinGroup", 9, join_request("joining", second_id), partition=1)
    assert clients.heartbeat("joining", generation_id, first_id, partition=1) == REBALANCE_IN_PROGRESS
    return {"generationId": generation_id, "first": first_id, "second": second_id, "parkedJoin": parked}


def _pack(archive: Path, checkpoint: Path, contents: Body) -> None:
    for name in LOCKS:
        (checkpoint / name).unlink()
    for checksum in checkpoint.rglob(".*.crc"):
        checksum.unlink()
    (checkpoint / "contents.json").write_text(json.dumps(contents))
    packed = shutil.make_archive(str(checkpoint), "gztar", checkpoint)
    shutil.move(packed, archive)
    with tarfile.open(archive) as members:
        print(f"{archive}: {len(members.getnames())} files, {archive.stat().st_size} bytes")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
