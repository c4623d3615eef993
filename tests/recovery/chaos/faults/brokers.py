"""Faults of the brokers and of the gateway."""

import time
from random import Random

from tests.recovery.chaos.stage import Stage
from tests.recovery.checker.history import ONLY_BROKER
from tests.support.processes import paused

SECONDS = (1.0, 6.0)
MINUTE_SECONDS = 60.0
"""Longer than the sessions, than the limits of the clients' requests, and than those of the job's start."""

PAST_SESSIONS_SECONDS = (12.0, 20.0)
"""Longer than the sessions, which are of 6 s."""

LATER_SECONDS = 4.0
"""Less than a session, by enough for the heartbeats to be appended."""

PAUSED_SECONDS = (3.0, 11.0)


def stop_broker(stage: Stage, chance: Random) -> str:
    """SIGTERM for a broker, which starts again seconds later."""
    return _away(stage, chance, chance.uniform(*SECONDS), is_killed=False)


def stop_broker_for_a_minute(stage: Stage, chance: Random) -> str:
    """SIGTERM for a broker, which starts again after a minute."""
    return _away(stage, chance, MINUTE_SECONDS, is_killed=False)


def stop_broker_past_sessions(stage: Stage, chance: Random) -> str:
    """SIGTERM for a broker, which is away for longer than a session; half of the clients reach it some seconds later.

    Theirs are the sessions that only the job's new start keeps alive: the others' heartbeats let it check deadlines.
    """
    with stage.cutting_off_half():
        done = _away(stage, chance, chance.uniform(*PAST_SESSIONS_SECONDS), is_killed=False)
        time.sleep(LATER_SECONDS)
    return f"{done}, half of the clients {LATER_SECONDS:g} s longer"


def kill_broker(stage: Stage, chance: Random) -> str:
    """``kill -9`` of a broker, which starts again seconds later. With three of them, not that of the controller."""
    return _away(stage, chance, chance.uniform(*SECONDS), is_killed=True)


def pause_broker(stage: Stage, chance: Random) -> str:
    """SIGSTOP of a broker, and SIGCONT."""
    node, seconds = chance.choice(stage.cluster.nodes), chance.uniform(*PAUSED_SECONDS)
    with paused([node.pid]):
        time.sleep(seconds)
    return f"SIGSTOP of a broker for {seconds:.1f} s"


def kill_gateway(stage: Stage, chance: Random) -> str:
    """``kill -9`` of the gateway, which starts again."""
    assert stage.gateway is not None
    stage.gateway.kill()
    time.sleep(chance.uniform(0, 2))
    stage.start_gateway()
    return "kill -9 of the gateway"


def stop_gateway(stage: Stage, chance: Random) -> str:
    """SIGTERM for the gateway, which starts again."""
    assert stage.gateway is not None
    stage.gateway.stop()
    time.sleep(chance.uniform(0, 2))
    stage.start_gateway()
    return "SIGTERM for the gateway"


def _away(stage: Stage, chance: Random, seconds: float, *, is_killed: bool) -> str:
    nodes = stage.cluster.nodes
    node = chance.choice(nodes[1:] or nodes)
    if is_killed:
        node.kill()
    else:
        node.stop()
    time.sleep(seconds)
    stage.cluster.start(node)
    which = ONLY_BROKER if len(nodes) == 1 else f"one of {len(nodes)} brokers"
    return f"{'kill -9 of' if is_killed else 'SIGTERM for'} {which}, away for {seconds:.1f} s"
