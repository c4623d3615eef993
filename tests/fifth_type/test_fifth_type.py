"""A type of group that is written here alone lives through the job, the topics and the command line."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.cli.test_commands import printed_json, run_for
from tests.fifth_type.workers import SESSION_MS
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import TopicReader, append, reading
from tests.support.request_events import commit, dumped, envelope
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
ON_PATH = ROOT / "tests" / "fifth_type" / "on_path"
CHECK_MS = 3_000
"""Groups without members and offsets are looked for so often."""
LONG_SESSION_MS = 300_000


@pytest.fixture(scope="module", autouse=True)
def every_process_knows_the_type() -> Iterator[None]:
    """Python imports ``sitecustomize`` of this folder in the job, its workers and the commands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ON_PATH), str(ROOT)]))
        yield


@pytest.fixture(scope="module")
def coordinator(
    broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory, every_process_knows_the_type: None
) -> Iterator[CoordinatorProcess]:
    options = {"offsets.retention.check.interval.ms": CHECK_MS, "group.min.session.timeout.ms": 1_000}
    with CoordinatorProcess(broker.bootstrap_servers, tmp_path_factory.mktemp("fifth"), options) as process:
        process.start()
        yield process


@pytest.fixture(scope="module")
def responses(coordinator: CoordinatorProcess) -> Iterator[TopicReader]:
    with reading(coordinator.bootstrap_servers, coordinator.topics.responses) as reader:
        yield reader


class Client:
    """Appends request events of one group, and waits for the responses."""

    def __init__(self, coordinator: CoordinatorProcess, responses: TopicReader, group_id: str) -> None:
        self.group_id = group_id
        self._coordinator, self._responses = coordinator, responses

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The body of the response."""
        topics = self._coordinator.topics
        append(self._coordinator.bootstrap_servers, topics.requests, (self.group_id.encode(), dumped(request)))
        key = request["correlationId"].encode()
        answer: dict[str, Any] = self._responses.first(lambda record: record.key == key, "the response").value["body"]
        return answer

    def heartbeat(self, member_id: str, **chosen: object) -> dict[str, Any]:
        body = {"groupId": self.group_id, "memberId": member_id, **chosen}
        return self.ask(envelope("WorkerHeartbeat", 0, body))

    def commit(self, member_id: str, offset: int) -> int:
        request = commit(self.group_id, offset)
        request["body"]["memberId"] = member_id
        error: int = self.ask(request)["topics"][0]["partitions"][0]["errorCode"]
        return error


def listed(coordinator: CoordinatorProcess, group_id: str) -> dict[str, str] | None:
    groups = printed_json(run_for(coordinator, "groups", "list", "--json"))
    return next((group for group in groups if group["groupId"] == group_id), None)


def test_workers_join_commit_and_leave_and_the_commands_show_and_delete_their_group(
    coordinator: CoordinatorProcess, responses: TopicReader
) -> None:
    client = Client(coordinator, responses, "workers")
    # Longer than the commands below take on a slow machine.
    session = {"sessionTimeoutMs": LONG_SESSION_MS}
    assert client.heartbeat("one", **session) == {"errorCode": 0, "workers": 1}
    assert client.heartbeat("two", **session) == {"errorCode": 0, "workers": 2}
    assert client.commit("one", 42) == 0
    assert client.commit("stranger", 43) == 25, "UNKNOWN_MEMBER_ID"

    shown = listed(coordinator, "workers")
    assert shown == {"groupId": "workers", "protocolType": "work", "groupState": "Stable", "groupType": "worker"}
    described = run_for(coordinator, "groups", "describe", "workers").stdout
    assert re.search(r"workers: Stable", described)
    assert re.search(r"\bone\b", described)
    assert re.search(r"\btwo\b", described)
    offsets = printed_json(run_for(coordinator, "offsets", "list", "workers", "--json"))["topics"]
    assert offsets[0]["partitions"][0]["committedOffset"] == 42

    refused = run_for(coordinator, "groups", "delete", "workers")
    assert (refused.returncode, refused.stderr.endswith("error: workers has 2 members: stop them first\n")) == (
        1,
        True,
    ), refused.stderr
    for member_id in ("one", "two"):
        client.heartbeat(member_id, leaves=True)
    assert run_for(coordinator, "groups", "delete", "workers").stdout == "workers: deleted\n"
    assert listed(coordinator, "workers") is None


def test_a_session_that_times_out_and_then_the_group_expires_over_a_restart(
    coordinator: CoordinatorProcess, responses: TopicReader
) -> None:
    client = Client(coordinator, responses, "expiring")
    lasting = {"sessionTimeoutMs": LONG_SESSION_MS}
    assert client.heartbeat("lasting", **lasting) == {"errorCode": 0, "workers": 1}
    assert client.heartbeat("one") == {"errorCode": 0, "workers": 2}
    # Another process removes the member, so the snapshot, and the type's part of it, survive.
    coordinator.kill()
    coordinator.start()
    with reading(coordinator.bootstrap_servers, coordinator.topics.journal) as journal:
        expelled = journal.first(
            lambda record: record.key == b"expiring" and record.value["record"]["type"] == "MemberRemoved",
            f"a member is removed {SESSION_MS} ms after its heartbeat",
        )
        assert expelled.value["record"]["reason"] == "its session timed out"
        assert expelled.value["cause"]["timer"] == "heartbeat"
    assert client.heartbeat("two", **lasting) == {"errorCode": 0, "workers": 2}, "the lasting one has survived"
    for member_id in ("lasting", "two"):
        client.heartbeat(member_id, leaves=True)
    wait_until(lambda: listed(coordinator, "expiring") is None, "the group is deleted, since it has no offsets")


def test_the_journal_tells_the_groups_story(coordinator: CoordinatorProcess, responses: TopicReader) -> None:
    client = Client(coordinator, responses, "told")
    client.heartbeat("one")
    story = run_for(coordinator, "explain", "told")
    assert story.returncode == 0, story.stderr
    assert "told" in story.stdout
