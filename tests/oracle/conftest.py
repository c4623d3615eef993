import asyncio
from collections.abc import Callable, Iterator, Sequence

import pytest

from coordinator_logic.config import CoordinatorConfig
from streaming.embedded.broker import EmbeddedBroker
from tests.oracle.campaign import Campaign, CampaignResult
from tests.oracle.reference_broker import CONFIG, SMALL_GROUPS, reference_broker
from tests.oracle.scripts.script import Script

RunScripts = Callable[[Sequence[Script]], CampaignResult]


def _runner(broker: EmbeddedBroker, config: CoordinatorConfig) -> RunScripts:
    async def play(scripts: Sequence[Script]) -> CampaignResult:
        campaign = Campaign(broker.bootstrap_servers, config)
        try:
            return await campaign.run(scripts)
        finally:
            campaign.close()

    return lambda scripts: asyncio.run(play(scripts))


@pytest.fixture(scope="session")
def shared_broker() -> Iterator[EmbeddedBroker]:
    """A broker for all scripts, each of which has its own group."""
    with reference_broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def run_scripts(shared_broker: EmbeddedBroker) -> RunScripts:
    """Runs scripts concurrently, each until its result is conclusive."""
    return _runner(shared_broker, CONFIG)


@pytest.fixture(scope="session")
def run_in_small_groups() -> Iterator[RunScripts]:
    """Runs scripts with ``group.max.size=2``, against a broker with this configuration."""
    with reference_broker(SMALL_GROUPS) as broker:
        yield _runner(broker, SMALL_GROUPS)
