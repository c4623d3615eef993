"""Patterns of topic names."""

import time
from collections.abc import Callable

import pytest

from coordinator_logic.groups.consumer.patterns import MAX_PATTERN_BYTES, InvalidPattern, check_pattern, matching_topics

TOPICS = ["orders", "orders-eu", "payments", "my.orders"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders-eu"}),
        ("(?i)ORDERS|payments", {"orders", "payments"}),
        (r"my\.orders", {"my.orders"}),
        (r"\Qmy.\E\w+", {"my.orders"}),
        ("", set()),
    ],
)
def test_a_pattern_matches_whole_names(pattern: str, expected: set[str]) -> None:
    assert matching_topics(pattern, TOPICS) == expected


@pytest.mark.parametrize("pattern", ["(", "[a", "a**b(", r"(a)\1", "(?=a)", "\ud800"])
def test_what_re2_cannot_read_is_invalid(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        matching_topics(pattern, TOPICS)


def test_nested_repetition_takes_no_exponential_time() -> None:
    assert matching_topics("(a+)+b", ["a" * 249]) == frozenset()


LONG_NAMES = [f"{number:04}".ljust(249, "x") for number in range(1_000)]
MOST_TIMES = 20.0
"""Groups that capture took 300 times as long as the same groups without."""


def least_seconds(work: Callable[[], object], runs: int = 3) -> float:
    """The processor time of a call, which only other work on the machine lengthens."""
    times = []
    for _ in range(runs):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def test_groups_in_a_pattern_cost_nothing() -> None:
    assert matching_topics("(.?){999}", LONG_NAMES) == frozenset(LONG_NAMES)
    plain = least_seconds(lambda: matching_topics("(?:.?){999}", LONG_NAMES))
    assert least_seconds(lambda: matching_topics("(.?){999}", LONG_NAMES)) < MOST_TIMES * plain
    assert least_seconds(lambda: matching_topics("(?P<name>.?){999}", LONG_NAMES)) < MOST_TIMES * plain


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("(?P<n>a)(?<m>b)", "ab"),
        (r"(?P<n>\Q(?P<n>\E)", "(?P<n>"),
        (r"(?P<n>\(\?P<n>)", "(?P<n>"),
        ("(?P<n>[](?P<n>])", "<"),
        ("(?P<n>[^](?P<n>])", "a"),
        ("(?P<n>[[:alpha:](?P<n>][[:^digit:](?P<n>])", "<("),
        (r"(?P<n>[\](?P<n>])\Q(?P<", "<(?P<"),
    ],
)
def test_a_group_with_a_name_matches_what_it_matches_without(pattern: str, name: str) -> None:
    assert matching_topics(pattern, [name, f"{name}x"]) == {name}


def test_a_pattern_that_is_too_long_is_invalid_and_is_not_read() -> None:
    check_pattern("x" * MAX_PATTERN_BYTES)
    for pattern in ("x" * (MAX_PATTERN_BYTES + 1), "ä" * (MAX_PATTERN_BYTES // 2 + 1), "(x{1000})" * 200_000):
        with pytest.raises(InvalidPattern, match="longer than 1024 bytes"):
            matching_topics(pattern, TOPICS)


def refuse(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        check_pattern(pattern)


def test_a_refusal_is_remembered() -> None:
    too_large = r"\pL{1000}"
    began = time.process_time()
    refuse(too_large)
    first = time.process_time() - began
    assert least_seconds(lambda: refuse(too_large)) < first / 2
