"""A group that exchanges request events with ``process``, as in the job but without Spark."""

import json
from collections.abc import Iterable
from typing import Any

from coordinator_logic.config import CoordinatorConfig
from streaming.contract.topics import MAX_ROW_BYTES, TopicNames
from streaming.job.group_batch.processing import Outcome, process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.starts import Start
from streaming.job.group_batch.state_row import StateRow
from streaming.job.rows.records import KafkaRecord
from tests.support.request_events import commit, dumped, envelope

GROUP_ID = "g"
NOW = 1_700_000_000_000
BETWEEN_BATCHES_MS = 5_000
TOPICS = TopicNames()
START = Start(started_at=NOW - 50)
SETTINGS = Settings(TOPICS, 4, CoordinatorConfig(group_initial_rebalance_delay_ms=0), starts=(START,))

SUBSCRIPTION = "AAEAAAABAAhwYXltZW50c/////8AAAAA"
"""A subscription to ``payments``, in base64."""


def join(member_id: str = "", version: int = 3, **fields: object) -> dict[str, Any]:
    """A JoinGroup; version 3 needs no member id. ``fields`` replace or add envelope fields."""
    body = {
        "groupId": GROUP_ID,
        "sessionTimeoutMs": 10_000,
        "rebalanceTimeoutMs": 10_000,
        "memberId": member_id,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": SUBSCRIPTION}],
    }
    return envelope("JoinGroup", version, body, **{"correlationId": "join", **fields})


def requests(batch: str = "first") -> list[bytes]:
    """One valid request of most APIs. Their correlation ids begin with ``batch``, and are the same in each run."""
    member = {"groupId": GROUP_ID, "generationId": 1, "memberId": "m"}
    deleted = [{"name": "payments", "partitions": [{"partitionIndex": 0}]}]
    reset = [{"name": "payments", "partitions": [{"partitionIndex": 0, "offset": 3, "expectedOffset": 7}]}]
    bodies: list[tuple[str, int, dict[str, Any]]] = [
        ("SyncGroup", 5, {**member, "assignments": [{"memberId": "m", "assignment": "AAA="}]}),
        ("Heartbeat", 4, member),
        ("LeaveGroup", 5, {"groupId": GROUP_ID, "members": [{"memberId": "m", "groupInstanceId": "worker-1"}]}),
        ("OffsetFetch", 9, {"groups": [{"groupId": GROUP_ID, "topics": None}], "requireStable": True}),
        ("OffsetFetch", 7, {"groupId": GROUP_ID, "topics": [{"name": "payments", "partitionIndexes": [0]}]}),
        ("DescribeGroups", 5, {"groups": [GROUP_ID]}),
        ("DeleteGroups", 2, {"groupsNames": [GROUP_ID]}),
        ("FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": [GROUP_ID]}),
        ("ResetOffsets", 0, {"groupId": GROUP_ID, "topics": reset, "force": True}),
        ("TakeOverOffsets", 0, {"groupId": GROUP_ID, "topics": [{"name": "payments", "partitions": []}]}),
        ("OffsetDelete", 0, {"groupId": GROUP_ID, "topics": deleted}),
    ]
    sent = [join(), commit(GROUP_ID, 7), *(envelope(*each) for each in bodies)]
    return [dumped({**each, "correlationId": f"{batch}-{number}"}) for number, each in enumerate(sent)]


def records(values: Iterable[bytes], at: int = NOW) -> list[KafkaRecord]:
    """The values as records of the group, a millisecond apart."""
    return [KafkaRecord(at + i, 0, i, GROUP_ID.encode(), value) for i, value in enumerate(values)]


def answered(batch: list[KafkaRecord], stored: StateRow | None = None, at: int = NOW) -> Outcome:
    """The outcome of a batch, after the checks that hold for any input: rows fit and are JSON, and so is the state."""
    outcome = process(SETTINGS, GROUP_ID, batch, stored, at)
    for row in outcome.rows:
        assert len(row.key or b"") + len(row.value or b"") <= MAX_ROW_BYTES
        if row.value is not None:
            json.loads(row.value)
    assert outcome.wake_at is None or outcome.state is not None
    assert outcome.wake_at is None or abs(outcome.wake_at) < 2**63
    return outcome


def lived(outcome: Outcome) -> None:
    """Take the group through two further batches: one with every request, and one without any."""
    stored, at = outcome.state, NOW + BETWEEN_BATCHES_MS
    for values in (requests("later"), []):
        stored = answered(records(values, at), stored, at).state
        at += BETWEEN_BATCHES_MS
