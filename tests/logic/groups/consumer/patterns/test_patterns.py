"""Patterns of topic names."""

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_logic.groups.consumer.patterns import (
    MAX_PATTERN_BYTES,
    InvalidPattern,
    check_pattern,
    matching_topics,
    read_pattern,
)
from tests.growth.measured import LONGEST_PIECE_SECONDS, longest_piece_seconds

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
MOST_SECONDS_OF_A_NAME = 0.02
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
    names = LONG_NAMES[:100]
    assert matching_topics("(.?){999}", names) == frozenset(names)
    plain = least_seconds(lambda: matching_topics("(?:.?){999}", names))
    assert least_seconds(lambda: matching_topics("(.?){999}", names)) < MOST_TIMES * plain
    assert least_seconds(lambda: matching_topics("(?P<name>.?){999}", names)) < MOST_TIMES * plain


@pytest.mark.parametrize("repeated", ["([x0-9]?){999}", "(.?){999}", "(.*x?){400}", "(x*0?){500}", "(x{1000})", ".?"])
def test_one_name_takes_some_milliseconds_at_most_whatever_the_pattern(repeated: str) -> None:
    longest = repeated * (MAX_PATTERN_BYTES // len(repeated))
    while not is_readable(longest):
        longest = longest.removesuffix(repeated)
    # The pattern remembers names.
    names, matches = iter(LONG_NAMES), read_pattern(longest).matches
    # More on a machine that is slow now.
    most = MOST_SECONDS_OF_A_NAME * longest_piece_seconds() / LONGEST_PIECE_SECONDS
    assert least_seconds(lambda: matches(next(names))) < most


def is_readable(pattern: str) -> bool:
    try:
        check_pattern(pattern)
    except InvalidPattern:
        return False
    return True


CHARACTERS = "ab.-_1Z"
SYNTAX = ["(", ")", "[", "]", "^", "*", "+", "?", "|", "{2}", "{1,3}", r"\pL", r"\PN"]


@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from([*CHARACTERS, "(", ")", "[", "]", "^", "*", "+", "?", "|", "{2}", "{1,3}", r"\pL", r"\PN"])
    ),
    st.sampled_from(["", "(?i)", "(?s)"]),
    st.lists(st.text(CHARACTERS, max_size=8), min_size=1),
)
def test_a_pattern_matches_the_names_that_it_matches_among_texts_of_any_alphabet(
    parts: list[str], flags: str, names: list[str]
) -> None:
    pattern = flags + "".join(parts)
    try:
        of_any_alphabet = matching_topics(pattern, names, is_bounded=False)
    except InvalidPattern as refused:
        with pytest.raises(InvalidPattern, match=re.escape(str(refused))):
            check_pattern(pattern)
        return
    assert matching_topics(pattern, names) == of_any_alphabet


@pytest.mark.parametrize("pattern", [r"\x{100}|orders", "ä|orders", "[^ä]*", r"\pL{1000}|orders"])
def test_a_pattern_may_name_characters_of_any_alphabet(pattern: str) -> None:
    assert "orders" in matching_topics(pattern, TOPICS)


def test_what_cannot_be_the_name_of_a_topic_matches_no_pattern() -> None:
    assert matching_topics(".*", ["a" * 249, "a" * 250, "größe"]) == {"a" * 249}


def test_what_earlier_releases_accepted_is_known() -> None:
    check_pattern(TOO_LARGE, is_bounded=False)
    refuse(TOO_LARGE)
    with pytest.raises(InvalidPattern):
        check_pattern(r"\pL{1000}", is_bounded=False)


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


TOO_LARGE = "(x{1000})" * 113


def test_a_refusal_is_remembered() -> None:
    too_large = TOO_LARGE
    began = time.process_time()
    refuse(too_large)
    first = time.process_time() - began
    assert least_seconds(lambda: refuse(too_large)) < first / 2
