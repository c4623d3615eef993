"""A checkpoint that an earlier release has written goes on: same groups, generations, members and offsets.

The classic groups are those of all releases; consumer groups are in the archives since the release that had them. It
also goes on with the job of release 0.1.0, when today's job has written it and ``checkpoint downgrade`` has changed it.
"""

import base64
import json
from collections.abc import Iterator, Mapping
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
from coordinator_logic.groups.conversions.format_4_snapshots import encode_in_format_4
from streaming.embedded.broker import EmbeddedBroker
from streaming.job.group_batch.state_row import StateRow, load_whole
from tests.job.backups.life import run
from tests.recovery.conversation import Body, Conversation, join_request, offsets, sync_request
from tests.recovery.kept.archive import ALL, OPTIONS, WITH_CONSUMER_GROUPS, Unpacked, commit_of, forget_requests_topic
from tests.recovery.kept.groups import (
    CONSUMERS_PRODUCER,
    GROUP_CONFIG,
    PRODUCER,
    REBALANCE_IN_PROGRESS,
    heartbeat,
    partitions_in,
)
from tests.support.coordinator_process import QUICK_OF_0_1, CoordinatorProcess
from tests.support.kafka_io import reading
from tests.support.source_tree import RELEASE_0_1_0, CommitNotThere, code_of, unpack_commit
from tests.support.topics import delete_topics

UNSTABLE_OFFSET_COMMIT = 88
OF_OFFSETS = {"OffsetsCommitted", "TransactionalOffsetsCommitted", "TransactionEnded"}
"""The journal's records that are not of members and generations."""


PREFIX = ("--topic-prefix", str(OPTIONS["topic-prefix"]))

BACK = "back to 0.1.0"
"""In place of an archive: the checkpoint was changed for that release, which continues it."""


class Restored:
    """A job on the kept checkpoint, and the clients that knew its groups."""

    def __init__(self, coordinator: CoordinatorProcess, clients: Conversation, archive: Unpacked) -> None:
        self.coordinator = coordinator
        self.clients = clients
        self.known = archive.known
        self.parked_join: str = self.known["joining"]["parkedJoin"]
        self.requests = {json.loads(value or b"")["correlationId"] for _, _, value in archive.records("requests")}

    def committed(self, group_id: str) -> dict[int, tuple[int, int]]:
        """By partition of ``payments``: the committed offset, and the error code of a fetch of stable offsets."""
        response = self.clients.ask(group_id, "OffsetFetch", 7, {"groupId": group_id, "requireStable": True})
        return {
            each["partitionIndex"]: (each["committedOffset"], each["errorCode"])
            for topic in response["body"]["topics"]
            for each in topic["partitions"]
        }

    def answered_again(self) -> set[str]:
        """Correlation ids of the kept requests that the job has answered."""
        with reading(self.coordinator.bootstrap_servers, self.coordinator.topics.responses) as responses:
            return {(record.key or b"").decode() for record in responses.to_the_end()} & self.requests

    def describe(self, group_id: str) -> Body:
        """The only group of a DescribeGroups response."""
        described = self.clients.ask(group_id, "DescribeGroups", 5, {"groups": [group_id]})
        (group,) = described["body"]["groups"]
        return dict(group)

    def describe_consumers(self, group_id: str) -> Body:
        """The only group of a ConsumerGroupDescribe response, with its members by id."""
        described = self.clients.ask(group_id, "ConsumerGroupDescribe", 1, {"groupIds": [group_id]})
        (group,) = described["body"]["groups"]
        members = {member["memberId"]: member for member in group["members"]}
        return {**group, "members": members}

    def end_transaction(self, group_id: str, producer: Body) -> None:
        """Write the marker of a commit."""
        marker = {key: producer[key] for key in ("producerId", "producerEpoch")}
        committed = {"markers": [marker | {"transactionResult": True, "topics": []}]}
        assert self.clients.ask(group_id, "WriteTxnMarkers", 1, committed)["errorCode"] == 0


def name_of(archive: Any) -> str:
    return archive if archive == BACK else commit_of(archive)


OF_CLASSIC_GROUPS = [
    pytest.param(archive, id=commit_of(archive), marks=pytest.mark.long)
    for archive in ALL
    if archive not in WITH_CONSUMER_GROUPS
]


@pytest.fixture(scope="module", params=[*WITH_CONSUMER_GROUPS, *OF_CLASSIC_GROUPS, BACK], ids=name_of)
def restored(
    broker: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Restored]:
    folder = tmp_path_factory.mktemp("kept")
    goes_back = request.param == BACK
    code = code_of_0_1_0(folder / "code") if goes_back else {}
    archive = Unpacked(WITH_CONSUMER_GROUPS[-1] if goes_back else request.param, folder)
    forget_requests_topic(archive.checkpoint)
    coordinator = CoordinatorProcess(broker.bootstrap_servers, folder, OPTIONS, defaults=QUICK_OF_0_1)
    archive.restore_topics(broker.bootstrap_servers, "requests")
    try:
        with reading(broker.bootstrap_servers, coordinator.topics.responses) as responses:
            clients = Conversation(broker.bootstrap_servers, coordinator.topics, responses)
            coordinator.start()
            if goes_back:
                for group_id in archive.states:
                    clients.ask(group_id, "OffsetFetch", 7, {"groupId": group_id})
                assert coordinator.stop() == 0, coordinator.tail()
                run("downgrade", coordinator.checkpoint, "--to", "0.1.0", "-b", broker.bootstrap_servers, *PREFIX)
                coordinator.environment.update(code)
                coordinator.start()
            yield Restored(coordinator, clients, archive)
    finally:
        coordinator.kill()
        # The next checkpoint has read topics of the same names.
        delete_topics(broker.bootstrap_servers, coordinator.topics.prefix)


