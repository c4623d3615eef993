"""A run of chaos on a standalone cluster with an object store. ``make chaos-cluster`` plays fifty."""

import pytest

from tests.recovery.chaos.campaign import Campaign
from tests.recovery.chaos.plan import make_plan

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(900)]


def test_nobody_sees_what_must_not_be(tmp_path_factory: pytest.TempPathFactory) -> None:
    with Campaign(tmp_path_factory.mktemp("kept"), print, on_cluster=True) as campaign:
        verdict = campaign.play(make_plan(3, "kill-worker", on_cluster=True))
    assert verdict.failure is None
    assert verdict.violations == []
    assert [line.partition(":")[0] for line in verdict.faults] == ["kill-worker"]
    assert verdict.operations["commit ok"] > 0
    assert verdict.journal_entries > 0
