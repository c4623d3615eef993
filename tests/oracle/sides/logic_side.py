"""Our side: one group, stepped from its snapshot as in production."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, permutations, product
from typing import NamedTuple, TypeVar

from kio.index import load_request_schema, load_response_schema
from kio.static.protocol import Entity
from msgspec.structs import replace

from coordinator_logic import snapshot
from coordinator_logic.apis import APIS
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.events import Place, ReplyAddress, Request
from coordinator_logic.group import Group
from coordinator_logic.groups.classic.records import GenerationStarted, LeaderElected
from coordinator_logic.messages import DescribeGroupsRequest, Message, RequestBody, ResponseBody
from coordinator_logic.records import JournalEntry, MemberRemoved
from coordinator_logic.step import step
from tests.support.parts import classic
from tests.support.wire_types import from_wire, to_wire

CLIENT_HOST = "/127.0.0.1"
PROBE_VERSION = 5
MAX_ORDERS = 120
MAX_TIMER_ORDERS = 24
COINCIDENCE_MS = 50
"""Deadlines at most this far apart can fire in another order at the broker."""

MessageT = TypeVar("MessageT", bound=Message)


class GroupState(NamedTuple):
    """The state of a group between two steps. ``leader_hidden``: the new leader is not in any response yet."""

    snapshot: bytes | None = None
    leader_hidden: bool = False
    wake_at: int | None = None

    @property
    def group(self) -> Group | None:
        """A copy of the group."""
        return None if self.snapshot is None else snapshot.decode(self.snapshot)

    def deadlines(self) -> list[int]:
        """Return the deadlines of all timers in order, ms since the epoch."""
        group = self.group
        return [] if group is None else sorted(timer.deadline(0) for timer in group.timers.values())


class Outcome(NamedTuple):
    """The result of a step: the group after it, and the responses by number of the script's step."""

    after: GroupState
    answers: dict[int, ResponseBody]


class LogicSide:
    """Our logic for one group. It is stateless: callers pass the group's state and keep the result."""

    def __init__(self, group_id: str, config: CoordinatorConfig) -> None:
        self.group_id = group_id
        self.config = config

    def request(self, number: int, api: str, version: int, client_id: str, body: RequestBody, now: int) -> Request:
        """Return step ``number`` of a script as an event appended at ``now`` (ms), with the fields of its version."""
        key = APIS[api].key
        if key is not None:
            body = through_wire(body, load_request_schema(key, version))
        address = ReplyAddress(api, version, str(number), 0, now)
        return Request(Place(now, 0, number), address, client_id, CLIENT_HOST, body)

    def advance(self, before: GroupState, requests: Sequence[Request], now: int) -> Outcome:
        """Process the requests and all deadlines up to ``now`` (ms since the epoch)."""
        return self._advance(before, before.group, requests, now)

    def variants(self, before: GroupState, requests: Sequence[Request], now: int) -> Iterator[Outcome]:
        """Yield the outcomes of the same step with the members in other orders, as in a broker's HashMap.

        The order also decides who leads next: while no response has named the new leader, it can be any member.
        """
        group = before.group
        if group is None or not classic(group).members:
            return
        leaders = list(classic(group).members) if before.leader_hidden else [classic(group).leader]
        for order, leader in islice(product(permutations(classic(group).members), leaders), MAX_ORDERS):
            other = before.group
            assert other is not None
            classic(other).members = {member_id: classic(other).members[member_id] for member_id in order}
            classic(other).leader = leader
            yield self._advance(before, other, requests, now)

    def timer_orders(self, before: GroupState, now: int) -> Iterator[Outcome]:
        """Yield the outcomes of passing time if timers with nearly the same deadline fire in other orders.

        Members whose sessions were renewed together have such timers: a broker iterates over its HashMap to arm them.
        """
        group = before.group
        due = {} if group is None else {k: t.deadline(0) for k, t in group.timers.items() if t.deadline(0) <= now}
        for cluster in clusters(due):
            latest = max(due[key] for key in cluster)
            for order in islice(permutations(cluster), MAX_TIMER_ORDERS):
                other = before.group
                assert other is not None
                for key in order:
                    timer = other.timers.pop(key)
                    other.timers[key] = replace(timer, timeout_ms=latest - timer.armed_at)
                yield self._advance(before, other, [], now)

    def _advance(self, before: GroupState, group: Group | None, requests: Sequence[Request], now: int) -> Outcome:
        result = step(self.group_id, group, requests, now, started_at=0, config=self.config)
        after = GroupState(
            None if result.group is None else snapshot.encode(result.group),
            _leader_hidden(before.leader_hidden, result.journal),
            result.wake_at,
        )
        answers = {int(r.address.correlation_id): as_sent(r.address, r.body) for r in result.responses}
        return Outcome(after, answers)

    def probe(self, candidate: GroupState, now: int) -> ResponseBody:
        """Return the response of DescribeGroups, without changing the group."""
        body = DescribeGroupsRequest([self.group_id])
        request = self.request(-1, "DescribeGroups", PROBE_VERSION, "probe", body, now)
        group = candidate.group
        now = now if group is None else min(now, (candidate.wake_at or now + 1) - 1)
        request = replace(request, place=request.place._replace(timestamp=now))
        return self._advance(candidate, group, [request], now).answers[-1]


def clusters(due: Mapping[str, int]) -> list[list[str]]:
    """Return groups of keys whose deadlines are too close to have a defined order."""
    overlapping: list[list[str]] = []
    last = None
    for key in sorted(due, key=lambda key: due[key]):
        if last is not None and due[key] - last < COINCIDENCE_MS:
            overlapping[-1].append(key)
        else:
            overlapping.append([key])
        last = due[key]
    return [cluster for cluster in overlapping if len(cluster) > 1]


def _leader_hidden(hidden: bool, journal: Sequence[JournalEntry]) -> bool:
    removed = False
    for entry in journal:
        match entry.record:
            case MemberRemoved():
                removed = True
            case LeaderElected():
                hidden = hidden or removed
            case GenerationStarted():
                hidden = False
    return hidden


def as_sent(address: ReplyAddress, body: ResponseBody) -> ResponseBody:
    """Return a response with the fields of its version."""
    key = APIS[address.api].key
    return body if key is None else through_wire(body, load_response_schema(key, address.version))


def through_wire(message: MessageT, wire_type: type[Entity]) -> MessageT:
    """Encode and decode a message for the wire, which drops the fields that its version lacks."""
    return from_wire(to_wire(message, wire_type), type(message))
