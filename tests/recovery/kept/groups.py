"""The groups of a kept checkpoint: how an archive's job comes to their states, and what their clients know."""

import base64

from coordinator_logic.embedded_protocols import (
    Assignment,
    Subscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from tests.recovery.conversation import Body, Conversation, join_request, offsets, sync_request

MEMBER_ID_REQUIRED = 79
REBALANCE_IN_PROGRESS = 27

PRODUCER = {"transactionalId": "payments-writer", "producerId": 4000, "producerEpoch": 0}
CONSUMERS_PRODUCER = {"transactionalId": "refunds-writer", "producerId": 4001, "producerEpoch": 0}

TOPIC_ID = base64.urlsafe_b64encode(b"payments-id-0001").decode().rstrip("=")
TOPICS = [{"name": "payments", "topicId": TOPIC_ID, "partitions": 2}]
GROUP_CONFIG = {"consumer.session.timeout.ms": "55000"}

BEFORE_BACKUP, AFTER_BACKUP = 5, 9
"""The offsets of the group ``late``."""


def converse(clients: Conversation) -> Body:
    """Bring all groups into their states of the backup; returns what their clients know afterwards."""
    known = {
        "stable": _stable_group(clients),
        "joining": _joining_group(clients),
        "reconciling": _reconciling_group(clients),
        "upgraded": _upgraded_group(clients),
        "configured": _configured_group(clients),
    }
    commit(clients, "simple", 7, 8)
    commit(clients, "transactional", 20)
    pending = {**PRODUCER, "groupId": "transactional", "topics": offsets(21)}
    _accepted(clients.ask("transactional", "TxnOffsetCommit", 3, pending))
    commit(clients, "deleted", 1)
    _accepted(clients.ask("deleted", "DeleteGroups", 2, {"groupsNames": ["deleted"]}))
    commit(clients, "late", BEFORE_BACKUP)
    return known


def after_backup(clients: Conversation) -> None:
    """What the checkpoint has and the backup has not."""
    commit(clients, "late", AFTER_BACKUP)


def commit(clients: Conversation, group_id: str, *committed: int) -> None:
    """Commit these offsets of ``payments`` without a member."""
    body = {"groupId": group_id, "generationIdOrMemberEpoch": -1, "memberId": "", "topics": offsets(*committed)}
    _accepted(clients.ask(group_id, "OffsetCommit", 5, body))


def heartbeat(
    clients: Conversation, group_id: str, member_id: str, epoch: int, owned: list[int] | None = None, **fields: object
) -> Body:
    """The answer to a heartbeat of a consumer group's member, which owns these partitions; None: as before."""
    body: Body = {"groupId": group_id, "memberId": member_id, "memberEpoch": epoch, "topics": TOPICS, **fields}
    if owned is not None:
        body["topicPartitions"] = [{"topicId": TOPIC_ID, "partitions": owned}] if owned else []
    answer: Body = _accepted(clients.ask(group_id, "ConsumerGroupHeartbeat", 1, body))["body"]
    return answer


def join_consumers(clients: Conversation, group_id: str, member_id: str, **fields: object) -> Body:
    """The answer to the first heartbeat of a member that subscribes to ``payments``."""
    subscribed = {"rebalanceTimeoutMs": 300_000, "subscribedTopicNames": ["payments"]} | fields
    return heartbeat(clients, group_id, member_id, 0, [], **subscribed)


def partitions_in(answer: Body) -> list[int] | None:
    """The assigned partitions of ``payments``; None if the answer has no assignment."""
    if answer["assignment"] is None:
        return None
    return [number for topic in answer["assignment"]["topicPartitions"] for number in topic["partitions"]]


def _accepted(answer: Body) -> Body:
    assert answer["errorCode"] == 0, answer
    return answer


def _stable_group(clients: Conversation) -> Body:
    """A static and a dynamic member, both assigned, and a commit of theirs."""
    static = clients.ask("stable", "JoinGroup", 9, join_request("stable", instance_id="worker-1"))["body"]
    dynamic_id = clients.ask("stable", "JoinGroup", 9, join_request("stable"))["body"]["memberId"]
    static_id = static["memberId"]
    parked = clients.send("stable", "JoinGroup", 9, join_request("stable", dynamic_id))
    rejoined = clients.ask("stable", "JoinGroup", 9, join_request("stable", static_id, "worker-1"))["body"]
    generation_id = rejoined["generationId"]
    assert clients.response(parked)["body"]["generationId"] == generation_id
    assignments = {static_id: b"even partitions", dynamic_id: b"odd partitions"}
    for member_id, sent in ((static_id, assignments), (dynamic_id, {})):
        synced = clients.ask("stable", "SyncGroup", 5, sync_request("stable", generation_id, member_id, sent))
        assert base64.b64decode(synced["body"]["assignment"]) == assignments[member_id]
    body = {
        "groupId": "stable",
        "generationIdOrMemberEpoch": generation_id,
        "memberId": dynamic_id,
        "topics": offsets(41, 42),
    }
    _accepted(clients.ask("stable", "OffsetCommit", 7, body))
    return {"generationId": generation_id, "static": static_id, "dynamic": dynamic_id}


def _joining_group(clients: Conversation) -> Body:
    """A member in a generation of its own, and the parked join of a second one."""
    first_id = clients.ask("joining", "JoinGroup", 9, join_request("joining"), partition=1)["body"]["memberId"]
    joined = clients.ask("joining", "JoinGroup", 9, join_request("joining", first_id), partition=1)["body"]
    generation_id = joined["generationId"]
    sync = sync_request("joining", generation_id, first_id, {first_id: b"all partitions"})
    assert clients.ask("joining", "SyncGroup", 5, sync, partition=1)["errorCode"] == 0
    required = clients.ask("joining", "JoinGroup", 9, join_request("joining"), partition=1)
    assert required["errorCode"] == MEMBER_ID_REQUIRED
    second_id = required["body"]["memberId"]
    parked = clients.send("joining", "JoinGroup", 9, join_request("joining", second_id), partition=1)
    assert clients.heartbeat("joining", generation_id, first_id, partition=1) == REBALANCE_IN_PROGRESS
    return {"generationId": generation_id, "first": first_id, "second": second_id, "parkedJoin": parked}


def _reconciling_group(clients: Conversation) -> Body:
    """A consumer group whose first member has yet to revoke a partition, which the static second one waits for."""
    joined = join_consumers(clients, "reconciling", "first")
    assert partitions_in(joined) == [0, 1]
    epoch = heartbeat(clients, "reconciling", "first", joined["memberEpoch"], [0, 1])["memberEpoch"]
    body = {"groupId": "reconciling", "generationIdOrMemberEpoch": epoch, "memberId": "first", "topics": offsets(11)}
    _accepted(clients.ask("reconciling", "OffsetCommit", 9, body))
    pending = {**CONSUMERS_PRODUCER, "groupId": "reconciling", "memberId": "first", "generationId": epoch}
    _accepted(clients.ask("reconciling", "TxnOffsetCommit", 4, pending | {"topics": offsets(13, 12)}))
    second = join_consumers(clients, "reconciling", "second", instanceId="worker-2")
    assert partitions_in(second) == []
    kept = partitions_in(heartbeat(clients, "reconciling", "first", epoch, [0, 1]))
    assert kept is not None
    assert len(kept) == 1
    return {"epoch": epoch, "kept": kept, "second": second["memberEpoch"]}


def _upgraded_group(clients: Conversation) -> Body:
    """A classic member in a group that a member of the consumer group protocol has made a consumer group."""
    subscription = {"name": "range", "metadata": _text(encode_subscription(Subscription(["payments"])))}
    join = join_request("upgraded") | {"protocols": [subscription]}
    member_id = clients.ask("upgraded", "JoinGroup", 9, join)["body"]["memberId"]
    generation_id = clients.ask("upgraded", "JoinGroup", 9, join | {"memberId": member_id})["body"]["generationId"]
    everything = encode_assignment(Assignment([TopicPartition("payments", 0), TopicPartition("payments", 1)]))
    sync = sync_request("upgraded", generation_id, member_id, {member_id: everything})
    _accepted(clients.ask("upgraded", "SyncGroup", 5, sync))
    body = {
        "groupId": "upgraded",
        "generationIdOrMemberEpoch": generation_id,
        "memberId": member_id,
        "topics": offsets(31, 32),
    }
    _accepted(clients.ask("upgraded", "OffsetCommit", 7, body))
    entered = join_consumers(clients, "upgraded", "consumer")
    return {"generationId": generation_id, "classic": member_id, "epoch": entered["memberEpoch"]}


def _configured_group(clients: Conversation) -> Body:
    """A consumer group with a setting of its own, whose member subscribes to a pattern."""
    configure = {"groupId": "configured", "configs": GROUP_CONFIG}
    _accepted(clients.ask("configured", "SetGroupConfig", 0, configure))
    pattern = {"subscribedTopicNames": None, "subscribedTopicRegex": "pay.*"}
    joined = join_consumers(clients, "configured", "matching", **pattern)
    # The pattern is resolved after the heartbeat that brings it.
    assigned = heartbeat(clients, "configured", "matching", joined["memberEpoch"], [])
    assert partitions_in(assigned) == [0, 1]
    return {"epoch": assigned["memberEpoch"]}


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()