def code_of_0_1_0(folder: Path) -> Mapping[str, str]:
    """The variables of a process that runs the code of release 0.1.0."""
    try:
        return code_of(unpack_commit(RELEASE_0_1_0, folder))
    except CommitNotThere as reason:
        pytest.skip(f"no job of 0.1.0: {reason}")


of_consumer_groups = pytest.mark.parametrize("restored", [*WITH_CONSUMER_GROUPS, BACK], ids=name_of, indirect=True)


@pytest.mark.parametrize("archive", WITH_CONSUMER_GROUPS, ids=commit_of)
def test_a_group_for_0_1_0_has_the_bytes_that_an_earlier_job_has_written(archive: Path, tmp_path: Path) -> None:
    states = Unpacked(archive, tmp_path).states.values()
    assert [encode_in_format_4(load_whole(state)) for state in states] == [
        StateRow.unpacked(state).snapshot for state in states
    ]


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
    restored.end_transaction("transactional", PRODUCER)
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


@of_consumer_groups
def test_a_consumer_group_goes_on_to_reconcile(restored: Restored) -> None:
    known, clients = restored.known["reconciling"], restored.clients
    described = restored.describe_consumers("reconciling")
    assert described["groupState"] == "Reconciling"
    assert set(described["members"]) == {"first", "second"}
    assert described["members"]["second"]["instanceId"] == "worker-2"

    first = heartbeat(clients, "reconciling", "first", known["epoch"], known["kept"])
    assert first["memberEpoch"] == known["second"]
    second = heartbeat(clients, "reconciling", "second", known["second"], [])
    assert sorted([*known["kept"], *(partitions_in(second) or [])]) == [0, 1]
    heartbeat(clients, "reconciling", "second", second["memberEpoch"], partitions_in(second))
    assert restored.describe_consumers("reconciling")["groupState"] == "Stable"


@of_consumer_groups
def test_offsets_and_the_open_transaction_of_a_consumer_group_stay(restored: Restored) -> None:
    assert restored.committed("reconciling") == {0: (-1, UNSTABLE_OFFSET_COMMIT)}
    restored.end_transaction("reconciling", CONSUMERS_PRODUCER)
    assert restored.committed("reconciling") == {0: (13, 0), 1: (12, 0)}
    epoch = restored.describe_consumers("reconciling")["members"]["first"]["memberEpoch"]
    commit = {"groupId": "reconciling", "generationIdOrMemberEpoch": epoch, "memberId": "first", "topics": offsets(14)}
    assert restored.clients.ask("reconciling", "OffsetCommit", 9, commit)["errorCode"] == 0
    assert restored.committed("reconciling") == {0: (14, 0), 1: (12, 0)}


@of_consumer_groups
def test_an_upgraded_group_keeps_members_of_both_protocols_until_the_last_consumer_leaves(restored: Restored) -> None:
    known, clients = restored.known["upgraded"], restored.clients
    offsets_before = {0: (31, 0), 1: (32, 0)}
    assert restored.committed("upgraded") == offsets_before
    assert clients.heartbeat("upgraded", known["generationId"], known["classic"]) == REBALANCE_IN_PROGRESS
    members = restored.describe_consumers("upgraded")["members"]
    assert {member_id: member["memberType"] for member_id, member in members.items()} == {
        known["classic"]: 0,
        "consumer": 1,
    }
    assert heartbeat(clients, "upgraded", "consumer", known["epoch"])["memberEpoch"] == known["epoch"]
    heartbeat(clients, "upgraded", "consumer", -1)
    downgraded = restored.describe("upgraded")
    assert [member["memberId"] for member in downgraded["members"]] == [known["classic"]]
    assert downgraded["groupState"] == "PreparingRebalance"
    assert restored.committed("upgraded") == offsets_before


@of_consumer_groups
def test_a_group_keeps_its_settings_and_what_its_pattern_matches(restored: Restored) -> None:
    known, clients = restored.known["configured"], restored.clients
    read = clients.ask("configured", "SetGroupConfig", 0, {"groupId": "configured", "configs": {}})
    assert read["body"]["configs"] == GROUP_CONFIG
    answer = heartbeat(clients, "configured", "matching", known["epoch"], [0, 1])
    assert (answer["memberEpoch"], answer["assignment"]) == (known["epoch"], None)
    described = restored.describe_consumers("configured")
    assert described["groupState"] == "Stable"
    assert described["members"]["matching"]["subscribedTopicRegex"] == "pay.*"


@of_consumer_groups
def test_a_deleted_group_stays_deleted(restored: Restored) -> None:
    assert restored.describe("deleted")["groupState"] == "Dead"


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _rebalances(restored: Restored) -> list[Any]:
    """The journal's records of membership and generations since the restart."""
    with reading(restored.coordinator.bootstrap_servers, restored.coordinator.topics.journal) as journal:
        records = [record.value["record"] for record in journal.to_the_end()]
    return [record for record in records if record["type"] not in OF_OFFSETS]
