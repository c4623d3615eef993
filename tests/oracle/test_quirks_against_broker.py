"""Corner cases of the classic protocol that depend on time, retries or full groups, compared with a real broker."""

from collections.abc import Sequence

import pytest

from tests.oracle.conftest import RunScripts
from tests.oracle.scripts.script import Script, Send, Wait, member, text
from tests.oracle.scripts.steps import (
    INITIAL_DELAY_OVER,
    LEADER_INSTANCE,
    STATES,
    Step,
    commit,
    describe,
    heartbeat,
    in_state,
    join,
    join_new,
    leave,
    stable,
    sync,
    two_joined,
)
from tests.oracle.scripts.transcript import transcript
from tests.oracle.sides.lockstep import ScriptRun

DEADLINE = Wait(None)
DELAY_MS = 410
SHORT = {"session_ms": 1_570, "rebalance_ms": 870}
OTHERS_LEAVE = leave(0, *({"memberId": member(actor), "groupInstanceId": None} for actor in (0, 1)))

QUIRKS: dict[str, Sequence[Step]] = {
    "an unused extension of the initial delay applies to the next initial rebalance": [
        join(0, instance="a", rebalance_ms=DELAY_MS),
        join(1, instance="b", rebalance_ms=DELAY_MS),
        DEADLINE,
        OTHERS_LEAVE,
        join(2, instance="c", rebalance_ms=2_000),
        DEADLINE,
        DEADLINE,
    ],
    "joining members extend the initial delay up to the rebalance timeout": [
        join(0, instance="a", rebalance_ms=1_310),
        Wait(200),
        join(1, instance="b"),
        DEADLINE,
        Wait(100),
        join(2, instance="c"),
        DEADLINE,
        Wait(100),
        join(3, instance="d"),
        DEADLINE,
        DEADLINE,
    ],
    "the first of two joins gets no response": [
        *join_new(0),
        *join_new(1),
        join(1),
        join(1),
        INITIAL_DELAY_OVER,
        describe(0),
    ],
    "the first of two syncs gets no response": [
        *two_joined(),
        sync(1),
        sync(1),
        sync(0),
        describe(0),
    ],
    "a parked sync of a leaving member gets no response": [*two_joined(), sync(1), leave(1), describe(0)],
    "a parked join of a leaving member gets a response": [*join_new(0), *join_new(1), leave(1), INITIAL_DELAY_OVER],
    "an expiring pending id ends the initial delay": [
        join(2, session_ms=600),
        Wait(330),
        join(0, instance="a"),
        DEADLINE,
        describe(0),
    ],
    "a leaving pending id does not end the initial delay": [
        join(2),
        join(0, instance="a"),
        leave(2),
        describe(0),
        DEADLINE,
    ],
    "a pending id delays a rebalance until it expires": [
        *stable(rebalance_ms=3_000, session_ms=20_000),
        join(2, session_ms=900),
        join(0, instance=LEADER_INSTANCE),
        join(1),
        describe(0),
        DEADLINE,
    ],
    "the sync timer does not expel a static member that rejoined before its sync": [
        *two_joined(rebalance_ms=1_500, session_ms=20_000),
        sync(1),
        join(1),
        join(3, instance="late", rebalance_ms=1_500, session_ms=20_000),
        join(0, instance=LEADER_INSTANCE, rebalance_ms=1_500, session_ms=20_000),
        join(1, rebalance_ms=1_500, session_ms=20_000),
        sync(0),
        sync(1),
        join(2, member_id="", instance="late", rebalance_ms=1_500, session_ms=20_000),
        sync(2, instance="late"),
        heartbeat(1),
        DEADLINE,
        heartbeat(1),
        heartbeat(2, instance="late"),
    ],
    "the sync timer expels members without a sync": [
        *two_joined(rebalance_ms=1_500, session_ms=20_000),
        sync(0),
        DEADLINE,
        heartbeat(0),
        heartbeat(1),
    ],
    "no member syncs": [*two_joined(rebalance_ms=1_500, session_ms=20_000), DEADLINE, describe(0), heartbeat(0)],
    "the leader does not sync": [
        *two_joined(rebalance_ms=1_500, session_ms=20_000),
        sync(1),
        DEADLINE,
        heartbeat(0),
        heartbeat(1),
    ],
    "heartbeats do not extend the sync timer": [
        *two_joined(rebalance_ms=1_900, session_ms=20_000),
        sync(0),
        heartbeat(1),
        Wait(400),
        heartbeat(1),
        DEADLINE,
        heartbeat(1),
    ],
    "a member that waits for the leader's sync is not expelled at its session timeout": [
        join(0, instance=LEADER_INSTANCE, session_ms=20_000),
        *join_new(1, session_ms=700),
        INITIAL_DELAY_OVER,
        sync(1),
        DEADLINE,
        sync(0),
        heartbeat(1),
        DEADLINE,
        heartbeat(1),
    ],
    "a member that waits for the others' joins is not expelled at its session timeout": [
        *stable(session_ms=20_000, rebalance_ms=3_000),
        join(1, session_ms=700, rebalance_ms=3_000, names=("range", "sticky")),
        Wait(1_000),
        describe(1),
        join(0, instance=LEADER_INSTANCE),
    ],
    "a new session timeout applies from the next generation": [
        *stable(session_ms=20_000, rebalance_ms=20_000),
        join(1, session_ms=600, rebalance_ms=20_000, names=("range", "sticky")),
        join(0, instance=LEADER_INSTANCE, session_ms=20_000),
        sync(1),
        sync(0),
        DEADLINE,
        heartbeat(1),
    ],
    "a rejoin without a rebalance does not change the session timeout": [
        *stable(session_ms=20_000, rebalance_ms=20_000),
        join(1, session_ms=600, rebalance_ms=600),
        Wait(900),
        heartbeat(1),
    ],
    "the sync timer expels an absent static member before its session timeout": [
        *stable(session_ms=20_000, rebalance_ms=1_300),
        join(1, names=("range", "sticky"), session_ms=20_000, rebalance_ms=1_300),
        DEADLINE,
        sync(1),
        DEADLINE,
        heartbeat(1),
        heartbeat(0, instance=LEADER_INSTANCE),
    ],
    "only absent static members: the join timer is rearmed with a short rebalance timeout": [
        join(0, instance="a", rebalance_ms=650),
        DEADLINE,
        sync(0),
        *join_new(1, rebalance_ms=650),
        leave(1),
        Wait(1_600),
        join(2, rebalance_ms=650),
        join(3, member_id="", instance="a", rebalance_ms=650),
        Wait(320),
        describe(0),
    ],
    "only absent static members: the join timer is rearmed until their sessions end": [
        join(0, instance="a", session_ms=4_000, rebalance_ms=1_300),
        DEADLINE,
        sync(0),
        *join_new(1, session_ms=20_000, rebalance_ms=1_300),
        leave(1),
        describe(0),
        DEADLINE,
        describe(0),
        DEADLINE,
        describe(0),
        DEADLINE,
        DEADLINE,
    ],
    "no member sends a request": [*stable(**SHORT), DEADLINE, DEADLINE, DEADLINE, describe(0)],
    "a commit renews the session": [
        *stable(session_ms=1_200, rebalance_ms=20_000),
        Wait(700),
        commit(1),
        Wait(800),
        heartbeat(1),
        heartbeat(0, instance=LEADER_INSTANCE),
    ],
    "a sync in a Stable group does not renew the session": [
        *stable(session_ms=1_200, rebalance_ms=20_000),
        Wait(700),
        sync(1),
        Wait(800),
        heartbeat(1),
    ],
    "members leave one after the other during a rebalance": [
        *stable(),
        *join_new(3),
        leave(1),
        heartbeat(0),
        leave(0),
        describe(3),
        leave(3),
    ],
    "a static leader that rejoins remains the leader": [
        *stable(),
        join(3, member_id="", instance=LEADER_INSTANCE),
        sync(3, instance=LEADER_INSTANCE),
        heartbeat(0, instance=LEADER_INSTANCE),
        heartbeat(3, instance=LEADER_INSTANCE),
        join(3, instance=LEADER_INSTANCE),
        join(1),
        sync(1),
        sync(3, instance=LEADER_INSTANCE),
    ],
    "a static leader that rejoins with an old version gets the id of the old leader": [
        *stable(),
        join(3, member_id="", instance=LEADER_INSTANCE, version=6),
        join(2, member_id="", instance=LEADER_INSTANCE, version=8),
    ],
    "a static member rejoins while its join is parked": [
        join(0, instance="a"),
        join(1, member_id="", instance="a"),
        INITIAL_DELAY_OVER,
        sync(1, instance="a"),
    ],
    "a static member rejoins while its sync is parked": [
        *join_new(0),
        join(1, instance="a"),
        INITIAL_DELAY_OVER,
        sync(1, instance="a"),
        join(2, member_id="", instance="a"),
        join(0),
        describe(0),
    ],
    "the vote": [
        join(0, instance="a", names=("range", "sticky", "roundrobin")),
        join(1, instance="b", names=("sticky", "range")),
        join(2, instance="c", names=("roundrobin", "sticky", "range")),
        INITIAL_DELAY_OVER,
    ],
    "a rebalance timeout of 0": [
        join(0, instance="a", rebalance_ms=0, session_ms=20_000),
        DEADLINE,
        describe(0),
        heartbeat(0, instance="a"),
    ],
    "a pending id in a group without members": [
        *join_new(0),
        INITIAL_DELAY_OVER,
        sync(0),
        join(1),
        leave(0),
        describe(0),
        join(1),
        INITIAL_DELAY_OVER,
    ],
}

