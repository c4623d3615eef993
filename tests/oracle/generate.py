"""Random scripts, from hypothesis; no broker is needed to make them.

Hypothesis draws moves: who does something, what, with which twist. A storyteller plays them on our logic with a clock
of its own, and so knows what a client would do next: mostly that is done, now and then something odd.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from coordinator_logic.errors import Error
from coordinator_logic.messages import HeartbeatResponse, JoinGroupResponse, SyncGroupResponse
from tests.oracle.judge import CONFIG, TOPICS, VERSIONS
from tests.oracle.ours import OurSide, Standing
from tests.oracle.script import (
    GROUP,
    Json,
    Knowledge,
    Script,
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

GROUP_ID = "generated"
ACTORS = 4
REQUEST_MS = 30
NEAR_MS = 100
"""About how long one request takes when the script is played, and how far it keeps away from deadlines."""

# No two sums of these are near to each other: deadlines that coincide could fire in any order.
SESSIONS_MS = (690, 1_570, 2_330)
REBALANCES_MS = (870, 1_310, 1_910)
INSTANCES = (None, None, None, "s1", "s1", "s2")
PREFERENCES = (
    ("range",),
    ("range", "sticky"),
    ("sticky", "range"),
    ("roundrobin", "range", "sticky"),
    ("cooperative-sticky",),
)
ODD = (
    "join",
    "sync",
    "heartbeat",
    "leave",
    "leave",
    "commit",
    "commit",
    "fetch",
    "describe",
    "delete",
    "forget offsets",
    "transaction",
    "transaction",
)
ACTIONS = (*("go on",) * 24, *ODD)
MEMBERS_DAYS = (*("heartbeat",) * 4, "commit", "commit", "transaction", "fetch")
"""What a member does that has its assignment."""
TOO_LONG_METADATA = "long" * 20


class Move(NamedTuple):
    """What an actor does, after a pause; ``twist`` chooses among the ways to do it."""

    actor: int
    action: str
    twist: int
    pause: str | int


MOVES = st.builds(
    Move,
    st.integers(0, ACTORS - 1),
    st.sampled_from(ACTIONS),
    st.integers(0, 2**16 - 1),
    st.sampled_from((*(0,) * 22, 60, 150, 300, 500, 800, *("deadline",) * 3)),
)


@dataclass(frozen=True)
class Actor:
    """What does not change about an actor in one script."""

    number: int
    instance: str | None
    session_ms: int
    rebalance_ms: int
    preference: tuple[str, ...]
    topics: tuple[str, ...]


ACTOR_TRAITS = st.tuples(
    st.sampled_from(INSTANCES),
    st.sampled_from(SESSIONS_MS),
    st.sampled_from(REBALANCES_MS),
    st.sampled_from(PREFERENCES[:4]),
    st.sampled_from([TOPICS[:1], TOPICS, TOPICS[1:]]),
)
CASTS = st.sampled_from((1, 2, 2, 3, 3, 4)).flatmap(lambda size: st.lists(ACTOR_TRAITS, min_size=size, max_size=size))


def random_scripts(count: int, *, seed_number: int, requests: int) -> list[Script]:
    """``count`` scripts of so many requests. The n-th depends on the seed and n only."""
    return [_random_script(seed_number, number, requests) for number in range(count)]


def _random_script(seed_number: int, number: int, requests: int) -> Script:
    drawn: list[Script] = []

    # The first example that hypothesis makes is the simplest one; later ones may be variations of the second.
    @seed(f"{seed_number}/{number}")
    @settings(
        max_examples=2,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(CASTS, st.lists(MOVES, min_size=requests, max_size=requests))
    def draw(cast: list[Any], moves: list[Move]) -> None:
        actors = [Actor(number, *traits) for number, traits in enumerate(cast)]
        drawn.append(Script(f"{seed_number}/{number}", Storyteller(actors).tell(moves)))

    draw()
    return drawn[-1]


class Storyteller:
    """Turns moves into the steps of a script, by what our logic would answer."""

    def __init__(self, cast: list[Actor]) -> None:
        self._cast = cast
        self._ours = OurSide(GROUP_ID, CONFIG)
        self._standing = Standing()
        self._now = 1_000_000
        self._knowledge = Knowledge(GROUP_ID, {0: 1_000, 1: 1_001})
        self._steps: list[Send | Wait] = []
        self._next = ["join"] * len(cast)
        self._anew: set[int] = set()
        self._open: dict[int, int] = {}

    def tell(self, moves: list[Move]) -> list[Send | Wait]:
        """The steps for the moves: a request each, and the waits between them."""
        for move in moves:
            if move.pause == "deadline":
                self._wait(None)
            elif isinstance(move.pause, int) and move.pause:
                self._wait(move.pause)
            self._play(move)
        self._wait(None)
        self._send(0, "OffsetFetch", 7, {"groupId": GROUP, "topics": None, "requireStable": False})
        return self._steps

    def _play(self, move: Move) -> None:
        first = move.actor % len(self._cast)
        actor = self._cast[first]
        action = move.action
        if action == "go on":
            if set(self._next) == {"wait"}:
                self._wait(None)
            candidates = [a for a in self._cast[first:] + self._cast[:first] if self._next[a.number] != "wait"]
            actor = candidates[0] if candidates else actor
            action = self._next[actor.number] if candidates else "describe"
            if action == "heartbeat":
                action = MEMBERS_DAYS[move.twist % len(MEMBERS_DAYS)]
        plain = move.twist % 8 != 7 if move.action == "go on" else move.twist % 2 == 0
        BODIES[action](self, actor, 0 if plain else move.twist // 8, move.twist)

    # ---- time ----------------------------------------------------------------------------------------------

    def _wait(self, ms: int | None) -> None:
        self._steps.append(Wait(ms))
        wake_at = self._standing.wake_at
        if ms is not None:
            self._advance(self._now + ms)
        elif wake_at is not None and wake_at < self._now + 4_000:
            self._advance(wake_at + 1)

    def _advance(self, now: int) -> None:
        self._now = max(now, self._now)
        self._take(self._ours.advance(self._standing, [], self._now))

    def _take(self, outcome: Any) -> None:
        self._standing = outcome.after
        for number, answer in outcome.answers.items():
            actor = self._open.pop(number)
            self._knowledge.learn(actor, answer)
            self._next[actor] = _what_next(self._next[actor], answer)
            error = getattr(answer, "error_code", Error.NONE)
            if error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
                self._anew.add(actor)
            elif isinstance(answer, JoinGroupResponse):
                self._anew.discard(actor)

    # ---- requests ------------------------------------------------------------------------------------------

    def _send(self, actor: int, api: str, version: int, body: dict[str, Json]) -> None:
        while (wake_at := self._standing.wake_at) is not None and wake_at < self._now + NEAR_MS:
            self._advance(wake_at + NEAR_MS)
        step = Send(actor, api, version, body)
        number = len(self._steps)
        self._steps.append(step)
        self._open[number] = actor
        if api in ("JoinGroup", "SyncGroup"):
            self._next[actor] = "wait"
        self._now += REQUEST_MS
        request = self._ours.request(number, api, version, client_id(actor), self._knowledge.resolve(step), self._now)
        self._take(self._ours.advance(self._standing, [request], self._now))

    def _version(self, api: str, choice: int, *, first: int = 0) -> int:
        """The newest version most of the time."""
        served = [version for version in VERSIONS[api] if version >= first]
        return served[-1] if choice % 3 == 0 else served[choice % len(served)]

    def _who(self, actor: Actor, twist: int) -> Json:
        """Whose id is given: mostly one's own last one."""
        match twist % 8:
            case 1:
                return member((actor.number + 1) % ACTORS)
            case 2:
                return member(actor.number, back=1)
            case 3:
                return "made-up"
        return member(actor.number)

    def _instance(self, actor: Actor, twist: int) -> str | None:
        return {5: "s1", 6: "unknown-instance", 7: None}.get(twist % 16, actor.instance)

    def _generation(self, actor: Actor, twist: int) -> Json:
        return {1: generation(actor.number, -1), 2: generation(actor.number, 1), 3: -1}.get(
            twist % 12, generation(actor.number)
        )

    def join(self, actor: Actor, twist: int, choice: int) -> None:
        first = 5 if actor.instance else 0
        version = self._version("JoinGroup", choice, first=first if twist % 16 != 9 else 0)
        names = PREFERENCES[twist // 16 % len(PREFERENCES)] if twist % 5 == 1 else actor.preference
        topics = TOPICS[:1] if twist % 7 == 1 else actor.topics
        self._send(
            actor.number,
            "JoinGroup",
            version,
            {
                "groupId": GROUP,
                "sessionTimeoutMs": {11: 10, 12: 10_000_000}.get(twist % 64, actor.session_ms),
                "rebalanceTimeoutMs": actor.rebalance_ms,
                "memberId": "" if twist % 8 == 4 or actor.number in self._anew else self._who(actor, twist),
                "groupInstanceId": self._instance(actor, twist // 8),
                "protocolType": {21: "connect", 22: ""}.get(twist % 32, "consumer"),
                "protocols": []
                if twist % 64 == 23
                else [
                    {"name": name, "metadata": text("x") if twist % 32 == 24 else subscription(*topics)}
                    for name in names
                ],
                "reason": "because" if choice % 4 == 0 else None,
            },
        )

    def sync(self, actor: Actor, twist: int, choice: int) -> None:
        leads = self._knowledge.told(actor.number).leads
        self._send(
            actor.number,
            "SyncGroup",
            self._version("SyncGroup", choice, first=3 if actor.instance else 0),
            {
                "groupId": GROUP,
                "generationId": self._generation(actor, twist),
                "memberId": self._who(actor, twist // 4),
                "groupInstanceId": self._instance(actor, twist // 8),
                "protocolType": {9: "connect", 10: None}.get(twist % 32, "consumer"),
                "protocolName": {11: "other", 12: None}.get(twist % 32, protocol(actor.number)),
                "assignments": assignments(actor.number) if leads and twist % 8 != 5 else [],
            },
        )

    def heartbeat(self, actor: Actor, twist: int, choice: int) -> None:
        self._send(
            actor.number,
            "Heartbeat",
            self._version("Heartbeat", choice, first=3 if actor.instance else 0),
            {
                "groupId": GROUP,
                "generationId": self._generation(actor, twist),
                "memberId": self._who(actor, twist // 4),
                "groupInstanceId": self._instance(actor, twist // 8),
            },
        )

    def leave(self, actor: Actor, twist: int, choice: int) -> None:
        version = self._version("LeaveGroup", choice)
        leaving: list[Json] = [
            {"memberId": self._who(actor, twist // 4), "groupInstanceId": self._instance(actor, twist // 8)}
        ]
        if twist % 4 == 1:
            leaving = [{"memberId": "", "groupInstanceId": "s1"}]
        if twist % 4 == 2:
            leaving.append({"memberId": member((actor.number + 1) % ACTORS), "groupInstanceId": None})
        body: dict[str, Json] = {"groupId": GROUP}
        if version < 3:
            body["memberId"] = leaving[0]["memberId"]
        else:
            body["members"] = leaving
        self._send(actor.number, "LeaveGroup", version, body)

    def commit(self, actor: Actor, twist: int, choice: int) -> None:
        anonymous = twist % 4 == 1
        version = self._version("OffsetCommit", choice, first=7 if actor.instance and not anonymous else 0)
        self._send(
            actor.number,
            "OffsetCommit",
            version,
            {
                "groupId": GROUP,
                "generationIdOrMemberEpoch": -1 if anonymous else self._generation(actor, twist // 4),
                "memberId": "" if anonymous else self._who(actor, twist // 8),
                "groupInstanceId": None if anonymous else self._instance(actor, twist // 8),
                "topics": self._offsets(twist),
            },
        )

    def _offsets(self, twist: int) -> list[Json]:
        note = TOO_LONG_METADATA if twist % 16 == 5 else "note"
        first = {"partitionIndex": twist % 2, "committedOffset": twist % 1_000, "committedLeaderEpoch": twist % 3 - 1}
        partitions: list[Json] = [{**first, "committedMetadata": note}]
        if twist % 8 == 3:
            partitions.append({"partitionIndex": 2, "committedOffset": 7, "committedMetadata": None})
        return [{"name": TOPICS[twist % len(TOPICS)], "partitions": partitions}]

    def fetch(self, actor: Actor, twist: int, choice: int) -> None:
        version = self._version("OffsetFetch", choice)
        topics: Json = [
            {"name": TOPICS[0], "partitionIndexes": [0, 1]},
            {"name": TOPICS[1], "partitionIndexes": [5, 0]},
        ]
        if twist % 2 and version >= 2:
            topics = None
        stable = {"requireStable": version >= 7 and twist % 4 < 2}
        if version >= 8:
            groups = [{"groupId": GROUP, "topics": topics, "memberId": None, "memberEpoch": -1}]
            self._send(actor.number, "OffsetFetch", version, {"groups": groups, **stable})
        else:
            self._send(actor.number, "OffsetFetch", version, {"groupId": GROUP, "topics": topics, **stable})

    def describe(self, actor: Actor, twist: int, choice: int) -> None:
        self._send(actor.number, "DescribeGroups", self._version("DescribeGroups", choice), {"groups": [GROUP]})

    def delete(self, actor: Actor, twist: int, choice: int) -> None:
        names = [GROUP, GROUP] if twist % 4 == 1 else [GROUP]
        self._send(actor.number, "DeleteGroups", self._version("DeleteGroups", choice), {"groupsNames": names})

    def forget_offsets(self, actor: Actor, twist: int, choice: int) -> None:
        partitions = [{"partitionIndex": twist % 2}, {"partitionIndex": 2}]
        topics = [{"name": name, "partitions": partitions} for name in TOPICS[twist // 2 % 2 :]]
        self._send(actor.number, "OffsetDelete", 0, {"groupId": GROUP, "topics": topics})

    def transaction(self, actor: Actor, twist: int, choice: int) -> None:
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
                "generationId": -1 if anonymous else self._generation(actor, twist // 4),
                "memberId": "" if anonymous else self._who(actor, twist // 8),
                "groupInstanceId": None if anonymous else self._instance(actor, twist // 8),
                "topics": self._offsets(twist),
            },
        )


BODIES: dict[str, Callable[[Storyteller, Actor, int, int], None]] = {
    "join": Storyteller.join,
    "sync": Storyteller.sync,
    "heartbeat": Storyteller.heartbeat,
    "leave": Storyteller.leave,
    "commit": Storyteller.commit,
    "fetch": Storyteller.fetch,
    "describe": Storyteller.describe,
    "delete": Storyteller.delete,
    "forget offsets": Storyteller.forget_offsets,
    "transaction": Storyteller.transaction,
}


def _what_next(before: str, answer: Any) -> str:
    """What a client would do after an answer."""
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
