"""Corners of the classic protocol that only time, a retry or a full group shows; a broker says how they are."""

from collections.abc import Sequence

import pytest

from tests.oracle.conftest import Judge
from tests.oracle.conversation import conversation
from tests.oracle.lockstep import Played
from tests.oracle.script import Script, Send, Wait, member, text
from tests.oracle.stories import (
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

DEADLINE = Wait(None)
DELAY_MS = 410
SHORT = {"session_ms": 1_570, "rebalance_ms": 870}
PATIENT = {"session_ms": 5_000, "rebalance_ms": 870}
OTHERS_LEAVE = leave(0, *({"memberId": member(actor), "groupInstanceId": None} for actor in (0, 1)))

QUIRKS: dict[str, Sequence[Step]] = {
    "an extension that was not used is used by the next first rebalance": [
        join(0, instance="a", rebalance_ms=DELAY_MS),
        join(1, instance="b", rebalance_ms=DELAY_MS),
        DEADLINE,
        OTHERS_LEAVE,
        join(2, instance="c", rebalance_ms=2_000),
        DEADLINE,
        DEADLINE,
    ],
    "the initial delay grows as members come, up to the rebalance timeout": [
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
    "a join that is sent again leaves the first one without an answer": [
        *join_new(0),
        *join_new(1),
        join(1),
        join(1),
        INITIAL_DELAY_OVER,
        describe(0),
    ],
    "a sync that is sent again leaves the first one without an answer": [
        *two_joined(),
        sync(1),
        sync(1),
        sync(0),
        describe(0),
    ],
    "who leaves with a parked sync gets no answer to it": [*two_joined(), sync(1), leave(1), describe(0)],
    "who leaves with a parked join is told so": [*join_new(0), *join_new(1), leave(1), INITIAL_DELAY_OVER],
    "an unused id that expires ends the initial delay": [
        join(2, session_ms=600),
        Wait(330),
        join(0, instance="a"),
        DEADLINE,
        describe(0),
    ],
    "an unused id that is given back does not end the initial delay": [
        join(2),
        join(0, instance="a"),
        leave(2),
        describe(0),
        DEADLINE,
    ],
    "an unused id holds up a rebalance until it expires": [
        *stable(rebalance_ms=3_000, session_ms=20_000),
        join(2, session_ms=900),
        join(0, instance=LEADER_INSTANCE),
        join(1),
        describe(0),
        DEADLINE,
    ],
    "a static member that came back before it had synced is missed by the sync timer": [
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
    "members that do not sync are removed by the sync timer": [
        *two_joined(rebalance_ms=1_500, session_ms=20_000),
        sync(0),
        DEADLINE,
        heartbeat(0),
        heartbeat(1),
    ],
    "nobody syncs": [*two_joined(rebalance_ms=1_500, session_ms=20_000), DEADLINE, describe(0), heartbeat(0)],
    "the leader does not sync": [
        *two_joined(rebalance_ms=1_500, session_ms=20_000),
        sync(1),
        DEADLINE,
        heartbeat(0),
        heartbeat(1),
    ],
    "heartbeats do not put off the sync timer": [
        *two_joined(rebalance_ms=1_900, session_ms=20_000),
        sync(0),
        heartbeat(1),
        Wait(400),
        heartbeat(1),
        DEADLINE,
        heartbeat(1),
    ],
    "who waits for the leader's sync is excused from its session": [
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
    "who waits for the others' join is excused from its session": [
        *stable(session_ms=20_000, rebalance_ms=3_000),
        join(1, session_ms=700, rebalance_ms=3_000, names=("range", "sticky")),
        Wait(1_000),
        describe(1),
        join(0, instance=LEADER_INSTANCE),
    ],
    "a new session timeout counts from the next generation": [
        *stable(session_ms=20_000, rebalance_ms=20_000),
        join(1, session_ms=600, rebalance_ms=20_000, names=("range", "sticky")),
        join(0, instance=LEADER_INSTANCE, session_ms=20_000),
        sync(1),
        sync(0),
        DEADLINE,
        heartbeat(1),
    ],
    "an answer from the generation leaves the session timeout alone": [
        *stable(session_ms=20_000, rebalance_ms=20_000),
        join(1, session_ms=600, rebalance_ms=600),
        Wait(900),
        heartbeat(1),
    ],
    "an absent static member is evicted by the sync timer, however long its session": [
        *stable(session_ms=20_000, rebalance_ms=1_300),
        join(1, names=("range", "sticky"), session_ms=20_000, rebalance_ms=1_300),
        DEADLINE,
        sync(1),
        DEADLINE,
        heartbeat(1),
        heartbeat(0, instance=LEADER_INSTANCE),
    ],
    "only absent static members: the join timer goes round until their sessions end": [
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
    "a group of which all fall silent": [*stable(**SHORT), DEADLINE, DEADLINE, DEADLINE, describe(0)],
    "a commit keeps the session alive": [
        *stable(session_ms=1_200, rebalance_ms=20_000),
        Wait(700),
        commit(1),
        Wait(800),
        heartbeat(1),
        heartbeat(0, instance=LEADER_INSTANCE),
    ],
    "a sync in a stable group does not keep the session alive": [
        *stable(session_ms=1_200, rebalance_ms=20_000),
        Wait(700),
        sync(1),
        Wait(800),
        heartbeat(1),
    ],
    "members leave one after the other while a rebalance is on": [
        *stable(),
        *join_new(3),
        leave(1),
        heartbeat(0),
        leave(0),
        describe(3),
        leave(3),
    ],
    "a static leader that comes back goes on leading": [
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
    "a static leader that comes back with an old version is shown the old leader": [
        *stable(),
        join(3, member_id="", instance=LEADER_INSTANCE, version=6),
        join(2, member_id="", instance=LEADER_INSTANCE, version=8),
    ],
    "a static member comes back while its join is parked": [
        join(0, instance="a"),
        join(1, member_id="", instance="a"),
        INITIAL_DELAY_OVER,
        sync(1, instance="a"),
    ],
    "a static member comes back while its sync is parked": [
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
    "a handed-out id without members left": [
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

KEPT_OUT: dict[str, Sequence[Step]] = {
    "a full group has no room": [*stable(), *join_new(2), join(3, member_id="", instance="c", version=9)],
    "a full group that rebalances keeps out who comes last": [
        *stable(),
        join(2),
        join(0, instance=LEADER_INSTANCE),
        join(2),
        join(1),
        describe(0),
        heartbeat(1),
    ],
    "ids are handed out beyond the group's size": [
        join(0),
        join(1),
        join(2),
        join(0),
        join(1),
        join(2),
        INITIAL_DELAY_OVER,
        join(2),
    ],
    "an Empty group lets everybody begin": [
        *in_state("Empty"),
        join(2),
        *join_new(0),
        *join_new(1),
        INITIAL_DELAY_OVER,
    ],
    "a static member that comes back has its place": [
        *stable(),
        join(3, member_id="", instance=LEADER_INSTANCE),
        sync(3, instance=LEADER_INSTANCE),
    ],
}
FULL = {f"in a small group, {state}": [*in_state(state), join(3, member_id="", instance="x")] for state in STATES}


def named(quirks: dict[str, Sequence[Step]]) -> list[Script]:
    return [Script(name, list(steps)) for name, steps in quirks.items()]


@pytest.fixture(scope="module")
def quirks(judged: Judge) -> dict[str, Played]:
    return dict(zip(QUIRKS, judged(named(QUIRKS)).runs, strict=True))


@pytest.mark.parametrize("name", QUIRKS)
def test_a_quirk_is_the_brokers(name: str, quirks: dict[str, Played]) -> None:
    agree(quirks[name])


@pytest.fixture(scope="module")
def small_groups(judged_in_small_groups: Judge) -> dict[str, Played]:
    scripts = {**KEPT_OUT, **FULL}
    return dict(zip(scripts, judged_in_small_groups(named(scripts)).runs, strict=True))


@pytest.mark.parametrize("name", [*KEPT_OUT, *FULL])
def test_a_small_group_is_as_the_brokers(name: str, small_groups: dict[str, Played]) -> None:
    agree(small_groups[name])


def agree(played: Played) -> None:
    assert played.difference is None, conversation(played)
    assert played.doubt is None, conversation(played)


def test_a_subscription_that_promises_too_many_topics_harms_the_brokers_group_only(judged: Judge) -> None:
    """A deviation: the broker answers UNKNOWN_SERVER_ERROR in the middle of completing the join, and is stuck."""
    garbage = Script("garbage", [*join_new(0, metadata=text("no subscription")), INITIAL_DELAY_OVER])
    (played,) = judged([garbage]).differences
    last = played.exchanges[-1]
    parked = next(number for number, step in enumerate(garbage.steps) if isinstance(step, Send) and number > 0)
    assert last.ours[parked]["errorCode"] == 0
    assert parked not in last.theirs
