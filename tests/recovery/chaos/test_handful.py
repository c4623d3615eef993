"""A handful of chaos: a few faults of each kind, one run each, with fixed seeds. ``make chaos`` plays hundreds."""

from collections.abc import Iterator

import pytest

from tests.recovery.chaos.campaign import Campaign
from tests.recovery.chaos.plan import make_plan

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    with Campaign(tmp_path_factory.mktemp("kept"), print) as started:
        yield started


@pytest.mark.parametrize(
    ("seed", "fault"),
    [(1, "kill-when-written"), (2, "force-two-actives"), (3, "kill-broker"), (4, "kill-gateway"), (5, "fill-disk")],
)
def test_nobody_sees_what_must_not_be(campaign: Campaign, seed: int, fault: str) -> None:
    verdict = campaign.play(make_plan(seed, fault))
    assert verdict.failure is None
    assert verdict.violations == []
    if verdict.is_impossible_here:
        pytest.skip(str(verdict.skipped))
    assert [line.partition(":")[0] for line in verdict.faults] == [fault]
    assert verdict.operations["commit ok"] > 0
    assert verdict.operations["heartbeat ok"] > 0
    assert verdict.journal_entries > 0
