"""What a run has left, compared with what was appended."""

from coordinator_logic import snapshot
from coordinator_logic.committed_offsets import CommittedOffset
from coordinator_logic.group import Group
from tests.recovery.chaos.final_state import lost_commits
from tests.support.request_events import commit, dumped


def stored(offset: int) -> bytes:
    committed = CommittedOffset(offset, None, "", 0, None, 1)
    return snapshot.encode(Group("flood-0", "0-0", offsets={"payments": {0: committed}}))


def test_the_last_commit_that_was_appended_is_in_the_state() -> None:
    delivered = {"flood-0": dumped(commit("flood-0", 7))}
    assert lost_commits(delivered, {"flood-0": stored(7)}) == []
    assert lost_commits(delivered, {"flood-0": stored(6)}) == [
        "flood-0: offset 7 was appended last, the state has offset 6"
    ]
    for missing in ({}, {"flood-0": None}):
        assert lost_commits(delivered, missing) == ["flood-0: offset 7 was appended last, the state has nothing"]
