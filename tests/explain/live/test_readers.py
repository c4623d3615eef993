"""The fleet from the topics of a real coordinator."""

import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from coordinator_logic import apis
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    OffsetCommitRequest,
    PartitionToCommit,
    Protocol,
    TopicDescription,
    TopicToCommit,
)
from streaming.cli.commands.history.top import page_of
from streaming.cli.exit_codes import INTERRUPTED, REFUSED, USAGE
from streaming.client import CoordinatorClient, MemberIdRequired
from streaming.explain.live.fleet import FleetRow
from streaming.explain.live.readers import LiveFleet
from tests.cli.test_commands import COMMAND, printed_json, run, run_for
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until


@pytest.fixture(scope="module")
def client(coordinator: CoordinatorProcess) -> Iterator[CoordinatorClient]:
    with CoordinatorClient(
        coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix, client_id="top"
    ) as client:
        yield client


@pytest.fixture(scope="module")
def fleet(client: CoordinatorClient) -> Iterator[LiveFleet]:
    with LiveFleet(client, probe_seconds=0.5) as fleet:
        yield fleet


def row_of(fleet: LiveFleet, group_id: str) -> FleetRow | None:
    return next((row for row in fleet.rows() if row.group_id == group_id), None)


def test_a_committed_offset_shows_with_its_lag(client: CoordinatorClient, fleet: LiveFleet) -> None:
    topic, group_id = unique("behind"), unique("late")
    create_topic(client.bootstrap_servers, topic, 1)
    producer = Producer({"bootstrap.servers": client.bootstrap_servers})
    for _ in range(5):
        producer.produce(topic, b"record")
    assert producer.flush(LIMIT_SECONDS) == 0
    committed = OffsetCommitRequest(group_id, [TopicToCommit(topic, [PartitionToCommit(0, 2)])])
    assert client.offset_commit(committed).topics[0].partitions[0].error_code == 0

    def is_behind() -> bool:
        row = row_of(fleet, group_id)
        return row is not None and (row.state, row.lag) == ("Empty", 3)

    wait_until(is_behind, "the group is behind by three records")
    assert [topic, "0", "2", "5", "3", "-"] in [line.split() for line in page_of(client, group_id).splitlines()]


def test_a_rebalance_shows_with_its_reason(client: CoordinatorClient, fleet: LiveFleet) -> None:
    group_id = unique("moving")
    request = JoinGroupRequest(group_id, 60_000, "connect", [Protocol("p", b"metadata")], 60_000)
    with pytest.raises(MemberIdRequired) as required:
        client.join_group(request)
    assert isinstance(required.value.body, JoinGroupResponse)
    member_id = required.value.body.member_id
    joined = client.join_group(
        JoinGroupRequest(group_id, 60_000, "connect", [Protocol("p", b"metadata")], 60_000, member_id)
    )

    def has_rebalanced() -> bool:
        row = row_of(fleet, group_id)
        return row is not None and row.rebalances == 1 and row.rebalancing_share > 0 and row.reason is not None

    wait_until(has_rebalanced, "the rebalance is counted")
    assert joined.member_id in page_of(client, group_id)
    client.leave_group(LeaveGroupRequest(group_id, members=[LeavingMember(member_id)]))


def test_a_consumer_group_shows_its_members_and_their_partitions(client: CoordinatorClient) -> None:
    # Not a topic of the shared broker: it has no end offsets.
    group_id, name = unique("newer"), unique("orders")
    topic = TopicDescription(name, "orders________________", 2)
    join = ConsumerGroupHeartbeatRequest(
        group_id,
        "newer-member",
        0,
        rebalance_timeout_ms=30_000,
        subscribed_topic_names=[name],
        topic_partitions=[],
        topics=[topic],
    )
    joined = client.ask(apis.CONSUMER_GROUP_HEARTBEAT, group_id, join).result().unwrap()

    def is_shown() -> bool:
        # The target may be computed a moment later.
        beat = ConsumerGroupHeartbeatRequest(group_id, "newer-member", joined.member_epoch, topic_partitions=[])
        client.ask(apis.CONSUMER_GROUP_HEARTBEAT, group_id, beat).result().unwrap()
        page = page_of(client, group_id)
        return "newer-member (top at " in page and f"{name}: 0, 1" in page

    wait_until(is_shown, "the member and its partitions are shown")
    (first,) = [line.split() for line in page_of(client, group_id).splitlines() if line.split()[:2] == [name, "0"]]
    assert first[2:6] == ["-", "-", "-", "newer-member"]
    assert page_of(client, unique("nothing")) == "GROUP_ID_NOT_FOUND"


