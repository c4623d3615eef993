"""When the job notices that its host's clock was set back, and that the brokers are away or were given up."""

from streaming.embedded.stop_signals import StopRequest
from streaming.job.lifecycle.interruptions import BackwardClock, BrokersAway, has_given_brokers_up


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
        assert clock.seconds_back() == 0


def test_a_step_back_is_noticed_once_however_long_the_time_since_the_last_look() -> None:
    host = Host()
    clock = host.clock()
    host.pass_by(300.0, step=-600.0)
    assert clock.seconds_back() == 600
    host.pass_by(0.5)
    assert clock.seconds_back() == 0


def test_a_step_ahead_and_a_clock_that_is_slowed_down_are_none() -> None:
    host = Host()
    clock = host.clock()
    host.pass_by(0.5, step=600.0)
    assert clock.seconds_back() == 0
    for _ in range(1000):
        # The steps of a slowed clock sum up to 250 s, each smaller than what would hold a batch up for long.
        host.pass_by(0.5, step=-0.25)
        assert clock.seconds_back() == 0


def test_a_pause_between_the_looks_at_the_two_clocks_is_no_step_back() -> None:
    host, pauses = Host(), iter([0.0, 30.0, 0.0])

    def wall_after_a_pause() -> float:
        host.pass_by(next(pauses))
        return host.wall

    clock = BackwardClock(wall_after_a_pause, lambda: host.monotonic)
    assert clock.seconds_back() == 0
    assert clock.seconds_back() == 0


def test_brokers_that_are_away_for_long_interrupt_the_query_until_they_answer() -> None:
    silences = iter([0.5, 2.9, 3.4, 3.9, 9.0, 11.2, 0.1])
    away = BrokersAway(lambda: next(silences))
    assert [away.has_begun() for _ in range(4)] == [False, False, False, True]
    assert away.wait(StopRequest()) == 11.2


def test_a_job_that_was_paused_announces_itself_before_the_second_look() -> None:
    silences = iter([0.5, 30.0, 0.2, 0.6])
    away = BrokersAway(lambda: next(silences))
    assert not any(away.has_begun() for _ in range(4))


def test_a_job_that_is_told_to_stop_waits_no_longer() -> None:
    stopped = StopRequest()
    stopped.set()
    assert BrokersAway(lambda: 7.0).wait(stopped) == 0


def test_a_query_whose_kafka_client_gave_the_brokers_up_can_start_again() -> None:
    """As Spark reports it after a step of the clock by a minute: the client goes by the wall clock."""
    lost = "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times, most recent failure: Lost task 0.0"
    timeout = "org.apache.kafka.common.errors.TimeoutException: Timeout of 60000ms expired before the position for"
    assert has_given_brokers_up(f"{lost} in stage 1.0 (TID 1) (host executor driver): {timeout} partition t-0")
    assert not has_given_brokers_up(f"{lost}: org.apache.spark.SparkException: Python worker exited unexpectedly")