FULL_GROUPS: dict[str, Sequence[Step]] = {
    "a full group rejects a new member": [*stable(), *join_new(2), join(3, member_id="", instance="c", version=9)],
    "a full group that rebalances rejects the last member to join": [
        *stable(),
        join(2),
        join(0, instance=LEADER_INSTANCE),
        join(2),
        join(1),
        describe(0),
        heartbeat(1),
    ],
    "pending ids can exceed the size of the group": [
        join(0),
        join(1),
        join(2),
        join(0),
        join(1),
        join(2),
        INITIAL_DELAY_OVER,
        join(2),
    ],
    "an Empty group accepts all members to join": [
        *in_state("Empty"),
        join(2),
        *join_new(0),
        *join_new(1),
        INITIAL_DELAY_OVER,
    ],
    "a static member that rejoins keeps its place": [
        *stable(),
        join(3, member_id="", instance=LEADER_INSTANCE),
        sync(3, instance=LEADER_INSTANCE),
    ],
}
NEW_MEMBER_IN_EACH_STATE = {
    f"a new member in a small group, {state}": [*in_state(state), join(3, member_id="", instance="x")]
    for state in STATES
}


def named(quirks: dict[str, Sequence[Step]]) -> list[Script]:
    return [Script(name, list(steps)) for name, steps in quirks.items()]


