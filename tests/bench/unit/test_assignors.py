"""The benchmark of the assignors, with small groups."""

from tests.bench.assignors import GroupSize, figures


def test_every_figure_is_measured_and_named_once() -> None:
    measured = list(figures(GroupSize(topics=2, partitions=8, members=3)))
    assert len({figure.name for figure in measured}) == len(measured) == 12
    assert all(figure.value > 0 for figure in measured)
