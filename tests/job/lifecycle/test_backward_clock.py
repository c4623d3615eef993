"""When the job takes its host's clock for one that has been set back."""

from streaming.job.lifecycle.backward_clock import BackwardClock


class Host:
    """A wall clock and a monotonic one, which are set by hand."""

    def __init__(self) -> None:
        self.wall = 1_000_000.0
        self.monotonic = 50.0

    def pass_by(self, seconds: float, *, step: float = 0.0) -> None:
        self.monotonic += seconds
        self.wall += seconds + step

    def clock(self) -> BackwardClock:
        return BackwardClock(lambda: self.wall, lambda: self.monotonic)


def test_time_that_passes_is_no_step_back() -> None:
    host = Host()
    clock = host.clock()
    for _ in range(100):
        host.pass_by(60.0)
        assert not clock.has_gone_back()
    assert clock.seconds_back == 0


def test_a_step_back_is_noticed_once_however_long_the_time_since_the_last_look() -> None:
    host = Host()
    clock = host.clock()
    host.pass_by(300.0, step=-600.0)
    assert clock.has_gone_back()
    assert clock.seconds_back == 600
    host.pass_by(0.5)
    assert not clock.has_gone_back()


def test_a_step_ahead_and_a_clock_that_is_slowed_down_are_none() -> None:
    host = Host()
    clock = host.clock()
    host.pass_by(0.5, step=600.0)
    assert not clock.has_gone_back()
    for _ in range(1000):
        # The steps of a slowed clock sum up to 250 s, each smaller than what would hold a batch up for long.
        host.pass_by(0.5, step=-0.25)
        assert not clock.has_gone_back()
