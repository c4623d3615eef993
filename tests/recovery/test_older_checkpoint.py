"""A checkpoint that is older than what the last active job had read, as after a restore, and a new one in its place."""

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.recovery.conversation import Body, Conversation, join_request, offsets, sync_request
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import reading
from tests.support.waiting import wait_until

GROUP = "payments-readers"
REBALANCE_IN_PROGRESS = 27
SESSION_MS, SILENT_SESSION_MS = 120_000, 20_000
"""A job that has just started on a busy machine may take half a minute for an answer, before which a member of this
test sends no further heartbeat."""
OPTIONS = {
    "group.min.session.timeout.ms": 1_000,
    "request-partitions": 1,
    # A busy machine answers late. A session that a late answer has extended is stored nowhere, and a replay ends it
    # earlier. An answer counts as late after this interval; the requests begin the batches meanwhile.
    "trigger-interval-ms": 15_000,
    "cpu-budget": 8,
}


@pytest.fixture
def coordinator(broker: EmbeddedBroker, tmp_path: Path) -> Iterator[CoordinatorProcess]:
    job = CoordinatorProcess(broker.bootstrap_servers, tmp_path, OPTIONS)
    with ExitStack() as stack:
        stack.callback(job.kill)
        yield job


@pytest.fixture
def clients(coordinator: CoordinatorProcess) -> Iterator[Conversation]:
    coordinator.start()
    with reading(coordinator.bootstrap_servers, coordinator.topics.responses) as responses:
        yield Conversation(coordinator.bootstrap_servers, coordinator.topics, responses)


class Member:
    """A member of the group, as its requests and answers make it."""

    def __init__(self, clients: Conversation, session_ms: int = SESSION_MS) -> None:
        self._clients = clients
        self._session_ms = session_ms
        self.member_id = ""
        self.generation = -1

    def join(self) -> str:
        """Send a JoinGroup; returns its correlation id."""
        timeouts = {"sessionTimeoutMs": self._session_ms, "rebalanceTimeoutMs": SESSION_MS}
        return self._clients.send(GROUP, "JoinGroup", 3, {**join_request(GROUP, self.member_id), **timeouts})

    def finish_join(self, answer: Body) -> None:
        """Read the answer to a JoinGroup, and sync."""
        assert answer["errorCode"] == 0
        self.member_id, self.generation = answer["body"]["memberId"], answer["body"]["generationId"]
        assignments = {member["memberId"]: b"all" for member in answer["body"]["members"]}
        self._clients.ask(GROUP, "SyncGroup", 3, sync_request(GROUP, self.generation, self.member_id, assignments))

    def heartbeat(self) -> int:
        return self._clients.heartbeat(GROUP, self.generation, self.member_id)

    def commit(self, *committed: int) -> set[int]:
        """Commit these offsets with metadata, one after the other; returns the error codes."""
        bodies = [self._commit_of(offset) for offset in committed]
        answers = [answer["body"] for answer in self._clients.ask_all("OffsetCommit", 5, bodies)]
        return {int(answer["topics"][0]["partitions"][0]["errorCode"]) for answer in answers}

    def _commit_of(self, offset: int) -> Body:
        topics = offsets(offset)
        topics[0]["partitions"][0]["committedMetadata"] = "from the first job"
        return {
            "groupId": GROUP,
            "generationIdOrMemberEpoch": self.generation,
            "memberId": self.member_id,
            "topics": topics,
        }


def committed(clients: Conversation) -> int:
    response = clients.ask(GROUP, "OffsetFetch", 5, {"groupId": GROUP})
    (topic,) = response["body"]["topics"] or ({"partitions": [{"committedOffset": -1}]},)
    return int(topic["partitions"][0]["committedOffset"])


def two_members(clients: Conversation) -> tuple[Member, Member]:
    first, second = Member(clients), Member(clients, SILENT_SESSION_MS)
    first.finish_join(clients.response(first.join()))
    joining = second.join()
    wait_until(lambda: first.heartbeat() == REBALANCE_IN_PROGRESS, "the rebalance")
    rejoining = first.join()
    answers = clients.response(rejoining), clients.response(joining)
    first.finish_join(answers[0])
    second.finish_join(answers[1])
    return first, second


@pytest.mark.parametrize(
    "is_killed", [pytest.param(False, id="stop"), pytest.param(True, id="kills", marks=pytest.mark.long)]
)
def test_a_restored_copy_comes_to_the_offsets_and_members_that_were_lost(
    coordinator: CoordinatorProcess, clients: Conversation, is_killed: bool
) -> None:
    first, _silent = two_members(clients)
    assert first.commit(100) == {0}
    coordinator.stop()
    copy = coordinator.checkpoint.with_name("copy")
    shutil.copytree(coordinator.checkpoint, copy)
    coordinator.start()
    wait_until(lambda: first.heartbeat() != 0, "the end of the silent member's session", pause=1.0)
    assert first.heartbeat() == REBALANCE_IN_PROGRESS, "the other member's session goes on"
    first.finish_join(clients.response(first.join()))
    assert first.generation == 3
    assert first.commit(*range(190, 220)) == {0}

    if is_killed:
        coordinator.kill()
    else:
        coordinator.stop()
    shutil.rmtree(coordinator.checkpoint)
    shutil.copytree(copy, coordinator.checkpoint)
    # What was allowed then is played as it was then.
    coordinator.options["offset.metadata.max.bytes"] = 1
    if is_killed:
        # Kills in the middle of such a start change nothing.
        coordinator.options["max-requests-per-batch"] = 5
        for _ in range(2):
            kill_after_two_batches(coordinator)
    coordinator.start()
    assert any("is older than the last active job" in line for line in coordinator.output)
    assert committed(clients) == 219
    assert first.heartbeat() == 0
    assert first.commit(220) == {12}, "the option holds for new requests"
    answers: dict[bytes | None, set[str]] = {}
    with reading(coordinator.bootstrap_servers, coordinator.topics.responses) as responses:
        for record in responses.to_the_end():
            # It names the line of the directory that is written with the answer: one for each batch.
            answer = {name: value for name, value in record.value.items() if name != "directoryChange"}
            answers.setdefault(record.key, set()).add(json.dumps(answer))
    assert [contents for contents in answers.values() if len(contents) > 1] == []


def kill_after_two_batches(coordinator: CoordinatorProcess) -> None:
    before = newest_batch(coordinator.checkpoint)
    coordinator.launch()
    wait_until(lambda: newest_batch(coordinator.checkpoint) > before + 1, "two batches")
    coordinator.kill()


def newest_batch(checkpoint: Path) -> int:
    return max((int(file.name) for file in (checkpoint / "commits").glob("[0-9]*")), default=-1)


def test_a_new_checkpoint_is_refused_where_groups_were_unless_it_is_meant(
    coordinator: CoordinatorProcess, clients: Conversation
) -> None:
    first, _ = two_members(clients)
    assert first.commit(7) == {0}
    coordinator.stop()
    shutil.rmtree(coordinator.checkpoint)
    coordinator.launch()
    assert coordinator.wait() != 0
    (line,) = (line for line in coordinator.output if "is new, but a coordinator has had groups" in line)
    for help_ in ("checkpoint restore", "checkpoint rebuild", "--new-checkpoint"):
        assert help_ in line
    coordinator.options["new-checkpoint"] = True
    coordinator.start()
    assert committed(clients) == 7, "the topic still has the request"
