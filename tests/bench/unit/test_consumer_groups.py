"""The benchmark of the consumer group protocol, with small groups."""

from tests.bench.consumer_groups import GroupSize, figures


def test_every_figure_is_measured_and_named_once() -> None:
    measured = list(figures([GroupSize(1, 2), GroupSize(3, 6)], rounds=1))
    assert len({figure.name for figure in measured}) == len(measured) == 4
    assert all(figure.value > 0 for figure in measured)