def test_the_active_job_its_backlog_and_its_answers_show(fleet: LiveFleet) -> None:
    def is_known() -> bool:
        pulse = fleet.pulse()
        return pulse.active is not None and pulse.backlog is not None and pulse.answer_ms is not None

    wait_until(is_known, "the active job is known")
    assert not fleet.pulse().active.is_released  # type: ignore[union-attr]


def test_a_pipe_gets_all_groups_once_as_a_table_or_as_json(
    coordinator: CoordinatorProcess, client: CoordinatorClient
) -> None:
    group_id = unique("piped")
    committed = OffsetCommitRequest(group_id, [TopicToCommit("piped", [PartitionToCommit(0, 2)])])
    assert client.offset_commit(committed).topics[0].partitions[0].error_code == 0
    snapshot = printed_json(run_for(coordinator, "top", "--json"))
    assert snapshot["coordinator"]["active"]["epoch"] > 0
    assert snapshot["coordinator"]["backlog"] is not None
    (row,) = (each for each in snapshot["groups"] if each["groupId"] == group_id)
    assert (row["state"], row["members"], row["offsets"]) == ("Empty", 0, 1)
    table = run_for(coordinator, "top", "--sort", "group")
    assert table.returncode == 0, table.stderr
    assert [line.split()[:2] for line in table.stdout.splitlines() if group_id in line] == [[group_id, "Empty"]]
    assert "active: " in table.stderr
    refused = run_for(coordinator, "top", "--sort", "colour")
    assert (refused.returncode, refused.stdout) == (USAGE, "")
    assert "rebalances" in refused.stderr


def test_top_says_at_once_that_no_coordinator_has_run(coordinator: CoordinatorProcess) -> None:
    prefix = {"GROUP_COORDINATOR_TOPIC_PREFIX": f"{unique('nothing')}-"}
    none = run("top", "--json", "-b", coordinator.bootstrap_servers, **prefix)
    assert (none.returncode, none.stdout) == (REFUSED, "")
    assert "does not exist" in none.stderr


ALTERNATE_SCREEN, NORMAL_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"


def test_a_key_ends_top_and_gives_the_terminal_back(coordinator: CoordinatorProcess) -> None:
    assert exit_code_after(coordinator, b"q") == 0
    assert exit_code_after(coordinator, b"\x03") == INTERRUPTED


def exit_code_after(coordinator: CoordinatorProcess, key: bytes) -> int:
    """The exit code of ``top`` in a terminal after a key."""
    connected = ["-b", coordinator.bootstrap_servers, "--topic-prefix", coordinator.topics.prefix]
    terminal, its_end = pty.openpty()
    termios.tcsetwinsize(its_end, (40, 160))
    with (
        os.fdopen(terminal, "rb", buffering=0),
        subprocess.Popen(
            [COMMAND, "top", *connected],
            stdin=its_end,
            stdout=its_end,
            stderr=its_end,
            env={**os.environ, "TERM": "xterm-256color"},
            start_new_session=True,
        ) as process,
    ):
        os.close(its_end)
        try:
            assert ALTERNATE_SCREEN in _read_until(terminal, b"REBALANCES/MIN")
            os.write(terminal, key)
            _read_until(terminal, NORMAL_SCREEN)
            return process.wait(LIMIT_SECONDS)
        finally:
            process.kill()


def _read_until(terminal: int, wanted: bytes) -> bytes:
    """What the terminal gets, until it has got this."""
    output, deadline = b"", time.monotonic() + LIMIT_SECONDS
    while wanted not in output:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"{wanted!r} is not in {output[-2000:]!r}"
        output += os.read(terminal, 65_536)
    return output
