"""Random scripts, the same ones each time, against a real broker; ``make oracle`` plays as many as are asked for."""

import asyncio
from dataclasses import replace

import pytest

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.handlers import APIS, join_group
from coordinator_logic.messages import JoinGroupRequest
from coordinator_logic.turn import Turn
from streaming.broker import EmbeddedBroker
from tests.oracle.campaign import Campaign, Tally
from tests.oracle.conftest import Judge
from tests.oracle.conversation import conversation
from tests.oracle.generate import random_scripts
from tests.oracle.judge import CONFIG
from tests.oracle.lockstep import Played
from tests.oracle.script import Send, read
from tests.oracle.shrink import shrink

SEED = 4
SCRIPTS = 100
SCRIPTS_IN_SMALL_GROUPS = 40
SCRIPTS_AGAINST_A_FAULT = 24
REQUESTS_AGAINST_A_FAULT = 14
REQUESTS = 30


def check(tally: Tally) -> None:
    """No difference, and nothing that could not be told. What was seen once and not again is a stall's doing."""
    assert not tally.differences, "\n\n".join(map(conversation, tally.differences))
    assert not tally.undecided, "\n\n".join(map(conversation, tally.undecided))
    assert len(tally.not_seen_again) <= len(tally.runs) // 20, "\n\n".join(map(conversation, tally.not_seen_again))


def test_random_scripts_are_answered_as_by_the_broker(judged: Judge) -> None:
    tally = judged(random_scripts(SCRIPTS, seed_number=SEED, requests=REQUESTS))
    check(tally)
    assert set(tally.states) >= {"Empty", "PreparingRebalance", "CompletingRebalance", "Stable"}
    reached = {answer.split()[0] for answer in tally.answers}
    assert reached == {*APIS} - {"FindCoordinator", "TopicsDeleted"}, "what no script asks for, nobody judges"


def test_random_scripts_in_small_groups_are_answered_as_by_the_broker(judged_in_small_groups: Judge) -> None:
    tally = judged_in_small_groups(random_scripts(SCRIPTS_IN_SMALL_GROUPS, seed_number=SEED + 1, requests=REQUESTS))
    check(tally)
    assert tally.answers[f"JoinGroup {Error.GROUP_MAX_SIZE_REACHED.value}"]


def test_a_seed_gives_the_same_scripts_and_their_text_gives_them_back() -> None:
    scripts = random_scripts(5, seed_number=SEED, requests=REQUESTS)
    assert random_scripts(5, seed_number=SEED, requests=REQUESTS) == scripts
    assert random_scripts(3, seed_number=SEED + 1, requests=REQUESTS) != scripts[:3]
    assert [read(script.text()) for script in scripts] == scripts


def join_forgets_the_id_that_it_hands_out(turn: Turn, request: Request, body: JoinGroupRequest) -> None:
    """The fault: nobody waits for a handed-out id, and who uses it is not known."""
    join_group.handle(turn, request, body)
    if turn.output.responses and turn.output.responses[-1].error_code == Error.MEMBER_ID_REQUIRED:
        turn.group.pending_joins.pop()


def test_a_fault_of_ours_is_found_and_its_script_made_small(
    judging_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    faulty = replace(APIS["JoinGroup"], handle=join_forgets_the_id_that_it_hands_out)
    scripts = random_scripts(SCRIPTS_AGAINST_A_FAULT, seed_number=SEED, requests=REQUESTS_AGAINST_A_FAULT)
    monkeypatch.setitem(APIS, "JoinGroup", faulty)

    async def find() -> Played:
        campaign = Campaign(judging_broker.bootstrap_servers, CONFIG)
        try:
            tally = await campaign.judge(scripts)
            assert tally.differences
            return await shrink(min(tally.differences, key=lambda played: played.requests), campaign)
        finally:
            campaign.close()

    smallest = asyncio.run(find())
    sent = [step for step in smallest.script.steps if isinstance(step, Send)]
    assert len(sent) <= 10, conversation(smallest)
    assert any(step.api == "JoinGroup" for step in sent), conversation(smallest)
    assert "BROKER" in conversation(smallest)
