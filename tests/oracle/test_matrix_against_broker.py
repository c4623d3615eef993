"""What each request is answered in each state of a group, asked of a real broker and of our logic.

The expectations themselves are in ``tests/logic/test_matrix.py``; here a broker says whether they are Kafka's.
"""

from collections.abc import Sequence

import pytest

from tests.oracle.conftest import Judge
from tests.oracle.conversation import conversation
from tests.oracle.lockstep import Played
from tests.oracle.script import Json, Script, Send, member
from tests.oracle.stories import (
    ANONYMOUS,
    AS_MEMBER_1,
    LEADER_INSTANCE,
    STATES,
    Step,
    commit,
    commit_in_transaction,
    delete,
    describe,
    end_transaction,
    fetch,
    forget_offsets,
    heartbeat,
    in_state,
    join,
    leave,
    offsets,
    sync,
    wanted,
)

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
    "join, handed-out id": join(2),
    "join, handed-out id, with instance": join(2, instance="new"),
    "join, leader, same": join(0, instance="i0"),
    "join, leader, same, without instance": join(0),
    "join, follower, same": join(1),
    "join, leader, changed": join(0, instance="i0", names=CHANGED),
    "join, follower, changed": join(1, names=CHANGED),
    "join, follower, other order": [join(1, names=CHANGED), join(1, names=CHANGED[::-1])],
    "join, made-up id": join(3, member_id="made-up"),
    "join, follower, unknown instance": join(1, instance="unknown"),
    "join, follower, other's instance": join(1, instance=LEADER_INSTANCE),
    "join, made-up id, known instance": join(3, member_id="made-up", instance=LEADER_INSTANCE),
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
    "sync, leader, nothing for anybody": sync(0, instance=LEADER_INSTANCE, assignments=[]),
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
    "sync, handed-out id": sync(2, protocolName="range"),
    "sync, made-up id": sync(1, memberId="made-up"),
    "sync, made-up id, known instance": sync(1, memberId="made-up", instance=LEADER_INSTANCE),
    "sync, no group id": sync(1, groupId=""),
    **{f"heartbeat, v{version}": heartbeat(1, version=version) for version in range(5)},
    "heartbeat, static": heartbeat(0, instance=LEADER_INSTANCE),
    "heartbeat, wrong generation": heartbeat(1, **WRONG_GENERATION),
    "heartbeat, made-up id": heartbeat(1, memberId="made-up"),
    "heartbeat, handed-out id": heartbeat(2),
    "heartbeat, other's instance": heartbeat(1, instance=LEADER_INSTANCE),
    "heartbeat, unknown instance": heartbeat(1, instance="unknown"),
    "heartbeat, no group id": heartbeat(1, groupId=""),
    **{f"leave, v{version}": leave(1, version=version) for version in range(6)},
    "leave, handed-out id": leave(2),
    "leave, handed-out id, v2": leave(2, version=2),
    "leave, by instance": leave(3, of("", LEADER_INSTANCE)),
    "leave, by unknown instance": leave(3, of("", "unknown")),
    "leave, by nothing": leave(3, of("")),
    "leave, made-up id, v2": leave(3, version=2),
    "leave, made-up id": leave(3, of("made-up")),
    "leave, other's instance": leave(1, of(member(1), LEADER_INSTANCE)),
    "leave, nobody": Send(1, "LeaveGroup", 5, {"groupId": {"ref": "group"}, "members": []}),
    "leave, all": leave(1, of(member(0), LEADER_INSTANCE), of(member(1)), of(member(2)), of(member(1)), of("made-up")),
    "leave, no group id": Send(1, "LeaveGroup", 5, {"groupId": "", "members": [of("made-up")]}),
    "leave, no group id, v2": Send(1, "LeaveGroup", 2, {"groupId": "", "memberId": "made-up"}),
    **{f"commit, member, v{version}": commit(1, version=version) for version in range(2, 10)},
    "commit, anonymous": [commit(3, **ANONYMOUS), fetch(3)],
    "commit, anonymous, v2, with retention": [commit(3, version=2, **ANONYMOUS, retentionTimeMs=100_000), fetch(3)],
    "commit, made-up id without generation": commit(3, generationIdOrMemberEpoch=-1, memberId="made-up"),
    "commit, instance without generation": commit(3, **ANONYMOUS, groupInstanceId="unknown"),
    "commit, member without generation": commit(1, generationIdOrMemberEpoch=-1),
    "commit, member, wrong generation": commit(1, generationIdOrMemberEpoch=7),
    "commit, member, other's instance": commit(1, groupInstanceId=LEADER_INSTANCE),
    "commit, handed-out id": commit(2),
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
    "transactional commit, made-up id": commit_in_transaction(1, generationId=1, memberId="made-up"),
    "transactional commit, made-up id without generation": commit_in_transaction(1, memberId="made-up"),
    "transactional commit, other's instance": commit_in_transaction(1, **AS_MEMBER_1, groupInstanceId=LEADER_INSTANCE),
    "transactional commit, generation without id": commit_in_transaction(1, generationId=1),
    "transactional commit, long metadata": commit_in_transaction(3, topics=offsets(0, metadata="x" * 65)),
    "transactional commit, no group id": commit_in_transaction(3, groupId=""),
    "transaction commits": [
        commit_in_transaction(3),
        fetch(3, topics=wanted(0, 1), stable=True),
        fetch(3, topics=wanted(0, 1)),
        fetch(3, stable=True),
        fetch(3),
        end_transaction(3),
        fetch(3, topics=wanted(0, 1), stable=True),
        fetch(3, stable=True),
    ],
    "transaction aborts": [
        commit_in_transaction(3),
        end_transaction(3, commits=False),
        fetch(3, topics=wanted(0, 1), stable=True),
    ],
    "unknown transaction commits": [end_transaction(3), fetch(3)],
    **{f"fetch, v{version}": fetch(3, version=version, topics=wanted(0, 1)) for version in range(1, 10)},
    **{f"fetch all, v{version}": fetch(3, version=version) for version in range(2, 10)},
    "fetch, nothing": fetch(3, topics=[]),
    "fetch, unknown topic": fetch(3, topics=wanted(0, topic="unknown")),
    **{f"describe, v{version}": describe(3, version=version) for version in range(7)},
    "forget offsets": [forget_offsets(3, 0, 1), fetch(3)],
    "forget offsets, not subscribed": [
        commit(1, topics=offsets(0, topic="oracle-b")),
        forget_offsets(3, 0, topic="oracle-b"),
        fetch(3),
    ],
    "forget pending offsets": [
        commit_in_transaction(3, topics=offsets(1, topic="oracle-b")),
        forget_offsets(3, 1, topic="oracle-b"),
        end_transaction(3),
        fetch(3),
    ],
    **{f"delete, v{version}": [delete(3, version=version), fetch(3), heartbeat(1)] for version in range(3)},
    "delete with an open transaction": [commit_in_transaction(3), delete(3), end_transaction(3), fetch(3)],
}
OTHER_TYPE_REQUESTS = ("forget offsets", "join, follower, same", "describe, v5", "sync, leader", "delete, v2")


