"""Our side: a group that is stepped as in production, from its snapshot."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, permutations, product
from typing import NamedTuple, TypeVar

from kio.index import load_request_schema, load_response_schema
from kio.static.protocol import Entity
from msgspec.structs import replace

from coordinator_logic import snapshot
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.events import Place, ReplyAddress, Request
from coordinator_logic.group import Group
from coordinator_logic.handlers import APIS
from coordinator_logic.messages import DescribeGroupsRequest, Message, RequestBody, ResponseBody
from coordinator_logic.records import GenerationStarted, JournalEntry, LeaderElected, MemberRemoved
from coordinator_logic.step import step
from streaming.gateway.projection import from_wire, to_wire

CLIENT_HOST = "/127.0.0.1"
PROBE_VERSION = 5
MAX_ORDERS = 120
MAX_TIMER_ORDERS = 24
COINCIDENCE_MS = 50
"""Deadlines this near to each other may fire in another order at the broker."""

MessageT = TypeVar("MessageT", bound=Message)


class Standing(NamedTuple):
    """A group between two steps. ``leader_hidden``: a new leader was chosen, and nobody was told yet."""

    snapshot: bytes | None = None
    leader_hidden: bool = False
    wake_at: int | None = None

    @property
    def group(self) -> Group | None:
        """A copy of the group."""
        return None if self.snapshot is None else snapshot.decode(self.snapshot)

    def deadlines(self) -> list[int]:
        """When its timers are due, in order."""
        group = self.group
        return [] if group is None else sorted(timer.deadline(0) for timer in group.timers.values())


class Outcome(NamedTuple):
    """What a step led to: the group after it, and the answers by the step of the script that asked."""

    after: Standing
    answers: dict[int, ResponseBody]


class OurSide:
    """Our coordinator's logic for one group. It keeps nothing: who calls it decides what is taken over."""

    def __init__(self, group_id: str, config: CoordinatorConfig) -> None:
        self.group_id = group_id
        self.config = config

    def request(self, number: int, api: str, version: int, client_id: str, body: RequestBody, now: int) -> Request:
        """Step ``number`` of a script as a request event that was appended now (ms), as its version can say it."""
        key = APIS[api].key
        if key is not None:
            body = through_wire(body, load_request_schema(key, version))
        address = ReplyAddress(api, version, str(number), 0, now)
        return Request(Place(now, 0, number), address, client_id, CLIENT_HOST, body)

    def advance(self, before: Standing, requests: Sequence[Request], now: int) -> Outcome:
        """Take the group through the requests and up to now (ms)."""
        return self._advance(before, before.group, requests, now)

    def variants(self, before: Standing, requests: Sequence[Request], now: int) -> Iterator[Outcome]:
        """What the same step leads to where a broker's HashMap has the members in another order.

        The order decides who leads next, too. While nobody was told, any member may be the one.
        """
        group = before.group
        if group is None or not group.members:
            return
        leaders = list(group.members) if before.leader_hidden else [group.leader]
        for order, leader in islice(product(permutations(group.members), leaders), MAX_ORDERS):
            other = before.group
            assert other is not None
            other.members = {member_id: other.members[member_id] for member_id in order}
            other.leader = leader
            yield self._advance(before, other, requests, now)

    def timer_orders(self, before: Standing, now: int) -> Iterator[Outcome]:
        """What passing time leads to where timers that are due at nearly the same moment fire in another order.

        Members that got a new session together are such: a broker goes through its HashMap to arm them.
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

    def _advance(self, before: Standing, group: Group | None, requests: Sequence[Request], now: int) -> Outcome:
        result = step(self.group_id, group, requests, now, started_at=0, config=self.config)
        after = Standing(
            None if result.group is None else snapshot.encode(result.group),
            _leader_hidden(before.leader_hidden, result.journal),
            result.wake_at,
        )
        answers = {int(r.address.correlation_id): as_sent(r.address, r.body) for r in result.responses}
        return Outcome(after, answers)

    def probe(self, standing: Standing, now: int) -> ResponseBody:
        """DescribeGroups of the group as it stands; changes nothing."""
        body = DescribeGroupsRequest([self.group_id])
        request = self.request(-1, "DescribeGroups", PROBE_VERSION, "probe", body, now)
        group = standing.group
        now = now if group is None else min(now, (standing.wake_at or now + 1) - 1)
        request = replace(request, place=request.place._replace(timestamp=now))
        return self._advance(standing, group, [request], now).answers[-1]


def clusters(due: Mapping[str, int]) -> list[list[str]]:
    """The keys of deadlines that are too near to each other to be told apart, together."""
    found: list[list[str]] = []
    last = None
    for key in sorted(due, key=lambda key: due[key]):
        if last is not None and due[key] - last < COINCIDENCE_MS:
            found[-1].append(key)
        else:
            found.append([key])
        last = due[key]
    return [cluster for cluster in found if len(cluster) > 1]


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
    """A response as its version can say it."""
    key = APIS[address.api].key
    return body if key is None else through_wire(body, load_response_schema(key, address.version))


def through_wire(message: MessageT, wire_type: type[Entity]) -> MessageT:
    """A message after its way over the wire: what the version lacks is gone."""
    return from_wire(to_wire(message, wire_type), type(message))
