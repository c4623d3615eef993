"""What Spark has stored of a written checkpoint is compared with what was given, deadlines too."""

import pytest

from streaming.contract.errors import CannotRun
from streaming.job.backups.checkpoint_writing import require_same_groups
from streaming.job.group_batch.state_row import StateRow
from streaming.job.spark_internals.checkpoint_layout.state_reader import StoredGroup

WRITTEN_AT = 5_000
NONE = -1
"""Spark's timeout of a group that has none."""


def group(wake_at: int, content: bytes = b"snapshot", group_id: str = "g") -> StoredGroup:
    return StoredGroup(group_id, StateRow(content).packed(), wake_at)


@pytest.mark.parametrize(
    ("given", "found"), [(9_000, 9_000), (0, NONE), (NONE, NONE), (4_000, WRITTEN_AT + 1), (WRITTEN_AT, WRITTEN_AT + 1)]
)
def test_a_group_is_called_when_it_was_due_or_after_the_batch_that_has_written_it(given: int, found: int) -> None:
    others = [group(NONE, group_id="other")]
    require_same_groups([group(given), *others], [*others, group(found)], WRITTEN_AT)


@pytest.mark.parametrize(
    ("given", "found", "why"),
    [
        ([group(9_000)], [group(9_001)], "calls group g at 9001, not at 9000"),
        ([group(9_000)], [group(NONE)], "calls group g at -1, not at 9000"),
        ([group(0)], [group(9_000)], "calls group g at 9000, not at 0"),
        ([group(4_000)], [group(4_000)], "calls group g at 4000, not at 5001"),
        ([group(0)], [group(NONE, b"another")], "has stored group g otherwise"),
        ([group(0)], [group(NONE, group_id="other")], "has stored group g otherwise"),
        ([group(0)], [], "has stored 0 groups of 1"),
    ],
)
def test_anything_else_is_refused(given: list[StoredGroup], found: list[StoredGroup], why: str) -> None:
    with pytest.raises(CannotRun, match=why):
        require_same_groups(given, found, WRITTEN_AT)
