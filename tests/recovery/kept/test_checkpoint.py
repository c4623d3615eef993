"""A checkpoint that an earlier release has written goes on: same groups, generations, members and offsets.

``archives`` has one for each release, named for its commit; ``keep.py`` makes them. Each has the
checkpoint itself, and in ``contents.json`` the log of requests and what the groups' clients know.
"""

import base64
import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator_logic.embedded_protocols import (
    Assignment,
    Subscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.topics.creation import ensure_topics
from streaming.job.topics.layout import TopicLayout
from tests.recovery.conversation import Body, Conversation, join_request, sync_request
from tests.recovery.kept.keep import (
    KEPT,
    OPTIONS,
    PRODUCER,
    REBALANCE_IN_PROGRESS,
    REQUEST_PARTITIONS,
    RESPONSE_PARTITIONS,
)
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import append, reading
from tests.support.topics import delete_topics

UNSTABLE_OFFSET_COMMIT = 88
OF_OFFSETS = {"OffsetsCommitted", "TransactionalOffsetsCommitted", "TransactionEnded"}
"""The journal's records that are not of members and generations."""


class Restored:
    """Today's job on the kept checkpoint, and the clients that knew its groups."""

    def __init__(self, coordinator: CoordinatorProcess, clients: Conversation, contents: Body) -> None:
        self.coordinator = coordinator
        self.clients = clients
        self.known: dict[str, Any] = contents["known"]
        self.parked_join: str = self.known["joining"]["parkedJoin"]
        self.requests = {json.loads(base64.b64decode(value))["correlationId"] for _, _, value in contents["requests"]}

    def committed(self, group_id: str) -> dict[int, tuple[int, int]]:
        """By partition of ``payments``: the committed offset, and the error code of a fetch of stable offsets."""
        response = self.clients.ask(group_id, "OffsetFetch", 7, {"groupId": group_id, "requireStable": True})
        return {
            each["partitionIndex"]: (each["committedOffset"], each["errorCode"])
            for topic in response["body"]["topics"]
            for each in topic["partitions"]
        }

    def answered_again(self) -> set[str]:
        """Correlation ids of the kept requests that today's job has answered."""
        with reading(self.coordinator.bootstrap_servers, self.coordinator.topics.responses) as responses:
            return {(record.key or b"").decode() for record in responses.to_the_end()} & self.requests

    def describe(self, group_id: str) -> Body:
        """The only group of a DescribeGroups response."""
        described = self.clients.ask(group_id, "DescribeGroups", 5, {"groups": [group_id]})
        (group,) = described["body"]["groups"]
        return dict(group)


@pytest.fixture(scope="module", params=sorted(KEPT.iterdir()), ids=lambda archive: archive.name.partition(".")[0])
def restored(
    broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Restored]:
    archive: Path = request.param
    coordinator = CoordinatorProcess(broker.bootstrap_servers, tmp_path_factory.mktemp("kept"), OPTIONS)
    with tarfile.open(archive) as members:
        members.extractall(coordinator.checkpoint, filter="data")
    # The requests are restored to another topic than the one that the checkpoint has read.
    shutil.rmtree(coordinator.checkpoint / "requests-topic", ignore_errors=True)
    contents = json.loads((coordinator.checkpoint / "contents.json").read_text())
    _restore_requests(coordinator, contents["requests"])
    try:
        coordinator.start()
        with reading(broker.bootstrap_servers, coordinator.topics.responses) as responses:
            clients = Conversation(broker.bootstrap_servers, coordinator.topics, responses)
            yield Restored(coordinator, clients, contents)
    finally:
        coordinator.kill()
        # The next checkpoint has read topics of the same names.
        delete_topics(broker.bootstrap_servers, coordinator.topics.prefix)


def _restore_requests(coordinator: CoordinatorProcess, requests: list[tuple[int, str, str]]) -> None:
    """Create the topics and append the requests, so that each has its former partition and offset."""
    layout = TopicLayout(request_partitions=REQUEST_PARTITIONS, response_partitions=RESPONSE_PARTITIONS)
    ensure_topics({"bootstrap.servers": coordinator.bootstrap_servers}, coordinator.topics, layout)
    for partition in sorted({partition for partition, _, _ in requests}):
        records = [
            (base64.b64decode(key), base64.b64decode(value)) for place, key, value in requests if place == partition
        ]
        append(coordinator.bootstrap_servers, coordinator.topics.requests, *records, partition=partition)


def test_members_of_a_stable_group_notice_nothing(restored: Restored) -> None:
    known, clients = restored.known["stable"], restored.clients
    for member_id in (known["static"], known["dynamic"]):
        assert clients.heartbeat("stable", known["generationId"], member_id) == 0
    described = restored.describe("stable")
    assert described["groupState"] == "Stable"
    members = {member["memberId"]: member for member in described["members"]}
    assert set(members) == {known["static"], known["dynamic"]}
    assert members[known["static"]]["groupInstanceId"] == "worker-1"
    assignments = {member_id: base64.b64decode(member["memberAssignment"]) for member_id, member in members.items()}
    assert assignments == {known["static"]: b"even partitions", known["dynamic"]: b"odd partitions"}
    assert restored.committed("stable") == {0: (41, 0), 1: (42, 0)}


def test_offsets_without_members_stay(restored: Restored) -> None:
    assert restored.describe("simple")["groupState"] == "Empty"
    assert restored.committed("simple") == {0: (7, 0), 1: (8, 0)}


def test_an_open_transaction_stays_open_until_its_marker(restored: Restored) -> None:
    assert restored.committed("transactional") == {0: (-1, UNSTABLE_OFFSET_COMMIT)}
    marker = {key: PRODUCER[key] for key in ("producerId", "producerEpoch")} | {"transactionResult": True}
    answer = restored.clients.ask("transactional", "WriteTxnMarkers", 1, {"markers": [marker | {"topics": []}]})
    assert answer["errorCode"] == 0
    assert restored.committed("transactional") == {0: (21, 0)}


def test_a_parked_join_is_answered_when_the_other_member_rejoins(restored: Restored) -> None:
    known, clients = restored.known["joining"], restored.clients
    assert restored.describe("joining")["groupState"] == "PreparingRebalance"
    assert _rebalances(restored) == []
    assert restored.answered_again() == set()
    first_id = known["first"]
    assert clients.heartbeat("joining", known["generationId"], first_id, partition=1) == REBALANCE_IN_PROGRESS
    joined = clients.ask("joining", "JoinGroup", 9, join_request("joining", first_id), partition=1)["body"]
    parked = clients.response(restored.parked_join)["body"]
    assert joined["generationId"] == parked["generationId"] == known["generationId"] + 1
    assert parked["memberId"] == known["second"]
    assert {member["memberId"] for member in joined["members"]} == {first_id, known["second"]}
    assert restored.answered_again() == {restored.parked_join}


def test_a_group_of_it_is_upgraded_by_a_newer_client_and_downgraded_again(restored: Restored) -> None:
    clients, offsets_before = restored.clients, restored.committed("simple")
    subscription = {"name": "range", "metadata": _text(encode_subscription(Subscription(["payments"])))}
    join = join_request("simple") | {"protocols": [subscription]}
    member_id = clients.ask("simple", "JoinGroup", 9, join)["body"]["memberId"]
    joined = clients.ask("simple", "JoinGroup", 9, join | {"memberId": member_id})["body"]
    everything = encode_assignment(Assignment([TopicPartition("payments", 0), TopicPartition("payments", 1)]))
    sync = sync_request("simple", joined["generationId"], member_id, {member_id: everything})
    assert clients.ask("simple", "SyncGroup", 5, sync)["errorCode"] == 0

    newer = {"groupId": "simple", "memberId": "newer", "memberEpoch": 0}
    subscribed = {"rebalanceTimeoutMs": 300_000, "subscribedTopicNames": ["payments"], "topicPartitions": []}
    topics = [{"name": "payments", "topicId": _text(b"payments-id-0001").rstrip("="), "partitions": 2}]
    entered = clients.ask("simple", "ConsumerGroupHeartbeat", 1, newer | subscribed | {"topics": topics})
    assert entered["errorCode"] == 0, entered
    (upgraded,) = clients.ask("simple", "ConsumerGroupDescribe", 1, {"groupIds": ["simple"]})["body"]["groups"]
    assert {member["memberId"] for member in upgraded["members"]} == {member_id, "newer"}
    assert restored.committed("simple") == offsets_before

    left = clients.ask("simple", "ConsumerGroupHeartbeat", 1, newer | {"memberEpoch": -1})
    assert left["errorCode"] == 0, left
    downgraded = restored.describe("simple")
    assert [member["memberId"] for member in downgraded["members"]] == [member_id]
    assert (downgraded["protocolType"], downgraded["groupState"]) == ("consumer", "PreparingRebalance")
    assert restored.committed("simple") == offsets_before


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _rebalances(restored: Restored) -> list[Any]:
    """The journal's records of membership and generations since the restart."""
    with reading(restored.coordinator.bootstrap_servers, restored.coordinator.topics.journal) as journal:
        records = [record.value["record"] for record in journal.to_the_end()]
    return [record for record in records if record["type"] not in OF_OFFSETS]
