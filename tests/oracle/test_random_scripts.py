"""The same random scripts in each run against a real broker; ``make oracle`` runs any number of them."""

import asyncio

import pytest

from coordinator_logic.apis import APIS
from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.groups.classic.requests import join_group
from coordinator_logic.handlers import HANDLERS
from coordinator_logic.messages import JoinGroupRequest
from coordinator_logic.turn import Turn
from streaming.embedded.broker import EmbeddedBroker
from tests.oracle.campaign import Campaign, CampaignResult
from tests.oracle.conftest import RunScripts
from tests.oracle.reference_broker import CONFIG
from tests.oracle.scripts.generate import random_scripts
from tests.oracle.scripts.script import Send, read
from tests.oracle.scripts.shrink import shrink
from tests.oracle.scripts.transcript import transcript
from tests.oracle.sides.lockstep import ScriptRun
from tests.support.parts import classic

SEED = 4
SCRIPTS = 100
SCRIPTS_IN_SMALL_GROUPS = 40
SCRIPTS_AGAINST_A_FAULT = 24
REQUESTS_AGAINST_A_FAULT = 14
REQUESTS = 30
NOT_IN_SCRIPTS = {"FindCoordinator", "TopicsDeleted", "ReadQuarantinedGroup", "DropQuarantinedGroup", "ResetOffsets"}
NOT_IN_SCRIPTS |= {"ConsumerGroupHeartbeat", "ConsumerGroupDescribe", "TopicsDescribed", "SetGroupConfig"}
NOT_IN_SCRIPTS |= {"TakeOverOffsets"}


def check(result: CampaignResult) -> None:
    """Check that there is no difference, no inconclusive script, and few differences that were not reproduced."""
    assert not result.differences, "\n\n".join(map(transcript, result.differences))
    assert not result.inconclusive, "\n\n".join(map(transcript, result.inconclusive))
    assert len(result.not_reproduced) <= len(result.runs) // 20, "\n\n".join(map(transcript, result.not_reproduced))


def test_random_scripts_agree_with_the_broker(run_scripts: RunScripts) -> None:
    result = run_scripts(random_scripts(SCRIPTS, seed_number=SEED, requests=REQUESTS))
    check(result)
    assert set(result.states) >= {"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}
    reached = {answer.split()[0] for answer in result.answers}
    assert reached == {*APIS} - NOT_IN_SCRIPTS, "an API is in no script"


def test_random_scripts_in_small_groups_agree_with_the_broker(run_in_small_groups: RunScripts) -> None:
    result = run_in_small_groups(random_scripts(SCRIPTS_IN_SMALL_GROUPS, seed_number=SEED + 1, requests=REQUESTS))
    check(result)
    assert result.answers[f"JoinGroup {Error.GROUP_MAX_SIZE_REACHED.value}"]


def test_a_seed_generates_the_same_scripts_and_their_text_can_be_parsed() -> None:
    scripts = random_scripts(5, seed_number=SEED, requests=REQUESTS)
    assert random_scripts(5, seed_number=SEED, requests=REQUESTS) == scripts
    assert random_scripts(3, seed_number=SEED + 1, requests=REQUESTS) != scripts[:3]
    assert [read(script.text()) for script in scripts] == scripts


def join_without_pending_id(turn: Turn, request: Request, body: JoinGroupRequest) -> None:
    """A faulty handler: it generates a member id but does not remember it as pending."""
    join_group.handle(turn, request, body)
    if turn.output.responses and turn.output.responses[-1].error_code == Error.MEMBER_ID_REQUIRED:
        classic(turn.group).pending_joins.popitem()


def test_a_fault_in_our_logic_is_found_and_its_script_is_shrunk(
    shared_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = HANDLERS["JoinGroup"]._replace(handle=join_without_pending_id)
    scripts = random_scripts(SCRIPTS_AGAINST_A_FAULT, seed_number=SEED, requests=REQUESTS_AGAINST_A_FAULT)
    monkeypatch.setitem(HANDLERS, "JoinGroup", faulty)

    async def find() -> ScriptRun:
        campaign = Campaign(shared_broker.bootstrap_servers, CONFIG)
        try:
            result = await campaign.run(scripts)
            assert result.differences
            return await shrink(min(result.differences, key=lambda run: run.requests), campaign)
        finally:
            campaign.close()

    smallest = asyncio.run(find())
    sent = [step for step in smallest.script.steps if isinstance(step, Send)]
    assert len(sent) <= 10, transcript(smallest)
    assert any(step.api == "JoinGroup" for step in sent), transcript(smallest)
    assert "BROKER" in transcript(smallest)
