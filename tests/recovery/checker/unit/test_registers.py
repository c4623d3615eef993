"""The check of one register: the fast algorithm and the search agree with trying every order."""

from itertools import permutations
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recovery.checker import registers
from tests.recovery.checker.registers import Access, Value, conflict_in, initial

NOTHING: Value = (-1, "")


def write(offset: int, called: float, returned: float) -> Access:
    return Access((offset, ""), called, returned, is_write=True)


def read(offset: int, called: float, returned: float) -> Access:
    return Access((offset, ""), called, returned, is_write=False)


def is_explained(accesses: list[Access]) -> bool:
    """Try every order, with and without the writes of unknown outcome."""
    unknown = [access for access in accesses if access.returned == inf]
    certain = [access for access in accesses if access.returned < inf]
    return any(
        _is_legal(order)
        for chosen in range(2 ** len(unknown))
        for order in permutations(certain + [a for bit, a in enumerate(unknown) if chosen >> bit & 1])
    )


def _is_legal(order: tuple[Access, ...]) -> bool:
    value = NOTHING
    latest_call = -inf
    for access in order:
        if access.returned < latest_call:
            return False
        latest_call = max(latest_call, access.called)
        if access.is_write:
            value = access.value
        elif access.value != value:
            return False
    return True


@st.composite
def histories(draw: st.DrawFn, *, unique: bool) -> list[Access]:
    """A few overlapping reads and writes; a write's outcome may be unknown."""
    accesses: list[Access] = []
    writes = draw(st.integers(0, 3))
    for number in range(writes + draw(st.integers(0, 6 - writes))):
        called = draw(st.integers(0, 8))
        length = draw(st.integers(0, 6))
        is_write = number < writes
        offset = number if is_write and unique else draw(st.integers(-1 if not is_write else 0, max(writes - 1, 0)))
        returned = inf if is_write and draw(st.integers(0, 3)) == 0 else called + length
        accesses.append(Access((offset, ""), called, returned, is_write))
    return accesses


@given(histories(unique=True))
@settings(max_examples=200, derandomize=True, deadline=None)
def test_with_unique_values_it_decides_like_trying_every_order(accesses: list[Access]) -> None:
    assert (conflict_in([initial(NOTHING), *accesses]) is None) == is_explained(accesses)


@given(histories(unique=False))
@settings(max_examples=200, derandomize=True, deadline=None)
def test_with_repeated_values_it_decides_like_trying_every_order(accesses: list[Access]) -> None:
    assert (conflict_in([initial(NOTHING), *accesses]) is None) == is_explained(accesses)


def test_a_read_that_returns_when_a_write_is_called_may_follow_it() -> None:
    assert conflict_in([initial(NOTHING), write(1, 5, 9), read(1, 2, 5)]) is None
    assert conflict_in([initial(NOTHING), write(1, 5, 9), read(1, 2, 4)]) is not None


def test_a_long_history_takes_steps_in_proportion_to_its_length() -> None:
    """Each of the 10,000 values is read once; trying orders one by one would not end."""
    accesses = [initial(NOTHING)]
    for number in range(10_000):
        accesses += [write(number, 10 * number, 10 * number + 15), read(number, 10 * number + 11, 10 * number + 19)]
    assert conflict_in(accesses) is None
    assert conflict_in([*accesses, read(3, 300_000, 300_001)]) is not None


def test_a_long_history_of_repeated_values_is_decided() -> None:
    accesses = [initial(NOTHING)]
    for number in range(2_000):
        accesses += [
            write(number // 2, 10 * number, 10 * number + 15),
            read(number // 2, 10 * number + 11, 10 * number + 19),
        ]
    accesses += [write(7, 100 * number, inf) for number in range(20)]
    assert conflict_in(accesses) is None
    assert conflict_in([*accesses, read(3, 300_000, 300_001)]) is not None


def test_an_undecided_history_is_a_conflict_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    accesses = [
        initial(NOTHING),
        *(write(number % 5, 0, 10) for number in range(30)),
        read(99, 0, 11),
        write(99, 12, 13),
    ]
    monkeypatch.setattr(registers, "MOST_CONFIGURATIONS", 1_000)
    conflict = conflict_in(accesses)
    assert conflict is not None
    assert "too many" in conflict.what
