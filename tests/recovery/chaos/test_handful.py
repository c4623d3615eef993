"""A handful of chaos: a few faults of each kind in three runs, with fixed seeds. ``make chaos`` plays hundreds.

``make test`` has none of them: tests/smokes/test_campaigns.py plays a run by the command.
"""

from collections.abc import Iterator

import msgspec
import pytest

from tests.recovery.chaos.campaign import Campaign
from tests.recovery.chaos.plan import Plan, make_plan

pytestmark = [pytest.mark.long, pytest.mark.jvm, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    with Campaign(tmp_path_factory.mktemp("kept"), print) as started:
        yield started


RUNS = {
    1: ["kill-when-written", "force-two-actives"],
    4: ["kill-gateway", "kill-broker"],
    5: ["fill-disk"],
}
"""By seed, the faults of a run. Those of different targets overlap."""


def plan_of(seed: int, faults: list[str]) -> Plan:
    """The plan of the last fault alone, with the others as the plans of these have them."""
    plans = [make_plan(seed, fault) for fault in faults]
    members = max(plan.transactional_members for plan in plans)
    injected = [fault for plan in plans for fault in plan.faults]
    return msgspec.structs.replace(plans[-1], faults=injected, transactional_members=members)


@pytest.mark.parametrize(("seed", "faults"), RUNS.items())
def test_nobody_sees_what_must_not_be(campaign: Campaign, seed: int, faults: list[str]) -> None:
    verdict = campaign.play(plan_of(seed, faults))
    assert verdict.failure is None
    assert verdict.violations == []
    if verdict.is_impossible_here:
        pytest.skip(str(verdict.skipped))
    assert sorted(line.partition(":")[0] for line in verdict.faults) == sorted(faults)
    assert verdict.operations["commit ok"] > 0
    assert verdict.operations["heartbeat ok"] > 0
    assert verdict.journal_entries > 0
