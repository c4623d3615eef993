"""``group-coordinator ui`` for a real coordinator."""

import http.client
from collections.abc import Iterator
from urllib.parse import urlencode, urlsplit

import msgspec
import pytest

from coordinator_logic.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeavingMember,
    OffsetCommitRequest,
    PartitionToCommit,
    Protocol,
    TopicToCommit,
)
from streaming.client import CoordinatorClient, MemberIdRequired
from tests.cli.test_commands import COMMAND, UNREACHABLE, run
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.processes import Process
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until


class Browsed:
    """The pages of a server, by its address."""

    def __init__(self, address: str) -> None:
        self._host = urlsplit(address).netloc

    def get(self, path: str, **values: str) -> tuple[int, str]:
        """The status and the text of a page."""
        connection = http.client.HTTPConnection(self._host, timeout=LIMIT_SECONDS)
        connection.request("GET", f"{path}?{urlencode(values)}")
        response = connection.getresponse()
        return response.status, response.read().decode()


@pytest.fixture(scope="module")
def served(coordinator: CoordinatorProcess) -> Iterator[Browsed]:
    servers, prefix = coordinator.bootstrap_servers, coordinator.topics.prefix
    process = Process("ui", [str(COMMAND), "ui", "-b", servers, "--topic-prefix", prefix])
    process.start()
    try:
        line = process.await_line("its address", lambda one: one.startswith("ready: "))
        yield Browsed(line.removeprefix("ready: "))
    finally:
        process.kill()


def test_a_group_is_listed_described_found_and_told(coordinator: CoordinatorProcess, served: Browsed) -> None:
    servers, prefix = coordinator.bootstrap_servers, coordinator.topics.prefix
    group_id, topic, client_id = unique("<billing>"), unique("orders"), unique("reader")
    create_topic(servers, topic, 1)
    first_join = JoinGroupRequest(group_id, 60_000, "consumer", [Protocol("range", b"")], 60_000)
    with CoordinatorClient(servers, topic_prefix=prefix, client_id=client_id) as client:
        committed = OffsetCommitRequest(group_id, [TopicToCommit(topic, [PartitionToCommit(0, 0)])])
        assert client.offset_commit(committed).topics[0].partitions[0].error_code == 0
        with pytest.raises(MemberIdRequired) as required:
            client.join_group(first_join)
        assert isinstance(required.value.body, JoinGroupResponse)
        member_id = client.join_group(
            msgspec.structs.replace(first_join, member_id=required.value.body.member_id)
        ).member_id
        link = urlencode({"id": group_id})
        wait_until(lambda: link in served.get("/", filter=group_id)[1], "the list has the group")

        def is_told() -> bool:
            status, page = served.get("/group", id=group_id)
            return status == 200 and member_id in page and topic in page and "member joined" in page

        wait_until(is_told, "the group's page has its member, its offset and its rebalance")
        wait_until(lambda: link in served.get("/search", q=client_id)[1], "the search finds the client's group")
        status, page = served.get("/timeline", id=group_id, since="1h", lag="yes")
        assert status == 200
        assert client_id in page
        assert f'"partitions":[["{topic}",0,0,0]]' in page
        client.leave_group(LeaveGroupRequest(group_id, members=[LeavingMember(member_id)]))
    status, page = served.get("/group", id=unique("nothing"))
    assert (status, "does not exist" in page) == (404, True)


def test_brokers_that_do_not_answer_end_the_command() -> None:
    ended = run("ui", "-b", UNREACHABLE, "--timeout", "1")
    assert (ended.returncode, ended.stdout) == (1, "")
