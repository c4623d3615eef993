"""Turn the moves of actors into the requests of a script.

The generator runs the requests against our logic with a simulated clock, and so knows what a correct client would send
next. Most moves send exactly this; some send an unexpected or invalid request.
"""

from collections.abc import Callable
from typing import Any

from coordinator_logic.errors import Error
from coordinator_logic.messages import HeartbeatResponse, JoinGroupResponse, SyncGroupResponse
from tests.oracle.reference_broker import CONFIG, TOPICS, VERSIONS
from tests.oracle.scripts.moves import ACTORS, PREFERENCES, Actor, Move
from tests.oracle.scripts.script import (
    GROUP,
    Json,
    References,
    Send,
    Wait,
    assignments,
    client_id,
    generation,
    member,
    producer,
    protocol,
    subscription,
    text,
    transaction,
)
from tests.oracle.sides.logic_side import GroupState, LogicSide

GROUP_ID = "generated"
REQUEST_MS = 30
NEAR_MS = 100
"""The approximate time of one request when a script runs, and the minimum distance of a request from deadlines."""
ACTIONS_OF_STABLE_MEMBERS = (*("heartbeat",) * 4, "commit", "commit", "transaction", "fetch")
"""The next actions of a member with an assignment."""
TOO_LONG_METADATA = "long" * 20