@pytest.fixture(scope="module")
def quirks(run_scripts: RunScripts) -> dict[str, ScriptRun]:
    return dict(zip(QUIRKS, run_scripts(named(QUIRKS)).runs, strict=True))


@pytest.mark.parametrize("name", QUIRKS)
def test_a_corner_case_agrees_with_the_broker(name: str, quirks: dict[str, ScriptRun]) -> None:
    assert_agreement(quirks[name])


@pytest.fixture(scope="module")
def small_groups(run_in_small_groups: RunScripts) -> dict[str, ScriptRun]:
    scripts = {**FULL_GROUPS, **NEW_MEMBER_IN_EACH_STATE}
    return dict(zip(scripts, run_in_small_groups(named(scripts)).runs, strict=True))


@pytest.mark.parametrize("name", [*FULL_GROUPS, *NEW_MEMBER_IN_EACH_STATE])
def test_a_small_group_agrees_with_the_broker(name: str, small_groups: dict[str, ScriptRun]) -> None:
    assert_agreement(small_groups[name])


def assert_agreement(run: ScriptRun) -> None:
    assert run.difference is None, transcript(run)
    assert run.inconclusive is None, transcript(run)


def test_a_malformed_subscription_blocks_only_the_brokers_group(run_scripts: RunScripts) -> None:
    """A deviation: the broker fails with UNKNOWN_SERVER_ERROR while it completes the join, and the group is blocked."""
    malformed = Script("malformed", [*join_new(0, metadata=text("no subscription")), INITIAL_DELAY_OVER])
    (run,) = run_scripts([malformed]).differences
    last = run.exchanges[-1]
    parked = next(number for number, step in enumerate(malformed.steps) if isinstance(step, Send) and number > 0)
    assert last.ours[parked]["errorCode"] == 0
    assert parked not in last.theirs
