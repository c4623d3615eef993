"""Steps of hand-written scripts. Default timeouts are long, so that nothing expires unexpectedly."""

from typing import Any

from tests.oracle.reference_broker import TOPICS
from tests.oracle.scripts.script import (
    GROUP,
    Json,
    Send,
    Wait,
    assignments,
    generation,
    member,
    producer,
    protocol,
    subscription,
    transaction,
)

LONG_MS = 50_000
INITIAL_DELAY_OVER = Wait(1_000)
"""Longer than the initial rebalance delay and one extension of it."""

Step = Send | Wait


def join(
    actor: int,
    *,
    member_id: Json = None,
    instance: str | None = None,
    version: int = 9,
    names: tuple[str, ...] = ("range",),
    topics: tuple[str, ...] = TOPICS[:1],
    metadata: Json = None,
    protocol_type: str = "consumer",
    session_ms: int = LONG_MS,
    rebalance_ms: int = LONG_MS,
    group_id: Json = GROUP,
) -> Send:
    """JoinGroup; by default with the latest member id of the actor."""
    data = subscription(*topics) if metadata is None else metadata
    body = {
        "groupId": group_id,
        "sessionTimeoutMs": session_ms,
        "rebalanceTimeoutMs": rebalance_ms,
        "memberId": member(actor) if member_id is None else member_id,
        "groupInstanceId": instance,
        "protocolType": protocol_type,
        "protocols": [{"name": name, "metadata": data} for name in names],
    }
    return Send(actor, "JoinGroup", version, body)


def join_new(actor: int, **request: Any) -> list[Step]:
    """The two JoinGroup requests of a new dynamic member (KIP-394)."""
    return [join(actor, **request), join(actor, **request)]


def sync(actor: int, *, version: int = 5, instance: str | None = None, **body: Json) -> Send:
    """SyncGroup; the leader sends assignments."""
    return Send(
        actor,
        "SyncGroup",
        version,
        {
            "groupId": GROUP,
            "generationId": generation(actor),
            "memberId": member(actor),
            "groupInstanceId": instance,
            "protocolType": "consumer",
            "protocolName": protocol(actor),
            "assignments": assignments(actor),
            **body,
        },
    )


def heartbeat(actor: int, *, version: int = 4, instance: str | None = None, **body: Json) -> Send:
    """Heartbeat."""
    return Send(
        actor,
        "Heartbeat",
        version,
        {
            "groupId": GROUP,
            "generationId": generation(actor),
            "memberId": member(actor),
            "groupInstanceId": instance,
            **body,
        },
    )


def leave(actor: int, *entries: dict[str, Json], version: int = 5) -> Send:
    """LeaveGroup; by default the actor leaves."""
    if version < 3:
        return Send(actor, "LeaveGroup", version, {"groupId": GROUP, "memberId": member(actor)})
    leaving = list(entries) or [{"memberId": member(actor), "groupInstanceId": None}]
    return Send(actor, "LeaveGroup", version, {"groupId": GROUP, "members": leaving})


def offsets(*partitions: int, topic: str = TOPICS[0], metadata: str | None = "note", offset: int = 7) -> list[Json]:
    """Positions to commit."""
    entries = [{"partitionIndex": p, "committedOffset": offset, "committedMetadata": metadata} for p in partitions]
    return [{"name": topic, "partitions": entries}]


def commit(actor: int, *, version: int = 9, **body: Json) -> Send:
    """OffsetCommit as a member."""
    return Send(
        actor,
        "OffsetCommit",
        version,
        {
            "groupId": GROUP,
            "generationIdOrMemberEpoch": generation(actor),
            "memberId": member(actor),
            "topics": offsets(0),
            **body,
        },
    )


ANONYMOUS: dict[str, Json] = {"generationIdOrMemberEpoch": -1, "memberId": ""}


def commit_in_transaction(actor: int, *, version: int = 4, number: int = 0, **body: Json) -> Send:
    """TxnOffsetCommit; by default without a member."""
    return Send(
        actor,
        "TxnOffsetCommit",
        version,
        {
            "transactionalId": transaction(number),
            "groupId": GROUP,
            "producerId": producer(number),
            "producerEpoch": 0,
            "topics": offsets(0, offset=70),
            **body,
        },
    )


AS_MEMBER_1: dict[str, Json] = {"generationId": generation(1), "memberId": member(1)}


def end_transaction(actor: int, *, commits: bool = True, number: int = 0, epoch: int = 0) -> Send:
    """WriteTxnMarkers for the partition of the group."""
    marker = {
        "producerId": producer(number),
        "producerEpoch": epoch,
        "transactionResult": commits,
        "coordinatorEpoch": 0,
        "topics": [{"name": "__consumer_offsets", "partitionIndexes": [0]}],
    }
    return Send(actor, "WriteTxnMarkers", 1, {"markers": [marker]})


def fetch(actor: int, *, version: int = 9, topics: Json = None, stable: bool = False) -> Send:
    """OffsetFetch; by default of all offsets."""
    if version >= 8:
        body = {"groups": [{"groupId": GROUP, "topics": topics}], "requireStable": stable}
    else:
        body = {"groupId": GROUP, "topics": topics, "requireStable": stable}
    return Send(actor, "OffsetFetch", version, body)


def partitions_to_fetch(*partitions: int, topic: str = TOPICS[0]) -> list[Json]:
    """Partitions to fetch."""
    return [{"name": topic, "partitionIndexes": list(partitions)}]


def describe(actor: int, *, version: int = 6) -> Send:
    """DescribeGroups."""
    return Send(actor, "DescribeGroups", version, {"groups": [GROUP]})


def delete(actor: int, *, version: int = 2) -> Send:
    """DeleteGroups."""
    return Send(actor, "DeleteGroups", version, {"groupsNames": [GROUP]})


def delete_offsets(actor: int, *partitions: int, topic: str = TOPICS[0]) -> Send:
    """OffsetDelete."""
    entries = [{"partitionIndex": partition} for partition in partitions]
    return Send(actor, "OffsetDelete", 0, {"groupId": GROUP, "topics": [{"name": topic, "partitions": entries}]})


# ---- groups in each state --------------------------------------------------------------------------------------
# Actor 0 is the static leader, actor 1 a dynamic follower, and actor 2 has a pending member id.

LEADER_INSTANCE = "i0"


def two_joined(**request: Any) -> list[Step]:
    """Leader and follower have joined: CompletingRebalance."""
    return [join(0, instance=LEADER_INSTANCE, **request), *join_new(1, **request), INITIAL_DELAY_OVER]


def stable(**request: Any) -> list[Step]:
    """Leader and follower have synced, and the follower has committed an offset: Stable."""
    kind = {"protocolType": request.get("protocol_type", "consumer")}
    return [*two_joined(**request), sync(1, **kind), sync(0, **kind), commit(1)]


def in_state(state: str, **request: Any) -> list[Step]:
    """The group of the three actors in a state; if it is Empty, its members have left."""
    pending = join(2, **request)
    match state:
        case "absent":
            return []
        case "CompletingRebalance":
            return [*two_joined(**request), pending]
        case "Stable":
            return [*stable(**request), pending]
        case "PreparingRebalance":
            return [*stable(**request), pending, *join_new(3, **request)]
        case "Empty":
            leaving = [{"memberId": member(actor), "groupInstanceId": None} for actor in (0, 1)]
            return [*stable(**request), pending, leave(0, *leaving)]
    raise ValueError(f"unknown state {state!r}")


STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "absent")