def scripts() -> dict[str, Script]:
    """A script for each cell of the matrix."""
    found = {}
    for state in STATES:
        for name, requests in REQUESTS.items():
            steps = [requests] if isinstance(requests, Send) else list(requests)
            found[f"{name}-{state}"] = Script(f"{name}-{state}", [*in_state(state), *steps])
        for name in OTHER_TYPE_REQUESTS:
            steps = list(in_state(state, protocol_type="connect", metadata={"ref": "bytes", "text": "x"}))
            found[f"{name}-{state}, other type"] = Script(
                f"{name}-{state}, other type", [*steps, *_of_other_type(REQUESTS[name])]
            )
    return found


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
def runs(judged: Judge) -> dict[str, Played]:
    """All cells at once."""
    return dict(zip(SCRIPTS, judged(list(SCRIPTS.values())).runs, strict=True))


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_broker_answers_the_same(name: str, runs: dict[str, Played]) -> None:
    played = runs[name]
    assert played.difference is None, conversation(played)
    assert played.doubt is None, conversation(played)


@pytest.mark.parametrize("state", STATES)
def test_the_broker_was_in_the_state_of_the_column(state: str, runs: dict[str, Played]) -> None:
    """A heartbeat of nobody changes nothing: after it the group is as the cell's request met it."""
    (heartbeat_of_nobody,) = runs[f"heartbeat, made-up id-{state}"].exchanges[-1:]
    (group,) = heartbeat_of_nobody.their_group["groups"]
    if state == "Empty":
        # Its last join, which waits for the member id that was not used, is ended by a timer of 0 ms: a moment later.
        assert group["members"] == []
        assert group["groupState"] in ("PreparingRebalance", state)
        return
    assert group["groupState"] == ("Dead" if state == "absent" else state)
