"""A step says how many committed offsets each of its entries made lower."""

from hypothesis import event, given
from hypothesis import strategies as st

from tests.logic.driver import Driven
from tests.support.properties import examples

FIRST, SECOND, OTHER = ("topic", 0), ("topic", 1), ("other", 0)
PLACES = (FIRST, SECOND, OTHER)


def positions(driven: Driven) -> dict[tuple[str, int], int]:
    """The committed offsets."""
    if not driven.exists:
        return {}
    return {(topic, index): committed.offset for topic, index, committed in driven.group.committed_offsets()}


def test_a_commit_counts_the_partitions_whose_offset_becomes_lower(driven: Driven) -> None:
    driven.commit(offsets={FIRST: 10, SECOND: 20})
    assert driven.moved_back == {}
    driven.commit(offsets={FIRST: 9, SECOND: 20, OTHER: 0})
    assert driven.moved_back == {0: 1}


def test_the_count_belongs_to_the_entry_of_its_commit(driven: Driven) -> None:
    driven.commit(offsets={FIRST: 10, SECOND: 20})
    driven.reset_offsets({FIRST: 5, SECOND: -1})
    assert driven.moved_back == {1: 1}


def test_offsets_of_a_transaction_count_when_they_take_effect(driven: Driven) -> None:
    driven.commit(offsets={FIRST: 10, SECOND: 20})
    driven.commit_in_transaction({FIRST: 5, SECOND: 15, OTHER: 1})
    driven.commit(offsets={SECOND: 21})
    assert driven.moved_back == {}
    driven.end_transaction(commit=True)
    assert (driven.moved_back, positions(driven)[SECOND]) == ({0: 1}, 21)


def test_offsets_of_a_transaction_that_is_aborted_do_not_count(driven: Driven) -> None:
    driven.commit(offsets={FIRST: 10})
    driven.commit_in_transaction({FIRST: 5})
    driven.end_transaction(commit=False)
    assert driven.moved_back == {}


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["commit", "reset", "in transaction", "end", "abort"]),
        st.dictionaries(st.sampled_from(PLACES), st.integers(0, 5), min_size=1),
    ),
    max_size=20,
)


@given(MOVES)
@examples(100)
def test_what_is_counted_is_what_the_group_shows(moves: list[tuple[str, dict[tuple[str, int], int]]]) -> None:
    driven = Driven()
    for action, offsets in moves:
        before = positions(driven)
        match action:
            case "commit":
                driven.commit(offsets=offsets)
            case "reset":
                driven.reset_offsets(offsets)
            case "in transaction":
                driven.commit_in_transaction(offsets)
            case _:
                driven.end_transaction(commit=action == "end")
        after = positions(driven)
        lower = sum(after[place] < before[place] for place in before.keys() & after.keys())
        assert sum(driven.moved_back.values()) == lower
        event(f"{action}: {'some' if lower else 'none'}")
