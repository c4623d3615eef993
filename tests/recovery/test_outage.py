"""The brokers are away for longer than the members' sessions: nobody is expelled for it."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.recovery.conversation import Conversation, join_request, sync_request
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import reading
from tests.support.waiting import wait_until

GROUP = "group"
SESSION_SECONDS = 10.0
MEMBER_ID_REQUIRED = 79

pytestmark = pytest.mark.jvm


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(data_dir=tmp_path / "kafka") as broker:
        yield broker


def test_an_outage_of_the_brokers_costs_no_membership(own_broker: EmbeddedBroker, tmp_path: Path) -> None:
    job = CoordinatorProcess(own_broker.bootstrap_servers, tmp_path / "job")
    job.start()
    try:
        with reading(own_broker.bootstrap_servers, job.topics.responses) as responses:
            clients = Conversation(own_broker.bootstrap_servers, job.topics, responses)
            member_id = joined(clients)
            assert clients.heartbeat(GROUP, 1, member_id) == 0
            began = time.monotonic()
            own_broker.stop()
            job.await_line("the absence", lambda line: "the brokers do not answer" in line)
            wait_until(lambda: time.monotonic() - began > SESSION_SECONDS, "the session would have ended")
            own_broker.restart()
            job.await_line("the outage's end", lambda line: "because the brokers were away for" in line)
            # As a client that reconnects late: before that, the job could have expelled the member.
            job.await_line("that it is ready again", lambda line: "ready: append" in line)
            assert clients.heartbeat(GROUP, 1, member_id) == 0
    finally:
        job.kill()


def joined(clients: Conversation) -> str:
    """Let the group's only member join; returns its member id."""
    wanted = join_request(GROUP) | {"sessionTimeoutMs": int(SESSION_SECONDS * 1000)}
    refused = clients.ask(GROUP, "JoinGroup", 5, wanted)
    assert refused["errorCode"] == MEMBER_ID_REQUIRED
    member_id = str(refused["body"]["memberId"])
    assert clients.ask(GROUP, "JoinGroup", 5, wanted | {"memberId": member_id})["errorCode"] == 0
    sync = sync_request(GROUP, 1, member_id, {member_id: b"all"})
    assert clients.ask(GROUP, "SyncGroup", 5, sync)["errorCode"] == 0
    return member_id
