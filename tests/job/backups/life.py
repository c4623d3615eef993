"""A job's life for the commands that make checkpoints: groups, a backup from the middle, a journal, and an end."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from streaming.job.backups.backup import back_up
from streaming.job.checkpoints.lock import LOCKS
from tests.recovery.conversation import Body, Conversation, join_request, offsets, sync_request
from tests.support.coordinator_process import SHORT_LIVED_JVM, CoordinatorProcess
from tests.support.kafka_io import reading
from tests.support.processes import Process

COMMITTING = tuple(f"committing-{number}" for number in range(30))
"""Groups without members."""
SESSION = [f"--set={key}={value}" for key, value in {"driver-memory": "512m", **SHORT_LIVED_JVM}.items()]
LIMIT_SECONDS = 300.0
BEFORE, AFTER = 5, 9
"""The offsets that are committed before the backup and after it."""

UNANSWERED = tuple(f"unanswered-{number}" for number in range(30))
"""The groups with whose commits a job is killed."""


class Life:
    """A job that has ended, and what is left of it."""

    def __init__(self, coordinator: CoordinatorProcess, folder: Path) -> None:
        self.coordinator = coordinator
        self.folder = folder
        self.original = folder / "original"
        self.backup = folder / "none"
        self.member_id = ""

    def copy(self, name: str) -> Path:
        """A copy of the checkpoint as the job left it."""
        return Path(shutil.copytree(self.original, self.folder / name, ignore=shutil.ignore_patterns(*LOCKS)))

    @property
    def topics(self) -> Sequence[str]:
        """The options of a command that reads the topics."""
        return ("-b", self.coordinator.bootstrap_servers, "--topic-prefix", self.coordinator.topics.prefix)

    @contextmanager
    def running(self, checkpoint: Path) -> Iterator[Conversation]:
        """A job on a checkpoint, and a client; the job stops after the block, if it runs then."""
        coordinator = self.coordinator
        coordinator.checkpoint = checkpoint
        coordinator.options["checkpoint"] = str(checkpoint)
        # As the checkpoint was made.
        coordinator.options.pop("state-partitions", None)
        coordinator.start()
        try:
            with reading(coordinator.bootstrap_servers, coordinator.topics.responses) as responses:
                yield Conversation(coordinator.bootstrap_servers, coordinator.topics, responses)
            coordinator.stop()
        finally:
            coordinator.kill()


def commit_of(group_id: str, offset: int) -> Body:
    """The body of an OffsetCommit without a member."""
    return {"groupId": group_id, "generationIdOrMemberEpoch": -1, "memberId": "", "topics": offsets(offset)}


def commit(clients: Conversation, offset: int, *group_ids: str) -> None:
    """Commit this offset for each of these groups, in one batch."""
    answers = clients.ask_all("OffsetCommit", 5, [commit_of(group_id, offset) for group_id in group_ids])
    assert {answer["errorCode"] for answer in answers} == {0}


def committed(clients: Conversation, *group_ids: str) -> set[int]:
    """The offsets that these groups have committed."""
    topics = [{"name": "payments", "partitionIndexes": [0]}]
    answers = clients.ask_all("OffsetFetch", 5, [{"groupId": group_id, "topics": topics} for group_id in group_ids])
    return {int(answer["body"]["topics"][0]["partitions"][0]["committedOffset"]) for answer in answers}


def form_group(clients: Conversation, group_id: str) -> str:
    """A Stable group of one static member; returns the member's id."""
    joined = clients.ask(group_id, "JoinGroup", 9, join_request(group_id, instance_id="worker"))["body"]
    member_id = str(joined["memberId"])
    sync = sync_request(group_id, joined["generationId"], member_id, {member_id: b"all"})
    assert clients.ask(group_id, "SyncGroup", 5, sync)["errorCode"] == 0
    return member_id


def live(life: Life, *, is_killed: bool = False) -> None:
    """Let the job live: groups and commits before the backup and after it; then it stops, or is killed at work."""
    coordinator = life.coordinator
    with life.running(life.folder / "checkpoint") as clients:
        life.member_id = form_group(clients, "stable")
        form_group(clients, "rebalancing")
        commit(clients, BEFORE, *COMMITTING)
        taken = back_up(coordinator.checkpoint, life.folder / "backups", None, datetime.now(UTC), print)
        life.backup = Path(taken.folder)
        commit(clients, AFTER, *COMMITTING)
        # The member has left the group in which it was alone, and another one waits for its first generation.
        clients.ask("stable", "Heartbeat", 4, {"groupId": "stable", "generationId": 1, "memberId": life.member_id})
        waiting = clients.ask("rebalancing", "JoinGroup", 9, join_request("rebalancing"))["body"]
        clients.send("rebalancing", "JoinGroup", 9, join_request("rebalancing", waiting["memberId"]))
        commit(clients, AFTER, "last")
        if is_killed:
            for group_id in UNANSWERED:
                clients.send(group_id, "OffsetCommit", 5, commit_of(group_id, AFTER))
            coordinator.kill()
    coordinator.checkpoint.rename(life.original)


def command(*arguments: object) -> Process:
    """``group-coordinator checkpoint ...``, started."""
    words = ["checkpoint", *map(str, arguments), *SESSION]
    process = Process("checkpoint", [sys.executable, "-m", "streaming.cli", *words])
    process.start()
    return process


def run(*arguments: object) -> list[str]:
    """The lines of a command that succeeds."""
    with command(*arguments) as process:
        assert process.wait(LIMIT_SECONDS) == 0, process.tail()
    return process.output


def check_served(life: Life, checkpoint: Path, *unanswered: str) -> None:
    """A job on the checkpoint has the members and the offsets, and takes further requests.

    ``unanswered`` are groups whose commits were not answered before the job ended: the job has read them since.
    """
    with life.running(checkpoint) as clients:
        assert clients.heartbeat("stable", 1, life.member_id) == 0
        assert committed(clients, *COMMITTING, "last", *unanswered) == {AFTER}
        commit(clients, AFTER, f"written-by-{checkpoint.name}")
        assert committed(clients, f"written-by-{checkpoint.name}") == {AFTER}
