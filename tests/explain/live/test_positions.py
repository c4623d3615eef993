"""The offsets of a group in ``top``: those that its journal leaves committed."""

import pytest

from coordinator_logic.group.record import Record
from coordinator_logic.records import (
    GroupDeleted,
    OffsetCommitted,
    OffsetsCommitted,
    OffsetsDeleted,
    TopicPartitions,
    TransactionalOffsetsCommitted,
    TransactionEnded,
)
from streaming.explain.live.positions import Positions

OLD, NEW = "kQXTr5ZaQ4aTOGxdwzcvBw", "yf4HLMwkTNqR31X-kvqSOQ"


def at(offset: int, topic_id: str = OLD) -> list[OffsetCommitted]:
    return [OffsetCommitted("t", 0, offset, None, "", 0, None, topic_id)]


PENDING = TransactionalOffsetsCommitted("x", 7, 0, at(20))
COMMIT = TransactionEnded(7, 0, committed=True)


@pytest.mark.parametrize(
    ("records", "committed"),
    [
        ((PENDING, COMMIT), {("t", 0): 20}),
        ((PENDING, TransactionEnded(7, 0, committed=False)), {}),
        ((PENDING, OffsetsDeleted([TopicPartitions("t", [0])], "deleted"), COMMIT), {}),
        ((PENDING, OffsetsDeleted([TopicPartitions("t", [0], OLD)], "deleted"), COMMIT), {}),
        ((PENDING, OffsetsDeleted([TopicPartitions("t", [0], NEW)], "deleted"), COMMIT), {("t", 0): 20}),
        ((OffsetsCommitted(at(1, NEW)), OffsetsDeleted([TopicPartitions("t", [0], OLD)], "")), {("t", 0): 1}),
        ((PENDING, OffsetsCommitted(at(30)), COMMIT), {("t", 0): 30}),
        ((OffsetsCommitted(at(1)), PENDING, GroupDeleted("gone"), COMMIT), {}),
        ((COMMIT, OffsetsCommitted(at(1))), {("t", 0): 1}),
    ],
)
def test_only_what_the_journal_leaves_committed_counts(
    records: tuple[Record, ...], committed: dict[tuple[str, int], int]
) -> None:
    positions = Positions()
    for record in records:
        positions.note(record)
    assert positions.committed() == committed
    assert positions.lag({("t", 0): 100}) == (100 - committed["t", 0] if committed else None)
