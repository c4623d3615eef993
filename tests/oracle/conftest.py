import asyncio
from collections.abc import Callable, Iterator, Sequence

import pytest

from coordinator_logic.config import CoordinatorConfig
from streaming.broker import EmbeddedBroker
from tests.oracle.campaign import Campaign, Tally
from tests.oracle.judge import CONFIG, SMALL_GROUPS, judge
from tests.oracle.script import Script

Judge = Callable[[Sequence[Script]], Tally]


def _judge(broker: EmbeddedBroker, config: CoordinatorConfig) -> Judge:
    async def play(scripts: Sequence[Script]) -> Tally:
        campaign = Campaign(broker.bootstrap_servers, config)
        try:
            return await campaign.judge(scripts)
        finally:
            campaign.close()

    return lambda scripts: asyncio.run(play(scripts))


@pytest.fixture(scope="session")
def judging_broker() -> Iterator[EmbeddedBroker]:
    """One broker for all scripts: every script has a group of its own."""
    with judge() as broker:
        yield broker


@pytest.fixture(scope="session")
def judged(judging_broker: EmbeddedBroker) -> Judge:
    """Plays scripts, many at a time, each until its result is beyond doubt."""
    return _judge(judging_broker, CONFIG)


@pytest.fixture(scope="session")
def judged_in_small_groups() -> Iterator[Judge]:
    """The same in groups with room for two members; for the config a broker of its own."""
    with judge(SMALL_GROUPS) as broker:
        yield _judge(broker, SMALL_GROUPS)
