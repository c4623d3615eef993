"""The response to each request in each state of a group, from a real broker and from our logic.

The expected responses are in ``tests/logic/handlers/test_matrix.py``; these tests check that they are Kafka's.
"""

from collections.abc import Sequence

import pytest

from tests.oracle.conftest import RunScripts
from tests.oracle.scripts.script import Json, Script, Send, member
from tests.oracle.scripts.steps import (
    ANONYMOUS,
    AS_MEMBER_1,
    LEADER_INSTANCE,
    STATES,
    Step,
    commit,
    commit_in_transaction,
    delete,
    delete_offsets,
    describe,
    end_transaction,
    fetch,
    heartbeat,
    in_state,
    join,
    leave,
    offsets,
    partitions_to_fetch,
    sync,
)
from tests.oracle.scripts.transcript import transcript
from tests.oracle.sides.lockstep import ScriptRun

CHANGED = ("range", "sticky")
WRONG_GENERATION: dict[str, Json] = {"generationId": 7}


def of(member_id: Json, instance: str | None = None) -> dict[str, Json]:
    """An entry of LeaveGroup."""
    return {"memberId": member_id, "groupInstanceId": instance}


REQUESTS: dict[str, Send | Sequence[Step]] = {
    **{f"join without id, dynamic, v{v}": join(3, member_id="", version=v) for v in range(2, 10)},
    "join without id, new instance": join(3, member_id="", instance="new"),
    **{f"join without id, known instance, v{v}": join(3, member_id="", instance="i0", version=v) for v in range(5, 10)},
    "join without id, known instance, changed": join(3, member_id="", instance="i0", names=CHANGED),
    "join without id, known instance, other vote": join(3, member_id="", instance="i0", names=("sticky",)),
    "join, pending id": join(2),
    "join, pending id, with instance": join(2, instance="new"),
    "join, leader, same": join(0, instance="i0"),
    "join, leader, same, without instance": join(0),
    "join, follower, same": join(1),
    "join, leader, changed": join(0, instance="i0", names=CHANGED),
    "join, follower, changed": join(1, names=CHANGED),
    "join, follower, other order": [join(1, names=CHANGED), join(1, names=CHANGED[::-1])],
    "join, unknown id": join(3, member_id="made-up"),
    "join, follower, unknown instance": join(1, instance="unknown"),
    "join, follower, other's instance": join(1, instance=LEADER_INSTANCE),
    "join, unknown id, known instance": join(3, member_id="made-up", instance=LEADER_INSTANCE),
    "join, other type": join(3, member_id="", protocol_type="connect"),
    "join, no type": join(3, member_id="", protocol_type=""),
    "join, other protocols": join(3, member_id="", names=("other",)),
    "join, no protocols": join(3, member_id="", names=()),
    "join, follower, other type": join(1, protocol_type="connect"),
    "join, follower, no protocols": join(1, names=()),
    "join, short session": join(1, session_ms=10),
    "join, long session": join(1, session_ms=60_001),
    "join, longest session": join(3, member_id="", session_ms=60_000),
    "join, shortest session": join(3, member_id="", session_ms=500),
    "join, no group id": join(3, member_id="made-up", group_id=""),
    **{f"sync, follower, v{version}": sync(1, version=version) for version in range(6)},
    "sync, leader": sync(0, instance=LEADER_INSTANCE),
    "sync, leader, no assignments": sync(0, instance=LEADER_INSTANCE, assignments=[]),
    "sync, leader, twice the same member": sync(
        0,
        assignments=[{"memberId": member(1), "assignment": "AA=="}, {"memberId": member(1), "assignment": "AQ=="}],
    ),
    "sync, follower, wrong generation": sync(1, **WRONG_GENERATION),
    "sync, follower, wrong type": sync(1, protocolType="connect"),
    "sync, follower, wrong protocol": sync(1, protocolName="other"),
    "sync, follower, no type": sync(1, protocolType=None),
    "sync, follower, no protocol": sync(1, protocolName=None),
    "sync, follower, wrong generation and protocol": sync(1, generationId=7, protocolName="other"),
    "sync, pending id": sync(2, protocolName="range"),
    "sync, unknown id": sync(1, memberId="made-up"),
    "sync, unknown id, known instance": sync(1, memberId="made-up", instance=LEADER_INSTANCE),
    "sync, no group id": sync(1, groupId=""),
    **{f"heartbeat, v{version}": heartbeat(1, version=version) for version in range(5)},
    "heartbeat, static": heartbeat(0, instance=LEADER_INSTANCE),
    "heartbeat, wrong generation": heartbeat(1, **WRONG_GENERATION),
    "heartbeat, unknown id": heartbeat(1, memberId="made-up"),
    "heartbeat, pending id": heartbeat(2),
    "heartbeat, other's instance": heartbeat(1, instance=LEADER_INSTANCE),
    "heartbeat, unknown instance": heartbeat(1, instance="unknown"),
    "heartbeat, no group id": heartbeat(1, groupId=""),
    **{f"leave, v{version}": leave(1, version=version) for version in range(6)},
    "leave, pending id": leave(2),
    "leave, pending id, v2": leave(2, version=2),
    "leave, by instance": leave(3, of("", LEADER_INSTANCE)),
    "leave, by unknown instance": leave(3, of("", "unknown")),
    "leave, by nothing": leave(3, of("")),
    "leave, unknown id, v2": leave(3, version=2),
    "leave, unknown id": leave(3, of("made-up")),
    "leave, other's instance": leave(1, of(member(1), LEADER_INSTANCE)),
    "leave, no members": Send(1, "LeaveGroup", 5, {"groupId": {"ref": "group"}, "members": []}),
    "leave, all": leave(1, of(member(0), LEADER_INSTANCE), of(member(1)), of(member(2)), of(member(1)), of("made-up")),
    "leave, no group id": Send(1, "LeaveGroup", 5, {"groupId": "", "members": [of("made-up")]}),
    "leave, no group id, v2": Send(1, "LeaveGroup", 2, {"groupId": "", "memberId": "made-up"}),
    **{f"commit, member, v{version}": commit(1, version=version) for version in range(2, 10)},
    "commit, anonymous": [commit(3, **ANONYMOUS), fetch(3)],
    "commit, anonymous, v2, with retention": [commit(3, version=2, **ANONYMOUS, retentionTimeMs=100_000), fetch(3)],
    "commit, unknown id without generation": commit(3, generationIdOrMemberEpoch=-1, memberId="made-up"),
    "commit, instance without generation": commit(3, **ANONYMOUS, groupInstanceId="unknown"),
    "commit, member without generation": commit(1, generationIdOrMemberEpoch=-1),
    "commit, member, wrong generation": commit(1, generationIdOrMemberEpoch=7),
    "commit, member, other's instance": commit(1, groupInstanceId=LEADER_INSTANCE),
    "commit, pending id": commit(2),
    "commit, generation without id": commit(3, generationIdOrMemberEpoch=1, memberId=""),
    "commit, long metadata": [
        commit(1, topics=[*offsets(0, metadata="x" * 65), *offsets(1, topic="oracle-b", metadata="x" * 64)]),
        fetch(1),
    ],
    "commit, long metadata in UTF-16": [commit(1, topics=offsets(0, metadata="\U0001f600" * 33)), fetch(1)],
    "commit, no metadata, negative offset": [commit(1, topics=offsets(3, metadata=None, offset=-5)), fetch(1)],
    "commit, nothing": commit(1, topics=[]),
    "commit, no partitions": commit(1, topics=[{"name": "oracle-a", "partitions": []}]),
    **{f"transactional commit, anonymous, v{v}": commit_in_transaction(3, version=v) for v in range(6)},
    "transactional commit, member": commit_in_transaction(1, **AS_MEMBER_1),
    "transactional commit, wrong generation": commit_in_transaction(1, **{**AS_MEMBER_1, "generationId": 7}),
    "transactional commit, unknown id": commit_in_transaction(1, generationId=1, memberId="made-up"),
    "transactional commit, unknown id without generation": commit_in_transaction(1, memberId="made-up"),
    "transactional commit, other's instance": commit_in_transaction(1, **AS_MEMBER_1, groupInstanceId=LEADER_INSTANCE),
    "transactional commit, generation without id": commit_in_transaction(1, generationId=1),
    "transactional commit, long metadata": commit_in_transaction(3, topics=offsets(0, metadata="x" * 65)),
    "transactional commit, no group id": commit_in_transaction(3, groupId=""),
    "transaction commits": [
        commit_in_transaction(3),
        fetch(3, topics=partitions_to_fetch(0, 1), stable=True),
        fetch(3, topics=partitions_to_fetch(0, 1)),
        fetch(3, stable=True),
        fetch(3),
        end_transaction(3),
        fetch(3, topics=partitions_to_fetch(0, 1), stable=True),
        fetch(3, stable=True),
    ],
    "transaction aborts": [
        commit_in_transaction(3),
        end_transaction(3, commits=False),
        fetch(3, topics=partitions_to_fetch(0, 1), stable=True),
    ],
    "unknown transaction commits": [end_transaction(3), fetch(3)],
    **{f"fetch, v{version}": fetch(3, version=version, topics=partitions_to_fetch(0, 1)) for version in range(1, 10)},
    **{f"fetch all, v{version}": fetch(3, version=version) for version in range(2, 10)},
    "fetch, nothing": fetch(3, topics=[]),
    "fetch, unknown topic": fetch(3, topics=partitions_to_fetch(0, topic="unknown")),
    **{f"describe, v{version}": describe(3, version=version) for version in range(7)},
    "delete offsets": [delete_offsets(3, 0, 1), fetch(3)],
    "delete offsets, not subscribed": [
        commit(1, topics=offsets(0, topic="oracle-b")),
        delete_offsets(3, 0, topic="oracle-b"),
        fetch(3),
    ],
    "delete pending offsets": [
        commit_in_transaction(3, topics=offsets(1, topic="oracle-b")),
        delete_offsets(3, 1, topic="oracle-b"),
        end_transaction(3),
        fetch(3),
    ],
    **{f"delete, v{version}": [delete(3, version=version), fetch(3), heartbeat(1)] for version in range(3)},
    "delete with an open transaction": [commit_in_transaction(3), delete(3), end_transaction(3), fetch(3)],
}
OTHER_TYPE_REQUESTS = ("delete offsets", "join, follower, same", "describe, v5", "sync, leader", "delete, v2")


