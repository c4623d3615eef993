"""How long a command looks for an active job, with the announcements of a simulated topic."""

import pytest

from streaming.contract.errors import CannotRun
from streaming.job.backups.last_job import await_silence


def test_slow_brokers_do_not_keep_a_command_waiting_forever() -> None:
    looks = []
    with pytest.raises(CannotRun, match="too slow to tell whether a job is active"):
        # Each look sees a little silence, and is then too slow to count.
        await_silence(lambda: looks.append(1), lambda: len(looks) > 100, lambda: 0.1, limit_seconds=0.3)
    assert 1 < len(looks) < 100


def test_the_announcements_of_an_active_job_are_named_as_the_reason() -> None:
    with pytest.raises(CannotRun, match="a job is active for these topics: stop it first"):
        await_silence(lambda: None, lambda: False, lambda: 0.0)


def test_a_job_that_falls_silent_is_waited_for() -> None:
    looks: list[int] = []
    await_silence(lambda: looks.append(1), lambda: len(looks) > 3, lambda: 0.1, limit_seconds=10)
    assert len(looks) == 4
