"""The answer to each request in each state of the group, one cell a test.

A cell is ``park`` if there is no answer yet, or the error code; ``+`` means that the request began a rebalance. A
Dead group is one whose snapshot cannot be read. Unlike a deleted group in Kafka's table it refuses OffsetFetch,
OffsetDelete and DeleteGroups, too: a client must not take unreadable offsets for none.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from coordinator_logic import snapshot
from coordinator_logic.errors import Error
from coordinator_logic.group import dead_group
from coordinator_logic.groups.classic.records import StateChanged
from coordinator_logic.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    GroupToFetch,
    LeaveGroupResponse,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from coordinator_logic.states import State
from docs import answers_by_state
from tests.logic.driver import GROUP_ID, Answer, Driven, Joined, listing, reading

COLUMNS = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "absent")
READ = reading("read")
CHANGED = [*READ, *listing("sticky")]


@dataclass
class Scene:
    """A group in one of the states, with a static leader, a dynamic follower and a handed-out id.

    If the group exists, it has an offset of the topic to which the members subscribe and one of another topic.
    """

    driven: Driven
    leader: Joined
    follower: Joined
    pending: str


def scene(column: str, protocol_type: str = "consumer") -> Scene:
    """The scene of a column. In a group without members, leader and follower are former members."""
    driven = Driven()
    if column == "Dead":
        driven.snapshot = snapshot.encode(dead_group(GROUP_ID, ""))
    if column in ("Dead", "absent"):
        return Scene(driven, Joined("a", 1, "instance-0"), Joined("b", 1), "c")
    driven.commit(offsets={("read", 0): 1, ("unread", 0): 2})
    members = driven.join_with_members(2, static=1, protocols=READ, protocol_type=protocol_type)
    leader, follower = members
    if column != "CompletingRebalance":
        driven.sync_all(members)
    pending = driven.join(client="pending", protocols=READ, protocol_type=protocol_type).body.member_id
    if column == "Empty":
        driven.leave(leader, follower)
    elif column == "PreparingRebalance":
        driven.join_new("newcomer", protocols=READ, protocol_type=protocol_type)
    assert driven.state().value == column
    return Scene(driven, leader, follower, pending)


Act = Callable[[Scene], Answer[Any]]


def delete(s: Scene) -> Answer[DeleteGroupsResponse]:
    return s.driven.send("DeleteGroups", DeleteGroupsRequest([GROUP_ID]))


def fetch(s: Scene) -> Answer[OffsetFetchResponse]:
    return s.driven.send("OffsetFetch", OffsetFetchRequest(groups=[GroupToFetch(GROUP_ID)]))


MATRIX: dict[str, tuple[Act, tuple[str | None, ...]]] = {
    "join, no id, dynamic": (lambda s: s.driven.join(), ("79", "79", "79", "79", "15", "79")),
    "join, no id, dynamic, version 3": (
        lambda s: s.driven.join(version=3),
        ("park+", "park", "park+", "park+", "15", "park+"),
    ),
    "join, no id, static, new": (
        lambda s: s.driven.join(instance="new"),
        ("park+", "park", "park+", "park+", "15", "park+"),
    ),
    "join, no id, static, known": (
        lambda s: s.driven.join(instance="instance-0"),
        (None, "park", "park+", "0", "15", None),
    ),
    "join, handed-out id": (
        lambda s: s.driven.join(s.pending),
        ("park+", "park", "park+", "park+", "15", "25"),
    ),
    "join, leader, same": (
        lambda s: s.driven.rejoin(s.leader, protocols=READ),
        ("25", "park", "0", "park+", "15", "25"),
    ),
    "join, follower, same": (
        lambda s: s.driven.rejoin(s.follower, protocols=READ),
        ("25", "park", "0", "0", "15", "25"),
    ),
    "join, leader, changed": (
        lambda s: s.driven.rejoin(s.leader, protocols=CHANGED),
        ("25", "park", "park+", "park+", "15", "25"),
    ),
    "join, follower, changed": (
        lambda s: s.driven.rejoin(s.follower, protocols=CHANGED),
        ("25", "park", "park+", "park+", "15", "25"),
    ),
    "sync, follower": (lambda s: s.driven.sync(s.follower), ("25", "27", "park", "0", "15", "25")),
    "sync, leader": (lambda s: s.driven.sync(s.leader), ("25", "27", "0", "0", "15", "25")),
    "heartbeat": (lambda s: s.driven.heartbeat(s.follower), ("25", "27", "0", "0", "15", "25")),
    "leave": (lambda s: s.driven.leave(s.follower), ("25", "0", "0+", "0+", "15", "25")),
    "leave, handed-out id": (
        lambda s: s.driven.leave(Joined(s.pending)),
        ("0", "0", "0+", "0+", "15", "25"),
    ),
    "commit, member": (lambda s: s.driven.commit(s.follower), ("25", "0", "27", "0", "15", "69")),
    "commit, member, version 8": (
        lambda s: s.driven.commit(s.follower, version=8),
        ("25", "0", "27", "0", "15", "22"),
    ),
    "commit, anonymous": (lambda s: s.driven.commit(), ("0", "25", "25", "25", "15", "0")),
    "commit in a transaction, member": (
        lambda s: s.driven.commit_in_transaction(member=s.follower),
        ("25", "0", "0", "0", "15", "22"),
    ),
    "commit in a transaction, anonymous": (
        lambda s: s.driven.commit_in_transaction(),
        ("0", "0", "0", "0", "15", "0"),
    ),
    "end a transaction": (
        lambda s: s.driven.end_transaction(commit=True),
        ("0", "0", "0", "0", "15", "0"),
    ),
    "fetch": (fetch, ("0", "0", "0", "0", "15", "0")),
    "delete offsets of a topic that is read": (
        lambda s: s.driven.delete_offsets({"read": [0]}),
        ("0", "86", "86", "86", "15", "69"),
    ),
    "delete offsets of a topic that is not read": (
        lambda s: s.driven.delete_offsets({"unread": [0]}),
        ("0", "0", "0", "0", "15", "69"),
    ),
    "topics deleted": (lambda s: s.driven.topics_deleted("read"), ("0", "0", "0", "0", "15", "0")),
    "delete": (delete, ("0", "68", "68", "68", "15", "69")),
    "heartbeat, wrong generation": (
        lambda s: s.driven.heartbeat(replace(s.follower, generation_id=7)),
        ("25", "22", "22", "22", "15", "25"),
    ),
    "sync, wrong generation": (
        lambda s: s.driven.sync(replace(s.follower, generation_id=7)),
        ("25", "22", "22", "22", "15", "25"),
    ),
}
CELLS = [
    pytest.param(act, column, cell, id=f"{row}-{column}")
    for row, (act, cells) in MATRIX.items()
    for column, cell in zip(COLUMNS, cells, strict=True)
    if cell is not None
]


def outcome(answer: Answer[Any]) -> str:
    """The error of the only entry, or of the whole request, or ``park``."""
    if answer.parked:
        return "park"
    body: object = answer.body
    match body:
        case LeaveGroupResponse(members=[entry]) | DeleteGroupsResponse(results=[entry]):
            return str(entry.error_code)
        case OffsetFetchResponse(groups=[group]):
            return str(group.error_code)
        case OffsetDeleteResponse(topics=[topic]):
            return str(topic.partitions[0].error_code)
        case _:
            return str(answer.error.value)


@pytest.mark.parametrize(("act", "column", "cell"), CELLS)
def test_answer_by_state(act: Act, column: str, cell: str) -> None:
    the_scene = scene(column)
    driven = the_scene.driven
    before = len(driven.journal)
    answer = act(the_scene)
    began = any(
        isinstance(record, StateChanged) and record.to_state == State.PREPARING_REBALANCE.value
        for record in driven.records[before:]
    )
    assert outcome(answer) + "+" * began == cell


@pytest.mark.parametrize(("column", "cell"), [*zip(COLUMNS[:4], ("0", "68", "68", "68"), strict=True)])
def test_a_group_of_another_type_must_be_empty_for_its_offsets_to_be_deleted(column: str, cell: str) -> None:
    driven = scene(column, protocol_type="connect").driven
    assert outcome(driven.delete_offsets({"read": [0]})) == cell


DOCUMENTED = {
    ("JoinGroup", answers_by_state.LEADER): "join, leader, same",
    ("JoinGroup", answers_by_state.FOLLOWER): "join, follower, same",
    ("JoinGroup", answers_by_state.NO_MEMBER): "join, no id, dynamic",
    ("JoinGroup", answers_by_state.RETURNING): "join, no id, static, known",
    ("SyncGroup", answers_by_state.LEADER): "sync, leader",
    ("SyncGroup", answers_by_state.FOLLOWER): "sync, follower",
    ("Heartbeat", answers_by_state.FOLLOWER): "heartbeat",
    ("LeaveGroup", answers_by_state.FOLLOWER): "leave",
    ("OffsetCommit", answers_by_state.FOLLOWER): "commit, member",
    ("OffsetCommit", answers_by_state.NO_MEMBER): "commit, anonymous",
    ("TxnOffsetCommit", answers_by_state.FOLLOWER): "commit in a transaction, member",
    ("TxnOffsetCommit", answers_by_state.NO_MEMBER): "commit in a transaction, anonymous",
    ("OffsetFetch", answers_by_state.ANY_CLIENT): "fetch",
    ("DeleteGroups", answers_by_state.ANY_CLIENT): "delete",
    ("OffsetDelete", answers_by_state.ANY_CLIENT): "delete offsets of a topic that is read",
    ("WriteTxnMarkers", answers_by_state.ANY_CLIENT): "end a transaction",
    ("TopicsDeleted", answers_by_state.ANY_CLIENT): "topics deleted",
}
"""The rows of the documents' table that have a counterpart here."""


def test_the_documents_have_the_answers_of_this_table() -> None:
    documented = answers_by_state.answers()
    for key, row in DOCUMENTED.items():
        documented_answers = dict(zip(answers_by_state.COLUMNS, documented[key], strict=True))
        for column, cell in zip(COLUMNS, MATRIX[row][1], strict=True):
            if cell is not None and column != "Dead":
                assert documented_answers[column] == in_words(cell), (key, column)


def in_words(cell: str) -> str:
    """A cell as the documents write it."""
    code = cell.rstrip("+")
    answer = answers_by_state.PARKED if code == "park" else Error(int(code)).name
    return answer + answers_by_state.REBALANCES * cell.endswith("+")
