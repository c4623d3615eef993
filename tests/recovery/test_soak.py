"""Half a minute of the soak: nobody who stays notices hostile clients or restarts."""

import pytest

from tests.soak.campaign import Plan, soak


@pytest.mark.long
@pytest.mark.timeout(900)
def test_members_that_stay_notice_neither_hostile_clients_nor_restarts() -> None:
    plan = Plan(minutes=0.5, members=16, restarting_minutes=0.5, restart_every_seconds=6.0, sample_every_seconds=3.0)
    measured = soak(plan, print)
    assert measured.wrong == []
    assert measured.samples
    assert measured.counts["commit"] > 0
    assert measured.counts["joined"] > 0
    assert measured.counts["heartbeat"] > 0
    assert any(what.startswith("attack") for what in measured.counts)
    assert any("and start of the" in what for what in measured.counts)
