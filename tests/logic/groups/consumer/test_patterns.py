"""Patterns of topic names."""

import pytest

from coordinator_logic.groups.consumer.patterns import InvalidPattern, matching_topics

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
