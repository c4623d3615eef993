"""A script: requests and waits, in which ids and generations refer to what the same side answered before.

A body is a request's JSON body, in which a value can be a reference instead:

| reference                                     | becomes                                                          |
|-----------------------------------------------|------------------------------------------------------------------|
| ``{"ref": "group"}``                          | the group id of this run                                         |
| ``{"ref": "member", "actor": 2, "back": 0}``  | the last member id that actor 2 was given, or one before; or ""  |
| ``{"ref": "generation", "actor": 1, "plus": 0}`` | the generation that actor 1 was told; -1 if none              |
| ``{"ref": "protocol", "actor": 1}``           | the protocol name that actor 1 was told; null if none            |
| ``{"ref": "assignments", "actor": 1}``        | something for each member that actor 1 was shown                 |
| ``{"ref": "producer", "number": 0}``          | the id of a producer of this run                                 |
| ``{"ref": "transaction", "number": 0}``       | its transactional id                                             |
| ``{"ref": "bytes", "text": "abc"}``           | these bytes, as JSON has them                                    |
| ``{"ref": "subscription", "topics": ["a"]}``  | a consumer's subscription                                        |

So the same script can be played on both sides, although each generates ids of its own, and again after steps were
taken out of it.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import msgspec

from coordinator_logic.consumer_protocol import Subscription, encode_subscription
from coordinator_logic.errors import Error
from coordinator_logic.handlers import APIS
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
    """Time passes: so many milliseconds, or (null) until the group's next deadline has passed."""

    ms: int | None = None


class Script(msgspec.Struct, frozen=True):
    """What happens to one group. ``name`` says where it comes from; ``client_ids`` is by actor."""

    name: str
    steps: list[Send | Wait]

    def text(self) -> str:
        """One line of JSON per step: what :func:`read` understands."""
        return "\n".join([self.name, *(msgspec.json.encode(step).decode() for step in self.steps)])


def read(text: str) -> Script:
    """The script that a text holds."""
    name, *lines = text.strip().splitlines()
    decode = msgspec.json.Decoder(Send | Wait).decode
    return Script(name, [decode(line) for line in lines])


def client_id(actor: int) -> str:
    """The client id of an actor."""
    return f"c{actor}"


# ---- references ------------------------------------------------------------------------------------------------

GROUP: Json = {"ref": "group"}


def member(actor: int, back: int = 0) -> Json:
    """The id that an actor was given last, or ``back`` ids before."""
    return {"ref": "member", "actor": actor, "back": back}


def generation(actor: int, plus: int = 0) -> Json:
    """The generation that an actor was told, or one that is off by some."""
    return {"ref": "generation", "actor": actor, "plus": plus}


def protocol(actor: int) -> Json:
    """The protocol name that an actor was told."""
    return {"ref": "protocol", "actor": actor}


def assignments(actor: int) -> Json:
    """Something for every member that an actor was shown as leader."""
    return {"ref": "assignments", "actor": actor}


def producer(number: int = 0) -> Json:
    """A producer's id, not used by any other script."""
    return {"ref": "producer", "number": number}


def transaction(number: int = 0) -> Json:
    """The transactional id of a producer."""
    return {"ref": "transaction", "number": number}


def transactional_id(group_id: str, number: int) -> str:
    """The transactional id of a producer of the script that is played in this group."""
    return f"{group_id}-{number}"


def text(value: str) -> Json:
    """Bytes that can be read."""
    return {"ref": "bytes", "text": value}


def subscription(*topics: str) -> Json:
    """A consumer's subscription."""
    return {"ref": "subscription", "topics": list(topics)}


class Told(msgspec.Struct):
    """What one side has told one actor so far."""

    member_ids: list[str] = []
    generation: int = -1
    leader: str = ""
    protocol_name: str | None = None
    shown: list[str] = []

    @property
    def member_id(self) -> str:
        """The last id that it was given; empty when none."""
        return self.member_ids[-1] if self.member_ids else ""

    @property
    def leads(self) -> bool:
        """Whether it was told that it is the leader."""
        return bool(self.leader) and self.leader == self.member_id


class Knowledge:
    """What one side has told the actors of a script: enough to resolve references."""

    def __init__(self, group_id: str, producers: Mapping[int, int]) -> None:
        self.group_id = group_id
        self.producers = producers
        self._told: dict[int, Told] = {}

    def told(self, actor: int) -> Told:
        """What an actor was told."""
        return self._told.setdefault(actor, Told())

    def learn(self, actor: int, answer: ResponseBody | None) -> None:
        """Take in an answer to an actor."""
        if not isinstance(answer, JoinGroupResponse) or answer.error_code not in (Error.NONE, Error.MEMBER_ID_REQUIRED):
            return
        told = self.told(actor)
        if answer.member_id != told.member_id:
            told.member_ids.append(answer.member_id)
        if answer.error_code == Error.NONE:
            told.generation = answer.generation_id
            told.leader = answer.leader
            told.protocol_name = answer.protocol_name
            told.shown = [shown.member_id for shown in answer.members]

    def resolve(self, step: Send) -> RequestBody:
        """The request's body with what this side has told in place of references."""
        body: RequestBody = msgspec.convert(self._resolve(step.body), APIS[step.api].request_type)
        return body

    def _resolve(self, value: Json) -> Json:
        if isinstance(value, list):
            return [self._resolve(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "ref" not in value:
            return {key: self._resolve(item) for key, item in value.items()}
        return self._refer(**value)

    def _refer(self, ref: str, actor: int = -1, back: int = 0, plus: int = 0, number: int = 0, **rest: Any) -> Json:
        told = self._told.get(actor, Told())
        match ref:
            case "group":
                return self.group_id
            case "member":
                return told.member_ids[-1 - back] if back < len(told.member_ids) else ""
            case "generation":
                return told.generation + plus
            case "protocol":
                return told.protocol_name
            case "assignments":
                return [{"memberId": each, "assignment": _base64(_assignment_for(each))} for each in told.shown]
            case "producer":
                return self.producers[number]
            case "transaction":
                return transactional_id(self.group_id, number)
            case "bytes":
                return _base64(rest["text"].encode())
            case "subscription":
                return _base64(encode_subscription(Subscription(topics=rest["topics"])))
        raise ValueError(f"no such reference: {ref}")


def _assignment_for(member_id: str) -> bytes:
    """The same on both sides, whose generated ids end differently."""
    return f"for {GENERATED_ID.sub('', member_id)}".encode()


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