def scripts() -> dict[str, Script]:
    """Return a script for each cell of the matrix."""
    scripts_by_name = {}
    for state in STATES:
        for name, requests in REQUESTS.items():
            steps = [requests] if isinstance(requests, Send) else list(requests)
            cell = f"{name}-{state}"
            scripts_by_name[cell] = Script(cell, [*in_state(state), *steps], joins_together=True)
        for name in OTHER_TYPE_REQUESTS:
            steps = list(in_state(state, protocol_type="connect", metadata={"ref": "bytes", "text": "x"}))
            scripts_by_name[f"{name}-{state}, other type"] = Script(
                f"{name}-{state}, other type", [*steps, *_of_other_type(REQUESTS[name])], joins_together=True
            )
    return scripts_by_name


def _of_other_type(requests: Send | Sequence[Step]) -> list[Step]:
    steps = [requests] if isinstance(requests, Send) else list(requests)
    changed: list[Step] = []
    for step in steps:
        if isinstance(step, Send) and "protocolType" in step.body:
            step = Send(step.actor, step.api, step.version, {**step.body, "protocolType": "connect"})
        changed.append(step)
    return changed


SCRIPTS = scripts()


@pytest.fixture(scope="module")
def runs(run_scripts: RunScripts) -> dict[str, ScriptRun]:
    """The runs of all cells, which run concurrently."""
    return dict(zip(SCRIPTS, run_scripts(list(SCRIPTS.values())).runs, strict=True))


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_broker_responds_equally(name: str, runs: dict[str, ScriptRun]) -> None:
    run = runs[name]
    assert run.difference is None, transcript(run)
    assert run.inconclusive is None, transcript(run)


@pytest.mark.parametrize("state", STATES)
def test_the_brokers_group_was_in_the_state_of_the_column(state: str, runs: dict[str, ScriptRun]) -> None:
    """The heartbeat of an unknown member changes nothing: the group is then still in the state of the column."""
    (heartbeat_of_unknown_member,) = runs[f"heartbeat, unknown id-{state}"].exchanges[-1:]
    (group,) = heartbeat_of_unknown_member.their_group["groups"]
    if state == "Empty":
        # Its last join waits for the pending member id; a timer of 0 ms completes it shortly afterwards.
        assert group["members"] == []
        assert group["groupState"] in ("PreparingRebalance", state)
        return
    assert group["groupState"] == ("Dead" if state == "absent" else state)


def test_joins_that_arrive_too_late_for_one_rebalance_prove_nothing(run_scripts: RunScripts) -> None:
    """Each comparison while a join is parked takes 15 ms at least: the delay is over before the second join is sent."""
    joins: list[Step] = [join(0, instance=LEADER_INSTANCE), *[describe(1)] * 40, join(1, instance="late")]
    result = run_scripts([Script("late", joins, joins_together=True), Script("late by intent", joins)])
    assert [run.script.name for run in result.inconclusive] == ["late"]
