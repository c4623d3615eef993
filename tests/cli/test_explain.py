"""``group-coordinator explain``."""

import uuid

import msgspec
import pytest

from coordinator_logic.errors import Error
from coordinator_logic.messages import JoinGroupRequest, JoinGroupResponse, LeaveGroupRequest, LeavingMember, Protocol
from streaming.client import CoordinatorClient
from streaming.client.errors import MemberIdRequired
from tests.cli.test_commands import UNREACHABLE, printed_json, run, run_for
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.waiting import wait_until

REASON = "the consumer is being closed"


def test_explain_names_the_cause_of_each_rebalance(coordinator: CoordinatorProcess) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    first_join = JoinGroupRequest(group, 10_000, "consumer", [Protocol("range", b"")], 20_000)
    prefix = coordinator.topics.prefix
    with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=prefix, client_id="reader") as client:
        with pytest.raises(MemberIdRequired) as required:
            client.join_group(first_join)
        assert isinstance(required.value.body, JoinGroupResponse)
        joined = client.join_group(msgspec.structs.replace(first_join, member_id=required.value.body.member_id))
        left = client.leave_group(LeaveGroupRequest(group, members=[LeavingMember(joined.member_id, reason=REASON)]))
        assert left.error_code == Error.NONE

    def has_ended() -> bool:
        # The journal and the answer are written by one batch, in any order.
        told = run_for(coordinator, "explain", group, "--json")
        return told.returncode == 0 and printed_json(told)["state"] == "Empty"

    wait_until(has_ended, "the journal says that the member has left")
    story = printed_json(run_for(coordinator, "explain", group, "--json"))
    first, last = story["rebalances"]
    assert (first["causes"][0]["trigger"], first["causes"][0]["isCertain"]) == ("member joined", True)
    assert last["causes"][0]["trigger"] == "member left"
    assert REASON in last["causes"][0]["text"]
    assert last["causes"][0]["evidence"]
    told = run_for(coordinator, "explain", group, "--since", "1h")
    assert told.returncode == 0
    assert "member joined -> generation 1" in told.stdout


def test_a_group_without_entries_is_named(coordinator: CoordinatorProcess) -> None:
    ended = run_for(coordinator, "explain", "nothing")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "no entries of group nothing" in ended.stderr


def test_a_time_that_is_none_is_named_before_the_journal_is_read() -> None:
    ended = run("explain", "billing", "-b", UNREACHABLE, "--since", "yesterday")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "--since" in ended.stderr
