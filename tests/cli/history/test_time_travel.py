"""``groups list`` and ``groups describe`` with ``--at``, from the journal of a coordinator."""

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from typer.testing import CliRunner

from coordinator_logic.apis import CONSUMER_GROUP_HEARTBEAT
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, TopicDescription
from streaming.cli.app import app
from streaming.client import CoordinatorClient
from tests.cli.test_commands import printed_json, run_for
from tests.support.coordinator_process import CoordinatorProcess, commit_offsets
from tests.support.waiting import wait_until


@pytest.mark.parametrize("command", [["list"], ["describe", "billing"]])
def test_a_time_that_cannot_be_read_is_refused_with_the_formats(command: list[str]) -> None:
    refused = CliRunner().invoke(app, ["groups", *command, "-b", "127.0.0.1:1", "--at", "yesterday"])
    assert refused.exit_code == 2
    assert "--at: 'yesterday' is not a time" in refused.stderr


def test_a_group_that_was_deleted_is_there_at_an_earlier_time(coordinator: CoordinatorProcess) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"

    def listed(*arguments: str) -> list[Any]:
        found = printed_json(run_for(coordinator, "groups", "list", "--json", *arguments))
        return [each for each in found if each["groupId"] == group]

    before = datetime.now(UTC).isoformat()
    commit_offsets(coordinator, group, 42)
    # The journal and the answer are written by one batch, in any order.
    wait_until(lambda: bool(listed("--at", "0s")), "the group is in the journal")
    between = datetime.now(UTC).isoformat()
    assert run_for(coordinator, "groups", "delete", group).returncode == 0
    wait_until(lambda: not listed("--at", "0s"), "the deletion is in the journal")

    assert listed("--at", before) == []
    assert listed("--at", between) == [
        {"groupId": group, "protocolType": "", "groupState": "Empty", "groupType": "classic"}
    ]
    (described,) = printed_json(run_for(coordinator, "groups", "describe", group, "--json", "--at", between))
    assert (described["groupState"], described["members"]) == ("Empty", [])
    gone = run_for(coordinator, "groups", "describe", group, "--at", before)
    assert (gone.returncode, gone.stderr.endswith(f"error: group {group} does not exist\n")) == (1, True), gone.stderr


def test_a_consumer_group_is_described_now_and_at_an_earlier_time(coordinator: CoordinatorProcess) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    heartbeat = ConsumerGroupHeartbeatRequest(
        group,
        "a",
        0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
        topics=[TopicDescription("t", f"{'t':_<22}", 2)],
    )
    with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix) as client:
        client.ask(CONSUMER_GROUP_HEARTBEAT, group, heartbeat).result().unwrap()
    (now,) = printed_json(run_for(coordinator, "groups", "describe", group, "--json"))
    assert (now["groupState"], now["groupEpoch"], now["members"][0]["memberEpoch"]) == ("Stable", 2, 2)

    def then() -> list[Any]:
        described = run_for(coordinator, "groups", "describe", group, "--json", "--at", "0s")
        return [] if described.returncode else list(printed_json(described))

    # The journal and the answer are written by one batch, in any order.
    wait_until(lambda: bool(then()), "the group is in the journal")
    assert [row["note"] for row in now.pop("partitions")] == ["no such topic, or it is hidden"] * 2
    assert then() == [{**now, "assignorName": ""}]
    printed = run_for(coordinator, "groups", "describe", group).stdout
    assert f"{group}: Stable (consumer group, epoch 2, uniform), 1 member" in printed
    assert "t: 0, 1" in printed
