"""Hypothesis strategies: values of any message or group type, and stories of clients that share a group."""

from dataclasses import replace
from typing import Any, NamedTuple

from hypothesis import strategies as st
from msgspec import inspect

from coordinator_logic.errors import Error
from coordinator_logic.events import Request
from coordinator_logic.group.part import GroupPart
from coordinator_logic.groups import TYPES
from coordinator_logic.messages import JoinGroupResponse, LeavingMember, SyncGroupResponse
from coordinator_logic.records import entry_decoder
from tests.logic.driver import Driven, Joined, listing, reading
from tests.support.parts import classic

# Until a decoder is made, the type of an entry's record is the base class of all records.
entry_decoder()

TEXT = st.text(max_size=8)
BYTES = st.binary(max_size=16)


def values_of(of_type: Any) -> st.SearchStrategy[Any]:
    """Values that msgspec accepts for a type."""
    return _values(inspect.type_info(of_type))


def _values(info: inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case inspect.IntType():
            return st.integers(-(2**63) if info.ge is None else info.ge, 2**63 - 1 if info.le is None else info.le)
        case inspect.StrType(pattern=str(pattern)):
            # A dollar also matches before a newline at the end.
            texts = st.from_regex(pattern, fullmatch=True)
            return texts.filter(lambda text: info.max_length is None or len(text) <= info.max_length)
        case inspect.StrType():
            return st.text(min_size=info.min_length or 0, max_size=8)
        case inspect.BytesType():
            return BYTES
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.EnumType():
            return st.sampled_from(list(info.cls))
        case inspect.ListType():
            return st.lists(_values(info.item_type), max_size=3)
        case inspect.VarTupleType():
            return st.lists(_values(info.item_type), max_size=3).map(tuple)
        case inspect.DictType():
            return st.dictionaries(_values(info.key_type), _values(info.value_type), max_size=3)
        case inspect.UnionType():
            return st.one_of([_values(member) for member in info.types])
        case inspect.StructType(cls=cls) if cls is GroupPart:
            return st.one_of([values_of(group_type.part) for group_type in TYPES.values()])
        case inspect.StructType():
            return st.builds(info.cls, **{f.name: _values(f.type) for f in info.fields})
        case _:
            raise TypeError(f"no strategy for {info}")


# ---- stories ---------------------------------------------------------------------------------------------------

DELAYS_MS = (*(0,) * 6, *(1, 100, 499, 500, 501, 1_000) * 2, 2_999, 3_000, 3_001, 3_000, 4_999, 5_000, 10_000, 30_000)
SESSIONS_MS = (1_000, 5_000, 20_000)
REBALANCES_MS = (0, 2_000, 10_000, 10_000)
PREFERENCES = (
    reading("topic"),
    [*reading("other topic"), *listing("sticky")],
    listing("sticky", "range"),
    listing("sticky", "range", metadata=b"other topics"),
    listing("roundrobin"),
)
ODD_ACTIONS = ("join", "sync", "heartbeat", "leave", "commit", "transact", "end transaction", "read", "delete", "reset")
ACTIONS = (*("next",) * 18, *ODD_ACTIONS)
INSTANCES = (None, None, "instance", "instance", "other instance")
"""The instance id of each actor; two actors share one, as two processes do by mistake."""


TOPIC_IDS = ("", "kQXTr5ZaQ4aTOGxdwzcvBw", "yf4HLMwkTNqR31X-kvqSOQ")
"""What a request can say of the id of its topic: nothing, or one of two ids that a topic has one after the other."""


class Move(NamedTuple):
    """An actor's action after a delay; ``variant`` selects the way to do it, 0 being the usual one.

    The action "next" is what a Kafka client would do next after the answers that it has had.
    """

    actor: int
    action: str
    delay_ms: int
    variant: int


MOVES = st.builds(
    Move,
    st.integers(0, len(INSTANCES) - 1),
    st.sampled_from(ACTIONS),
    st.sampled_from(DELAYS_MS),
    st.sampled_from([0] * 12 + list(range(1, 12))),
)
STORIES = st.lists(MOVES, min_size=20, max_size=60)


class Story:
    """Clients that follow the moves; each knows what its own answers have said."""

    def __init__(self, driven: Driven) -> None:
        self.driven = driven
        self._known = [Joined("", -1, instance) for instance in INSTANCES]
        self._next = ["join"] * len(INSTANCES)
        self._actor_of: dict[str, int] = {}

    def play(self, move: Move) -> None:
        """Play a move in a batch of its own."""
        self.driven.now += move.delay_ms
        action = self._next[move.actor] if move.action == "next" else move.action
        self._act(action, self._known[move.actor], move.variant)
        self._actor_of[self.driven.log[-1].address.correlation_id] = move.actor
        for answer in self.driven.answered:
            self._learn(answer.request, answer.body)

    def _act(self, action: str, sender: Joined, variant: int) -> None:
        driven = self.driven
        stale = replace(sender, generation_id=sender.generation_id - 1) if variant == 11 else sender
        if action == "join":
            driven.join(
                "" if variant in (5, 6) else sender.member_id,
                instance=sender.group_instance_id,
                version=3 if variant in (1, 6) else 9,
                session_ms=SESSIONS_MS[variant % 3],
                rebalance_ms=REBALANCES_MS[-1 - variant % 4],
                protocols=PREFERENCES[variant % 5],
                protocol_type="connect" if variant == 9 else "consumer",
            )
        elif action == "sync":
            members = classic(driven.group).members if driven.exists else {}
            name = classic(driven.group).protocol_name if driven.exists else None
            assignments = {member_id: b"for " + member_id.encode() for member_id in members} if sender.leads else None
            driven.sync(stale, assignments, version=4, protocol_name=name if variant else None)
        elif action == "heartbeat":
            driven.heartbeat(stale)
        elif action == "leave" and variant % 2:
            driven.leave(LeavingMember("", sender.group_instance_id))
        elif action == "leave":
            driven.leave(sender, self._known[variant % len(INSTANCES)])
        elif action == "commit":
            who, of_id = Joined("") if variant in (3, 4) else stale, TOPIC_IDS[variant // 3 % 3]
            driven.commit(who, {("topic", variant % 3): variant}, topic_id=of_id)
        elif action == "transact":
            offsets = {("topic", variant % 3): variant, ("other topic", 0): variant}
            who, of_id = Joined("") if variant % 2 else stale, TOPIC_IDS[variant // 2 % 3]
            driven.commit_in_transaction(offsets, who, producer_id=variant % 2, topic_id=of_id)
        elif action == "reset":
            offsets, of_id = {("topic", variant % 3): variant - 1, ("other topic", 0): -1}, TOPIC_IDS[variant // 4]
            driven.reset_offsets(offsets, force=variant % 4 < 3, topic_id=of_id)
        elif action == "end transaction":
            driven.end_transaction(commit=variant != 1, producer_id=variant % 2)
        elif action == "read":
            driven.fetch(require_stable=True) if variant % 2 else driven.describe()
        else:
            self._delete(variant)

    def _delete(self, variant: int) -> None:
        if variant % 3 == 0:
            self.driven.delete()
        elif variant % 3 == 1:
            self.driven.delete_offsets({"topic": [0, variant], "other topic": [0]})
        else:
            deleted = {5: [TOPIC_IDS[1]], 8: [TOPIC_IDS[2]], 11: list(TOPIC_IDS[1:])}.get(variant)
            self.driven.topics_deleted(*([] if deleted else ["topic"]), **({"topic": deleted} if deleted else {}))

    def _learn(self, request: Request, body: object) -> None:
        actor = self._actor_of[request.address.correlation_id]
        error = getattr(body, "error_code", Error.NONE)
        if error in (Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
            self._known[actor] = Joined("", -1, INSTANCES[actor])
            self._next[actor] = "join"
        elif error in (Error.REBALANCE_IN_PROGRESS, Error.ILLEGAL_GENERATION):
            self._next[actor] = "join"
        elif isinstance(body, JoinGroupResponse) and error == Error.MEMBER_ID_REQUIRED:
            self._known[actor] = Joined(body.member_id, -1, INSTANCES[actor])
        elif isinstance(body, JoinGroupResponse) and error == Error.NONE:
            self._known[actor] = Joined(body.member_id, body.generation_id, INSTANCES[actor], body.leader)
            self._next[actor] = "sync"
        elif isinstance(body, SyncGroupResponse) and error == Error.NONE:
            self._next[actor] = "heartbeat"
