"""The benchmark of the assignors measures what it says, in small."""

from tests.bench.assignors import GroupSize, measured


def test_every_figure_is_measured_and_named_once() -> None:
    figures = list(measured(GroupSize(topics=2, partitions=8, members=3)))
    assert len({figure.what for figure in figures}) == len(figures) == 12
    assert all(figure.value > 0 for figure in figures)
