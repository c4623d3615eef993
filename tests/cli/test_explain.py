"""``group-coordinator explain`` and ``events``."""

import json
import re
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Producer

from coordinator_logic import apis
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    OffsetCommitRequest,
    PartitionToCommit,
    Protocol,
    SyncGroupRequest,
    TopicDescription,
    TopicIdPartitions,
    TopicToCommit,
)
from streaming.client import CoordinatorClient
from streaming.client.errors import MemberIdRequired
from tests.cli.test_commands import COMMAND, UNREACHABLE, printed_json, run, run_for
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.processes import Process
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

REASON = "the consumer is being closed"
CLIENT_ID = "reader"


def joined_member(client: CoordinatorClient, group: str) -> str:
    """Let a member join a group of its own; returns its id."""
    first_join = JoinGroupRequest(group, 10_000, "consumer", [Protocol("range", b"")], 20_000)
    with pytest.raises(MemberIdRequired) as required:
        client.join_group(first_join)
    assert isinstance(required.value.body, JoinGroupResponse)
    return client.join_group(msgspec.structs.replace(first_join, member_id=required.value.body.member_id)).member_id


def leave(client: CoordinatorClient, group: str, member_id: str) -> None:
    left = client.leave_group(LeaveGroupRequest(group, members=[LeavingMember(member_id, reason=REASON)]))
    assert left.error_code == Error.NONE


@pytest.fixture
def client(coordinator: CoordinatorProcess) -> Iterator[CoordinatorClient]:
    """A client of the coordinator."""
    servers, prefix = coordinator.bootstrap_servers, coordinator.topics.prefix
    with CoordinatorClient(servers, topic_prefix=prefix, client_id=CLIENT_ID) as connected:
        yield connected


def await_empty(coordinator: CoordinatorProcess, group: str) -> Any:
    """The story of the group as soon as it is Empty: the journal and the answer are written in any order."""

    def told() -> Any:
        ended = run_for(coordinator, "explain", group, "--json")
        return printed_json(ended) if ended.returncode == 0 else {"now": {"state": ""}}

    wait_until(lambda: told()["now"]["state"] == "Empty", "the journal says that the member has left")
    return told()


