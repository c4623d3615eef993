"""The format of scripts: requests and waits, with references to values in the responses of the same side.

A body is the JSON body of a request. Any value in it can be a reference:

================================================  ==============================================================
reference                                         value
================================================  ==============================================================
``{"ref": "group"}``                              the group id of this run
``{"ref": "member", "actor": 2, "back": 0}``      the latest member id of actor 2, or an earlier one; else empty
``{"ref": "generation", "actor": 1, "plus": 0}``  the latest generation of actor 1, -1 if none, plus a number
``{"ref": "protocol", "actor": 1}``               the latest protocol name of actor 1; null if none
``{"ref": "assignments", "actor": 1}``            an assignment for each member in actor 1's latest member list
``{"ref": "producer", "number": 0}``              the id of a producer of this run
``{"ref": "transaction", "number": 0}``           its transactional id
``{"ref": "bytes", "text": "abc"}``               these bytes in base64
``{"ref": "subscription", "topics": ["a"]}``      the subscription of a consumer in base64
================================================  ==============================================================

References let the same script run on both sides, which generate different ids, and after steps were removed from it.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import msgspec

from coordinator_logic.apis import APIS
from coordinator_logic.embedded_protocols import Subscription, encode_subscription
from coordinator_logic.errors import Error
from coordinator_logic.messages import JoinGroupResponse, RequestBody, ResponseBody

Json = Any
GENERATED_ID = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Send(msgspec.Struct, frozen=True, tag_field="step", tag="send"):
    """An actor sends a request."""

    actor: int
    api: str
    version: int
    body: dict[str, Json]


class Wait(msgspec.Struct, frozen=True, tag_field="step", tag="wait"):
    """Wait ``ms`` milliseconds, or, if it is null, until the next deadline of the group has passed."""

    ms: int | None = None


class Script(msgspec.Struct, frozen=True):
    """The requests to one group. ``name`` is that of the test, or seed and number of a random script.

    If ``joins_together`` is set, the requests before the first wait must arrive within one initial rebalance delay: a
    run in which a deadline passes between them is inconclusive, since its group is not in the state that is meant.
    """

    name: str
    steps: list[Send | Wait]
    joins_together: bool = False

    def text(self) -> str:
        """Return the name and a line of JSON for each step, for :func:`read`."""
        return "\n".join([self.name, *(msgspec.json.encode(step).decode() for step in self.steps)])


def read(text: str) -> Script:
    """Parse the text of a script."""
    name, *lines = text.strip().splitlines()
    decode = msgspec.json.Decoder(Send | Wait).decode
    return Script(name, [decode(line) for line in lines])


def client_id(actor: int) -> str:
    """The client id of an actor."""
    return f"c{actor}"


# ---- references ------------------------------------------------------------------------------------------------

GROUP: Json = {"ref": "group"}


def member(actor: int, back: int = 0) -> Json:
    """The latest member id of an actor, or the ``back``-th before it."""
    return {"ref": "member", "actor": actor, "back": back}


def generation(actor: int, plus: int = 0) -> Json:
    """The latest generation of an actor, plus a number."""
    return {"ref": "generation", "actor": actor, "plus": plus}


def protocol(actor: int) -> Json:
    """The latest protocol name of an actor."""
    return {"ref": "protocol", "actor": actor}


def assignments(actor: int) -> Json:
    """An assignment for every member in the latest member list of an actor."""
    return {"ref": "assignments", "actor": actor}


def producer(number: int = 0) -> Json:
    """The id of a producer that no other script uses."""
    return {"ref": "producer", "number": number}


def transaction(number: int = 0) -> Json:
    """The transactional id of a producer."""
    return {"ref": "transaction", "number": number}


def transactional_id(group_id: str, number: int) -> str:
    """Return the transactional id of a producer in the run with this group."""
    return f"{group_id}-{number}"


def text(value: str) -> Json:
    """The bytes of a text."""
    return {"ref": "bytes", "text": value}


def subscription(*topics: str) -> Json:
    """A consumer's subscription."""
    return {"ref": "subscription", "topics": list(topics)}


class ActorState(msgspec.Struct):
    """The latest values in the responses of one side to one actor."""

    member_ids: list[str] = []
    generation: int = -1
    leader: str = ""
    protocol_name: str | None = None
    member_list: list[str] = []

    @property
    def member_id(self) -> str:
        """The latest member id; empty if there is none."""
        return self.member_ids[-1] if self.member_ids else ""

    @property
    def leads(self) -> bool:
        """Whether the actor is the leader."""
        return bool(self.leader) and self.leader == self.member_id


class References:
    """Resolves references with the values in the responses of one side."""

    def __init__(self, group_id: str, producers: Mapping[int, int]) -> None:
        self.group_id = group_id
        self.producers = producers
        self._actors: dict[int, ActorState] = {}

    def actor_state(self, actor: int) -> ActorState:
        """Return the state of an actor."""
        return self._actors.setdefault(actor, ActorState())

    def learn(self, actor: int, answer: ResponseBody | None) -> None:
        """Update the state of an actor with a response."""
        if not isinstance(answer, JoinGroupResponse) or answer.error_code not in (Error.NONE, Error.MEMBER_ID_REQUIRED):
            return
        state = self.actor_state(actor)
        if answer.member_id != state.member_id:
            state.member_ids.append(answer.member_id)
        if answer.error_code == Error.NONE:
            state.generation = answer.generation_id
            state.leader = answer.leader
            state.protocol_name = answer.protocol_name
            state.member_list = [member.member_id for member in answer.members]

    def resolve(self, step: Send) -> RequestBody:
        """Return the body of a request with its references resolved."""
        body: RequestBody = msgspec.convert(self._resolve(step.body), APIS[step.api].request_type)
        return body

    def _resolve(self, value: Json) -> Json:
        if isinstance(value, list):
            return [self._resolve(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "ref" not in value:
            return {key: self._resolve(item) for key, item in value.items()}
        return self._resolve_reference(**value)

    def _resolve_reference(
        self, ref: str, actor: int = -1, back: int = 0, plus: int = 0, number: int = 0, **rest: Any
    ) -> Json:
        state = self._actors.get(actor, ActorState())
        match ref:
            case "group":
                return self.group_id
            case "member":
                return state.member_ids[-1 - back] if back < len(state.member_ids) else ""
            case "generation":
                return state.generation + plus
            case "protocol":
                return state.protocol_name
            case "assignments":
                return [{"memberId": each, "assignment": _base64(_assignment_for(each))} for each in state.member_list]
            case "producer":
                return self.producers[number]
            case "transaction":
                return transactional_id(self.group_id, number)
            case "bytes":
                return _base64(rest["text"].encode())
            case "subscription":
                return _base64(encode_subscription(Subscription(topics=rest["topics"])))
        raise ValueError(f"unknown reference {ref!r}")


def _assignment_for(member_id: str) -> bytes:
    """Return an assignment that is equal on both sides: it omits the generated part of the member id."""
    return f"for {GENERATED_ID.sub('', member_id)}".encode()


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
