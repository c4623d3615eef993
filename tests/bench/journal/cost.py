"""What the journal costs a heartbeat and a commit: ``python -m tests.bench.journal.cost``.

A worker's part of a batch, from the record to the rows and the state, with the journal and without it, alternately.
Without it, neither the entries with their causes nor their JSON are made. Spark's part is left out: it writes one more
row for each commit, and none for a heartbeat, which changes nothing that the journal tells.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

import typer

from coordinator_logic import turn
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.group.record import Record
from coordinator_logic.messages import HeartbeatRequest
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.processing import process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.rows.records import KafkaRecord, Row
from streaming.job.rows.writing import RowWriter
from tests.bench.figures import LogicFigure
from tests.bench.logic import GROUP_ID, NOW, stable_group
from tests.support.request_events import dumped, envelope

HEARTBEAT_GOAL, COMMIT_GOAL = 10.0, 25.0
"""The most that the journal should cost, in percent of the whole."""

MEMBERS = 10
ROUNDS = 200
BATCHES_PER_ROUND = 50

TOPICS = TopicNames()
SETTINGS = Settings(
    TOPICS,
    response_partitions=1,
    config=CoordinatorConfig(group_initial_rebalance_delay_ms=0, late_answer_ms=2_000, requests_partitions=1),
    has_deadline_checks=True,
)


class _Unwritten(NamedTuple):
    """What the rest of a step reads of an entry of the journal."""

    record: Record


def figures(rounds: int = ROUNDS) -> Iterator[LogicFigure]:
    """Measure batches of one request: a heartbeat, and commits of one partition and of ten."""
    stored, heartbeat = stable_group(MEMBERS)
    bodies = {
        "a heartbeat": ("Heartbeat", 3, _of_member(heartbeat), HEARTBEAT_GOAL),
        "a commit of 1 partition": ("OffsetCommit", 8, _commit(heartbeat, 1), COMMIT_GOAL),
        "a commit of 10 partitions": ("OffsetCommit", 8, _commit(heartbeat, 10), COMMIT_GOAL),
    }
    for name, (api, version, body, goal) in bodies.items():
        value = dumped(envelope(api, version, body, clientId="billing-consumer"))
        record = KafkaRecord(NOW + 1, 0, 1_000_000, GROUP_ID.encode(), value)
        yield LogicFigure(f"the journal's share of {name}, in a worker", _share(stored, record, rounds), "%", goal)


def _share(stored: bytes, record: KafkaRecord, rounds: int) -> float:
    """The journal's share of a batch, in percent, of the shortest rounds: whatever else runs only adds time."""
    written, unwritten = [], []
    gc.disable()
    try:
        for _ in range(rounds):
            written.append(_seconds(stored, record))
            with _no_journal():
                unwritten.append(_seconds(stored, record))
    finally:
        gc.enable()
    return 100 * (1 - min(unwritten) / min(written))


def _seconds(stored: bytes, record: KafkaRecord) -> float:
    began = time.perf_counter()
    for _ in range(BATCHES_PER_ROUND):
        outcome = process(SETTINGS, GROUP_ID, [record], StateRow(stored), NOW + 100)
    seconds = time.perf_counter() - began
    assert b'"errorCode":0' in (outcome.rows[0].value or b""), outcome.rows
    return seconds


@contextmanager
def _no_journal() -> Iterator[None]:
    """Make no entries of the journal within the block, and no rows of them."""
    row = Row(TOPICS.journal, None, GROUP_ID.encode(), b"", None)

    def unwritten(*fields: Any) -> _Unwritten:
        return _Unwritten(fields[4])

    with (
        patch.object(turn, "JournalEntry", unwritten),
        patch.object(turn, "_cause", lambda *_: None),
        patch.object(RowWriter, "journal", lambda *_: row),
    ):
        yield


def _of_member(heartbeat: HeartbeatRequest) -> dict[str, Any]:
    return {"groupId": GROUP_ID, "memberId": heartbeat.member_id, "generationId": heartbeat.generation_id}


def _commit(heartbeat: HeartbeatRequest, partitions: int) -> dict[str, Any]:
    listed = [{"partitionIndex": number, "committedOffset": 1_000_000 + number} for number in range(partitions)]
    return {
        "groupId": GROUP_ID,
        "generationIdOrMemberEpoch": heartbeat.generation_id,
        "memberId": heartbeat.member_id,
        "topics": [{"name": "payments", "partitions": listed}],
    }


def main() -> None:
    """Print each figure."""
    for figure in figures():
        typer.echo(f"{figure.name}: {figure.value:.1f} {figure.unit} (goal: at most {figure.goal:.0f} %)")


if __name__ == "__main__":
    typer.run(main)