def test_explain_names_the_cause_of_each_rebalance(
    coordinator: CoordinatorProcess, client: CoordinatorClient, tmp_path: Path
) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    leave(client, group, joined_member(client, group))
    story = await_empty(coordinator, group)
    first, last = story["rebalances"]
    assert (first["causes"][0]["trigger"], first["causes"][0]["isCertain"]) == ("member joined", True)
    assert last["causes"][0]["trigger"] == "member left"
    assert REASON in last["causes"][0]["text"]
    assert last["causes"][0]["evidence"]
    told = run_for(coordinator, "explain", group, "--since", "1h", "--member", CLIENT_ID)
    assert told.returncode == 0
    assert "member joined -> generation 1" in told.stdout
    page, trace = tmp_path / "story.html", tmp_path / "story.json"
    written = run_for(coordinator, "explain", group, "--html", str(page), "--trace", str(trace))
    assert f"wrote {page}" in written.stdout
    assert f"<title>{group}: rebalances</title>" in page.read_text()
    assert {"joined", "left"} <= {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
    of_nobody = printed_json(run_for(coordinator, "explain", group, "--member", "nobody", "--json"))
    assert of_nobody["rebalances"] == []


def test_a_part_of_a_story_begins_with_what_was_before_it(
    coordinator: CoordinatorProcess, client: CoordinatorClient
) -> None:
    group = unique("group")
    member_id = joined_member(client, group)
    assert client.sync_group(SyncGroupRequest(group, 1, member_id, None, "consumer", "range")).error_code == Error.NONE
    begin = datetime.now(UTC).isoformat()
    commit = OffsetCommitRequest(group, [TopicToCommit("orders", [PartitionToCommit(0, 1)])], 1, member_id)
    assert client.offset_commit(commit).topics[0].partitions[0].error_code == Error.NONE

    def told() -> Any:
        return run_for(coordinator, "explain", group, "--json", "--since", begin)

    wait_until(lambda: told().returncode == 0, "the journal has the commit")
    story = printed_json(told())
    assert [one["member"] for one in story["now"]["members"]] == [member_id]
    assert (story["now"]["state"], story["rebalances"]) == ("Stable", [])
    nothing = run_for(coordinator, "explain", group, "--since", "2100-01-01T00:00:00Z")
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert f"no entries of {group} since 2100-01-01T00:00:00.000Z: the newest one is of " in nothing.stderr


def test_the_page_has_the_lag_of_the_groups_partitions(
    coordinator: CoordinatorProcess, client: CoordinatorClient, tmp_path: Path
) -> None:
    group, topic, page = unique("group"), unique("orders"), tmp_path / "story.html"
    create_topic(coordinator.bootstrap_servers, topic, 1)
    producer = Producer({"bootstrap.servers": coordinator.bootstrap_servers})
    for _ in range(5):
        producer.produce(topic, b"record")
    assert producer.flush(LIMIT_SECONDS) == 0
    committed = [TopicToCommit(topic, [PartitionToCommit(0, 2)]), TopicToCommit("nowhere", [PartitionToCommit(0, 1)])]
    for commits in client.offset_commit(OffsetCommitRequest(group, committed)).topics:
        assert commits.partitions[0].error_code == Error.NONE

    def lag() -> Any:
        written = run_for(coordinator, "explain", group, "--html", str(page), "--lag")
        if written.returncode != 0:
            return None
        (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text())
        return json.loads(data)["lag"]

    wait_until(lambda: (lag() or {"partitions": []})["partitions"], "the journal has the offsets")
    found = lag()
    assert found["partitions"] == [["nowhere", 0, 1, None], [topic, 0, 2, 5]]
    assert found["samples"][-1][1] == 3


def test_explain_follows_a_group_that_does_not_exist_yet(
    coordinator: CoordinatorProcess, client: CoordinatorClient
) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    servers, prefix = coordinator.bootstrap_servers, coordinator.topics.prefix
    command = [str(COMMAND), "explain", group, "--live", "--json", "-b", servers, "--topic-prefix", prefix]
    following = Process("explain --live", command)
    following.start()
    try:
        leave(client, group, joined_member(client, group))
        line = following.await_line("the member that left", lambda one: '"member left"' in one)
    finally:
        following.kill()
    # The story as it was at first is a line, too.
    told = json.loads(line)
    assert REASON in told.get("rebalances", [told])[-1]["causes"][0]["text"]


def test_events_have_the_rebalances_of_every_group(coordinator: CoordinatorProcess, client: CoordinatorClient) -> None:
    groups = [f"group-{uuid.uuid4().hex[:8]}" for _ in range(2)]
    for group in groups:
        leave(client, group, joined_member(client, group))
        await_empty(coordinator, group)
    lines = run_for(coordinator, "events", "--since", "1h").stdout.splitlines()
    for group in groups:
        told = [line for line in lines if f"  {group}  " in line]
        assert [line.split("  ")[2] for line in told] == [
            "member joined -> generation 1",
            "member left -> generation 2",
        ]
    as_json = [json.loads(line) for line in run_for(coordinator, "events", "--json").stdout.splitlines()]
    assert {(one["groupId"], one["causes"][0]["trigger"]) for one in as_json} >= {(groups[1], "member left")}


def test_explain_names_the_member_whose_revocation_a_consumer_group_waited_for(
    coordinator: CoordinatorProcess, client: CoordinatorClient
) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    topic = TopicDescription("orders", "orders________________", 2)

    def beat(member_id: str, epoch: int, owned: Sequence[int]) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            group,
            member_id,
            epoch,
            rebalance_timeout_ms=30_000 if epoch == 0 else -1,
            subscribed_topic_names=["orders"] if epoch == 0 else None,
            topic_partitions=[TopicIdPartitions(topic.topic_id, list(owned))] if owned else [],
            topics=[topic],
        )
        return client.ask(apis.CONSUMER_GROUP_HEARTBEAT, group, request).result().unwrap()

    epoch = beat("a", 0, []).member_epoch
    beat("b", 0, [])
    # The target may be computed a moment later.
    wait_until(lambda: beat("a", epoch, [0, 1]).assignment is not None, "a is to revoke a partition")

    def waits() -> list[tuple[str, str]]:
        story = printed_json(run_for(coordinator, "explain", group, "--json"))
        assert story["groupType"] == "consumer"
        return [(one["member"], one["what"]) for one in story["now"]["waitsFor"]]

    wait_until(lambda: waits() == [("a", "to revoke orders 1")], "the journal says what a is to revoke")
    beat("a", epoch, [0])
    wait_until(lambda: ("a", "to revoke orders 1") not in waits(), "the journal says that a has revoked it")
    text = run_for(coordinator, "explain", group).stdout
    assert "member joined -> epoch 3" in text
    assert "to revoke orders 1" in text


