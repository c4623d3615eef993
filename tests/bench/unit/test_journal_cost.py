"""The measurement of the journal's cost, with few rounds."""

from tests.bench.journal.cost import figures


def test_heartbeats_and_commits_are_measured() -> None:
    measured = list(figures(rounds=2))
    assert len({figure.name for figure in measured}) == len(measured) == 3
    assert all(figure.value < 100 for figure in measured)