class ScriptGenerator:
    """Generates the steps of one script."""

    def __init__(self, actors: list[Actor]) -> None:
        self._actors = actors
        self._ours = LogicSide(GROUP_ID, CONFIG)
        self._state = GroupState()
        self._now = 1_000_000
        self._references = References(GROUP_ID, {0: 1_000, 1: 1_001})
        self._steps: list[Send | Wait] = []
        self._next_actions = ["join"] * len(actors)
        self._without_id: set[int] = set()
        self._awaiting_response: dict[int, int] = {}

    def steps_for(self, moves: list[Move]) -> list[Send | Wait]:
        """Return the steps for the moves: a request for each, and waits."""
        for move in moves:
            if move.pause == "deadline":
                self._wait(None)
            elif isinstance(move.pause, int) and move.pause:
                self._wait(move.pause)
            self._send_for(move)
        self._wait(None)
        self._send(0, "OffsetFetch", 7, {"groupId": GROUP, "topics": None, "requireStable": False})
        return self._steps

    def _send_for(self, move: Move) -> None:
        first = move.actor % len(self._actors)
        actor = self._actors[first]
        action = move.action
        if action == "next":
            if set(self._next_actions) == {"wait"}:
                self._wait(None)
            candidates = [
                a for a in self._actors[first:] + self._actors[:first] if self._next_actions[a.number] != "wait"
            ]
            actor = candidates[0] if candidates else actor
            action = self._next_actions[actor.number] if candidates else "describe"
            if action == "heartbeat":
                action = ACTIONS_OF_STABLE_MEMBERS[move.variation % len(ACTIONS_OF_STABLE_MEMBERS)]
        plain = move.variation % 8 != 7 if move.action == "next" else move.variation % 2 == 0
        SENDERS[action](self, actor, 0 if plain else move.variation // 8, move.variation)

    # ---- time ----------------------------------------------------------------------------------------------

    def _wait(self, ms: int | None) -> None:
        self._steps.append(Wait(ms))
        wake_at = self._state.wake_at
        if ms is not None:
            self._advance(self._now + ms)
        elif wake_at is not None and wake_at < self._now + 4_000:
            self._advance(wake_at + 1)

    def _advance(self, now: int) -> None:
        self._now = max(now, self._now)
        self._apply_outcome(self._ours.advance(self._state, [], self._now))

    def _apply_outcome(self, outcome: Any) -> None:
        self._state = outcome.after
        for number, answer in outcome.answers.items():
            actor = self._awaiting_response.pop(number)
            self._references.learn(actor, answer)
            self._next_actions[actor] = _next_action(self._next_actions[actor], answer)
            error = getattr(answer, "error_code", Error.NONE)
            if error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
                self._without_id.add(actor)
            elif isinstance(answer, JoinGroupResponse):
                self._without_id.discard(actor)

    # ---- requests ------------------------------------------------------------------------------------------

    def _send(self, actor: int, api: str, version: int, body: dict[str, Json]) -> None:
        while (wake_at := self._state.wake_at) is not None and wake_at < self._now + NEAR_MS:
            self._advance(wake_at + NEAR_MS)
        step = Send(actor, api, version, body)
        number = len(self._steps)
        self._steps.append(step)
        self._awaiting_response[number] = actor
        if api in ("JoinGroup", "SyncGroup"):
            self._next_actions[actor] = "wait"
        self._now += REQUEST_MS
        request = self._ours.request(number, api, version, client_id(actor), self._references.resolve(step), self._now)
        self._apply_outcome(self._ours.advance(self._state, [request], self._now))

    def _version(self, api: str, choice: int, *, first: int = 0) -> int:
        """Return the newest version in a third of the cases, else one that depends on ``choice``."""
        supported = [version for version in VERSIONS[api] if version >= first]
        return supported[-1] if choice % 3 == 0 else supported[choice % len(supported)]

    def _member_id(self, actor: Actor, variation: int) -> Json:
        """Return a reference to a member id: mostly the actor's latest."""
        match variation % 8:
            case 1:
                return member((actor.number + 1) % ACTORS)
            case 2:
                return member(actor.number, back=1)
            case 3:
                return "made-up"
        return member(actor.number)

    def _instance(self, actor: Actor, variation: int) -> str | None:
        return {5: "s1", 6: "unknown-instance", 7: None}.get(variation % 16, actor.instance)

    def _generation(self, actor: Actor, variation: int) -> Json:
        return {1: generation(actor.number, -1), 2: generation(actor.number, 1), 3: -1}.get(
            variation % 12, generation(actor.number)
        )

    def join(self, actor: Actor, variation: int, choice: int) -> None:
        first = 5 if actor.instance else 0
        version = self._version("JoinGroup", choice, first=first if variation % 16 != 9 else 0)
        names = PREFERENCES[variation // 16 % len(PREFERENCES)] if variation % 5 == 1 else actor.preference
        topics = TOPICS[:1] if variation % 7 == 1 else actor.topics
        self._send(
            actor.number,
            "JoinGroup",
            version,
            {
                "groupId": GROUP,
                "sessionTimeoutMs": {11: 10, 12: 10_000_000}.get(variation % 64, actor.session_ms),
                "rebalanceTimeoutMs": actor.rebalance_ms,
                "memberId": ""
                if variation % 8 == 4 or actor.number in self._without_id
                else self._member_id(actor, variation),
                "groupInstanceId": self._instance(actor, variation // 8),
                "protocolType": {21: "connect", 22: ""}.get(variation % 32, "consumer"),
                "protocols": []
                if variation % 64 == 23
                else [
                    {"name": name, "metadata": text("x") if variation % 32 == 24 else subscription(*topics)}
                    for name in names
                ],
                "reason": "because" if choice % 4 == 0 else None,
            },
        )

    def sync(self, actor: Actor, variation: int, choice: int) -> None:
        leads = self._references.actor_state(actor.number).leads
        self._send(
            actor.number,
            "SyncGroup",
            self._version("SyncGroup", choice, first=3 if actor.instance else 0),
            {
                "groupId": GROUP,
                "generationId": self._generation(actor, variation),
                "memberId": self._member_id(actor, variation // 4),
                "groupInstanceId": self._instance(actor, variation // 8),
                "protocolType": {9: "connect", 10: None}.get(variation % 32, "consumer"),
                "protocolName": {11: "other", 12: None}.get(variation % 32, protocol(actor.number)),
                "assignments": assignments(actor.number) if leads and variation % 8 != 5 else [],
            },
        )

    def heartbeat(self, actor: Actor, variation: int, choice: int) -> None:
        self._send(
            actor.number,
            "Heartbeat",
            self._version("Heartbeat", choice, first=3 if actor.instance else 0),
            {
                "groupId": GROUP,
                "generationId": self._generation(actor, variation),
                "memberId": self._member_id(actor, variation // 4),
                "groupInstanceId": self._instance(actor, variation // 8),
            },
        )

    def leave(self, actor: Actor, variation: int, choice: int) -> None:
        version = self._version("LeaveGroup", choice)
        leaving: list[Json] = [
            {
                "memberId": self._member_id(actor, variation // 4),
                "groupInstanceId": self._instance(actor, variation // 8),
            }
        ]
        if variation % 4 == 1:
            leaving = [{"memberId": "", "groupInstanceId": "s1"}]
        if variation % 4 == 2:
            leaving.append({"memberId": member((actor.number + 1) % ACTORS), "groupInstanceId": None})
        body: dict[str, Json] = {"groupId": GROUP}
        if version < 3:
            body["memberId"] = leaving[0]["memberId"]
        else:
            body["members"] = leaving
        self._send(actor.number, "LeaveGroup", version, body)

    def commit(self, actor: Actor, variation: int, choice: int) -> None:
        anonymous = variation % 4 == 1
        version = self._version("OffsetCommit", choice, first=7 if actor.instance and not anonymous else 0)
        self._send(
            actor.number,
            "OffsetCommit",
            version,
            {
                "groupId": GROUP,
                "generationIdOrMemberEpoch": -1 if anonymous else self._generation(actor, variation // 4),
                "memberId": "" if anonymous else self._member_id(actor, variation // 8),
                "groupInstanceId": None if anonymous else self._instance(actor, variation // 8),
                "topics": self._offsets(variation),
            },
        )

    def _offsets(self, variation: int) -> list[Json]:
        note = TOO_LONG_METADATA if variation % 16 == 5 else "note"
        first = {
            "partitionIndex": variation % 2,
            "committedOffset": variation % 1_000,
            "committedLeaderEpoch": variation % 3 - 1,
        }
        partitions: list[Json] = [{**first, "committedMetadata": note}]
        if variation % 8 == 3:
            partitions.append({"partitionIndex": 2, "committedOffset": 7, "committedMetadata": None})
        return [{"name": TOPICS[variation % len(TOPICS)], "partitions": partitions}]

    def fetch(self, actor: Actor, variation: int, choice: int) -> None:
        version = self._version("OffsetFetch", choice)
        topics: Json = [
            {"name": TOPICS[0], "partitionIndexes": [0, 1]},
            {"name": TOPICS[1], "partitionIndexes": [5, 0]},
        ]
        if variation % 2 and version >= 2:
            topics = None
        stable = {"requireStable": version >= 7 and variation % 4 < 2}
        if version >= 8:
            groups = [{"groupId": GROUP, "topics": topics, "memberId": None, "memberEpoch": -1}]
            self._send(actor.number, "OffsetFetch", version, {"groups": groups, **stable})
        else:
            self._send(actor.number, "OffsetFetch", version, {"groupId": GROUP, "topics": topics, **stable})

    def describe(self, actor: Actor, variation: int, choice: int) -> None:
        self._send(actor.number, "DescribeGroups", self._version("DescribeGroups", choice), {"groups": [GROUP]})

    def delete(self, actor: Actor, variation: int, choice: int) -> None:
        names = [GROUP, GROUP] if variation % 4 == 1 else [GROUP]
        self._send(actor.number, "DeleteGroups", self._version("DeleteGroups", choice), {"groupsNames": names})

    def delete_offsets(self, actor: Actor, variation: int, choice: int) -> None:
        partitions = [{"partitionIndex": variation % 2}, {"partitionIndex": 2}]
        topics = [{"name": name, "partitions": partitions} for name in TOPICS[variation // 2 % 2 :]]
        self._send(actor.number, "OffsetDelete", 0, {"groupId": GROUP, "topics": topics})

    def transaction(self, actor: Actor, variation: int, choice: int) -> None:
        number = choice % 2
        if choice // 2 % 7 < 2:
            marker = {
                "producerId": producer(number),
                "producerEpoch": 0,
                "transactionResult": choice // 2 % 7 == 0,
                "coordinatorEpoch": 0,
                "topics": [{"name": "__consumer_offsets", "partitionIndexes": [0]}],
            }
            self._send(actor.number, "WriteTxnMarkers", 1, {"markers": [marker]})
            return
        anonymous = choice % 3 == 0
        version = self._version("TxnOffsetCommit", choice, first=0 if anonymous else 3)
        self._send(
            actor.number,
            "TxnOffsetCommit",
            version,
            {
                "transactionalId": transaction(number),
                "groupId": GROUP,
                "producerId": producer(number),
                "producerEpoch": 0,
                "generationId": -1 if anonymous else self._generation(actor, variation // 4),
                "memberId": "" if anonymous else self._member_id(actor, variation // 8),
                "groupInstanceId": None if anonymous else self._instance(actor, variation // 8),
                "topics": self._offsets(variation),
            },
        )


SENDERS: dict[str, Callable[[ScriptGenerator, Actor, int, int], None]] = {
    "join": ScriptGenerator.join,
    "sync": ScriptGenerator.sync,
    "heartbeat": ScriptGenerator.heartbeat,
    "leave": ScriptGenerator.leave,
    "commit": ScriptGenerator.commit,
    "fetch": ScriptGenerator.fetch,
    "describe": ScriptGenerator.describe,
    "delete": ScriptGenerator.delete,
    "delete offsets": ScriptGenerator.delete_offsets,
    "transaction": ScriptGenerator.transaction,
}


def _next_action(before: str, answer: Any) -> str:
    """Return the next action of a correct client after a response."""
    error = getattr(answer, "error_code", Error.NONE)
    if error in (
        Error.UNKNOWN_MEMBER_ID,
        Error.FENCED_INSTANCE_ID,
        Error.REBALANCE_IN_PROGRESS,
        Error.ILLEGAL_GENERATION,
    ):
        return "join"
    match answer:
        case JoinGroupResponse():
            return "sync" if error == Error.NONE else "join"
        case SyncGroupResponse():
            return "heartbeat" if error == Error.NONE else "join"
        case HeartbeatResponse():
            return "heartbeat"
    return before