def test_explain_tells_refused_requests_and_to_what_they_lost(
    coordinator: CoordinatorProcess, client: CoordinatorClient, tmp_path: Path
) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    first_join = JoinGroupRequest(group, 10_000, "consumer", [Protocol("range", b"")], 20_000, group_instance_id="i")
    old = client.join_group(first_join)
    new = client.join_group(first_join)
    wrong = msgspec.structs.replace(first_join, protocols=[Protocol("roundrobin", b"")], group_instance_id=None)
    partition = PartitionToCommit(0, 120)
    commit = OffsetCommitRequest(group, [TopicToCommit("orders", [partition])], old.generation_id, old.member_id, "i")
    client.ask(apis.OFFSET_COMMIT, group, commit).result()
    client.ask(apis.JOIN_GROUP, group, wrong).result()
    client.ask(apis.HEARTBEAT, group, HeartbeatRequest(group, 1, "nobody")).result()

    def told(*options: str) -> dict[str, Any]:
        refused = printed_json(run_for(coordinator, "explain", group, "--json", *options))["refused"]
        return {one["error"]: one for one in refused["refusals"]}

    errors = {"FENCED_INSTANCE_ID", "INCONSISTENT_GROUP_PROTOCOL", "UNKNOWN_MEMBER_ID"}
    wait_until(lambda: told().keys() == errors, "the journal has the member that took the instance id")
    fenced = told("--since", "1h", "--refused")["FENCED_INSTANCE_ID"]
    assert (fenced["member"], fenced["lostTo"]) == (old.member_id, new.member_id)
    assert [one["record"] for one in fenced["evidence"]] == ["StaticMemberReplaced"]
    text = run_for(coordinator, "explain", group).stdout
    assert "Refused: 3 requests, among them a commit" in text
    assert "a join with the protocols [roundrobin]: the others have [range] in common" in text
    without = printed_json(run_for(coordinator, "explain", group, "--json", "--no-refused"))
    assert without["refused"] is None
    page = tmp_path / "story.html"
    assert run_for(coordinator, "explain", group, "--html", str(page)).returncode == 0
    assert "OffsetCommit: FENCED_INSTANCE_ID" in page.read_text()


def test_following_has_no_end_to_choose() -> None:
    ended = run("explain", "billing", "-b", UNREACHABLE, "--live", "--until", "1h")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--live excludes" in ended.stderr


@pytest.mark.parametrize("options", [["--lag"], ["--lag", "--html", "page.html", "--until", "1h"]])
def test_lag_is_that_of_a_page_up_to_now(options: Sequence[str]) -> None:
    ended = run("explain", "billing", "-b", UNREACHABLE, *options)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--lag needs --html" in ended.stderr


def test_a_group_without_entries_is_named(coordinator: CoordinatorProcess) -> None:
    ended = run_for(coordinator, "explain", "nothing")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "group nothing does not exist" in ended.stderr


def test_a_time_that_is_none_is_named_before_the_journal_is_read() -> None:
    ended = run("explain", "billing", "-b", UNREACHABLE, "--since", "yesterday")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--since" in ended.stderr
