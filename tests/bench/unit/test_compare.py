"""The comparison of two checkouts: medians of the rounds, and their ratios."""

from tests.bench.compare import Comparison, table


def comparison() -> Comparison:
    return Comparison(
        date="2026-01-01",
        machine={"cores": "2"},
        commits=("abc", "def"),
        this=[{"latency, ms": 100.0, "groups touched per second": 50.0}] * 2,
        other=[
            {"latency, ms": 180.0, "groups touched per second": 100.0},
            {"latency, ms": 220.0, "groups touched per second": 100.0},
        ],
    )


def test_a_ratio_is_this_checkouts_median_to_the_others() -> None:
    assert list(comparison().rows()) == [
        ("latency, ms", 100.0, 200.0, 0.5),
        ("groups touched per second", 50.0, 100.0, 0.5),
    ]


def test_the_table_says_which_direction_is_better() -> None:
    *_, better = table(comparison()).columns
    assert list(better.cells) == ["lower", "higher"]
