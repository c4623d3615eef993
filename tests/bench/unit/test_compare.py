"""The comparison of two checkouts: medians of the rounds, and of their ratios."""

from tests.bench.compare import Comparison, table


def comparison() -> Comparison:
    return Comparison(
        date="2026-01-01",
        machine={"cores": "2"},
        commits=("abc", "def"),
        this={"latency, ms": [100.0, 200.0, 400.0], "groups touched per second": [50.0]},
        other={"latency, ms": [200.0, 50.0, 800.0], "groups touched per second": [100.0]},
    )


def test_a_ratio_is_the_median_of_the_ratios_of_the_turns() -> None:
    assert list(comparison().rows()) == [
        ("latency, ms", 200.0, 200.0, 0.5),
        ("groups touched per second", 50.0, 100.0, 0.5),
    ]


def test_the_table_says_which_direction_is_better() -> None:
    *_, better = table(comparison()).columns
    assert list(better.cells) == ["lower", "higher"]
