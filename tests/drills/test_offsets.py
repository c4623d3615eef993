"""Which acknowledged commits are lost."""

from streaming.drills.clients.offsets import Ledger, lost


def test_the_ledger_keeps_the_highest_offset_of_each_place() -> None:
    ledger = Ledger()
    for offset in (1, 3, 2):
        ledger.acknowledge(("group", 0), offset)
    ledger.acknowledge(("group", 1), 7)
    assert ledger.acknowledged() == {("group", 0): 3, ("group", 1): 7}
    assert ledger.count == 4


def test_a_commit_is_lost_if_less_is_read_or_nothing() -> None:
    acknowledged = {("a", 0): 3, ("a", 1): 5, ("b", 0): 1}
    found = lost(acknowledged, {("a", 0): 4, ("a", 1): 4})
    assert found == [
        "partition 1 of group a has offset 4, but 5 was acknowledged",
        "partition 0 of group b has offset -1, but 1 was acknowledged",
    ]
