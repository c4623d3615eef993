"""The breadth-first search: every move of every client in every reachable state, with every invariant checked."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from traceback import extract_tb
from typing import Any, Self

from coordinator_logic import snapshot
from coordinator_logic.consumer_group.data import ConsumerGroup
from coordinator_logic.consumer_group.epochs import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from coordinator_logic.consumer_group.members import MemberState
from coordinator_logic.errors import Error
from coordinator_logic.events import Place, ReplyAddress, Request
from coordinator_logic.group import Group
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    OffsetCommitResponse,
    RequestBody,
    TopicsDescribedRequest,
)
from coordinator_logic.states import State
from coordinator_logic.step import step
from tests.logic.exhaustive.consumers.invariants import check_group, check_world, has_converged
from tests.logic.exhaustive.consumers.requests import full_heartbeat, heartbeat, may_commit, refusals
from tests.logic.exhaustive.consumers.world import (
    GROUP_ID,
    NOW,
    Client,
    Scope,
    World,
    aged,
    key,
    settled,
)
from tests.logic.invariants import Step, check_step

Play = Callable[[World], World]
ROUNDS = 6
VERSIONS = {"ConsumerGroupHeartbeat": 1, "OffsetCommit": 9, "TopicsDescribed": 0}


class Broken(AssertionError):
    """A move breaks an invariant. The message has the shortest path to it."""


@dataclass
class Reached:
    """What a search has reached."""

    groups: set[State | None] = field(default_factory=set)
    members: set[MemberState] = field(default_factory=set)
    answers: set[Error] = field(default_factory=set)


class Search:
    """All states of a scope. ``edges[i]`` has the next state for the name of each move in state ``i``."""

    def __init__(self, scope: Scope, at_most: int = 100_000) -> None:
        self.scope, self.at_most = scope, at_most
        self.worlds: list[World] = []
        self.edges: list[dict[str, int]] = []
        self.reached = Reached()
        self._numbers: dict[object, int] = {}
        self._predecessors: list[tuple[int, str]] = []
        self._offset = 0

    def run(self) -> Self:
        """Explore until there is no new state; then check that each state converges. Raises :class:`Broken`."""
        clients = tuple(Client(f"m{i}", instance) for i, instance in enumerate(self.scope.instances))
        self._number(World(None, clients), (0, ""))
        number = 0
        while number < len(self.worlds):
            self._explore(number)
            number += 1
            assert number <= self.at_most, "the search has too many states"
        for number in range(len(self.worlds)):
            self._check_converges(number)
        return self

    def path_to(self, number: int) -> str:
        """The moves of the shortest path to a state."""
        path: list[str] = []
        while number:
            number, name = self._predecessors[number]
            path.append(name)
        return " > ".join(reversed(path))

    def _number(self, world: World, predecessor: tuple[int, str]) -> int:
        number = self._numbers.setdefault(key(world, world.decoded(), self.scope), len(self.worlds))
        if number == len(self.worlds):
            self.worlds.append(world)
            self._predecessors.append(predecessor)
        return number

    def _explore(self, number: int) -> None:
        world = self.worlds[number]
        edges: dict[str, int] = {}
        self.edges.append(edges)
        name = "refused requests"
        try:
            self._check_refusals(world)
            name = "commits of owners"
            self._check_commits(world)
            for name, play in self._moves(world):
                after = play(world)
                check_world(after, self.scope)
                edges[name] = self._number(after, (number, name))
        except AssertionError as error:
            failed = extract_tb(error.__traceback__)[-1]
            raise Broken(f"{failed.name}: {error or failed.line}: {self.path_to(number)} > {name}") from error

    # ---- moves ---------------------------------------------------------------------------------------------

    def _moves(self, world: World) -> Iterator[tuple[str, Play]]:
        group = world.decoded()
        for index, client in enumerate(world.clients):
            named = f"m{index}"
            if client.epoch is None:
                yield f"{named} joins", partial(self._join, index=index)
                if self.scope.loses:
                    yield f"{named} joins, response lost", partial(self._join, index=index, arrives=False)
            else:
                for name, play in self._moves_of_member(index, client):
                    yield f"{named} {name}", play
        for timer in () if group is None else sorted(group.timers.keys() - {"expiry"}):
            yield f"time of {timer} ends", partial(self._fire, timer=timer)
        if group is not None and self.scope.later and not world.is_later:
            yield "topics appear", self._describe
        if group is not None and self.scope.passes_time:
            yield "time passes", self._pass_time

    def _moves_of_member(self, index: int, client: Client) -> Iterator[tuple[str, Play]]:
        follows = client.owned == client.received
        if not follows:
            yield "follows", partial(self._follow, index=index)
        ways = ["full"] if client.has_lost else ["owned", *(["quiet"] * self.scope.keeps_quiet)]
        # A client that listed what it owns, and then took more of it because of an older response, could own what
        # the group has given to others meanwhile.
        for way in ways if follows else (each for each in ways if each == "quiet"):
            yield f"beats, {way}", partial(self._beat, index=index, way=way)
            if self.scope.loses and not client.has_lost:
                yield f"beats, {way}, response lost", partial(self._beat, index=index, way=way, arrives=False)
        for names in self.scope.subscriptions if len(self.scope.subscriptions) > 1 and not client.has_lost else ():
            yield f"subscribes to {'+'.join(names)}", partial(self._beat, index=index, way="quiet", names=names)
        if self.scope.leaves:
            yield "leaves", partial(self._leave, index=index, epoch=LEAVE_EPOCH)
        if client.instance_id is not None:
            yield "leaves for a while", partial(self._leave, index=index, epoch=STATIC_LEAVE_EPOCH)

    def _join(self, world: World, index: int, *, arrives: bool = True) -> World:
        client = world.clients[index]
        body = full_heartbeat(client, JOIN_EPOCH, **self._subscription(), topics=world.catalogue(self.scope))
        return self._send_heartbeat(world, index, body, arrives=arrives)

    def _subscription(self) -> dict[str, Any]:
        if self.scope.pattern is not None:
            return {"subscribed_topic_regex": self.scope.pattern}
        return {"subscribed_topic_names": list(self.scope.subscriptions[0])}

    def _beat(
        self, world: World, index: int, way: str, *, names: tuple[str, ...] | None = None, arrives: bool = True
    ) -> World:
        client = world.clients[index]
        assert client.epoch is not None
        if way == "full":
            group = world.decoded()
            member = None if group is None or group.consumer is None else group.consumer.members.get(client.member_id)
            known = self._subscription()
            if member is not None and self.scope.pattern is None:
                known = {"subscribed_topic_names": list(member.subscribed_topic_names)}
            body = full_heartbeat(client, client.epoch, **known)
        elif names is not None:
            topics = world.catalogue(self.scope)
            body = heartbeat(client, client.epoch, subscribed_topic_names=list(names), topics=topics)
        else:
            body = heartbeat(client, client.epoch, client.owned if way == "owned" else None)
        return self._send_heartbeat(world, index, body, arrives=arrives)

    def _leave(self, world: World, index: int, epoch: int) -> World:
        client = world.clients[index]
        after = self._send_heartbeat(world, index, heartbeat(client, epoch), arrives=True)
        # An instance returns as a new process. Its ids alternate, so that there are finitely many states.
        returns_as = {f"m{index}": f"m{index}b"}.get(client.member_id, f"m{index}")
        return after.with_client(index, client.out(returns_as if client.instance_id is not None else None))

    def _send_heartbeat(self, world: World, index: int, body: RequestBody, *, arrives: bool) -> World:
        assert isinstance(body, ConsumerGroupHeartbeatRequest)
        client, before = world.clients[index], world.decoded()
        is_member = before is not None and before.consumer is not None and body.member_id in before.consumer.members
        executed = self._step(world, [self._request("ConsumerGroupHeartbeat", body)])
        (response,) = executed.result.responses
        answer = response.body
        assert isinstance(answer, ConsumerGroupHeartbeatResponse)
        expected = Error.NONE if is_member or body.member_epoch == JOIN_EPOCH else Error.UNKNOWN_MEMBER_ID
        assert answer.error_code == expected, f"a correct client is answered {Error(answer.error_code).name}"
        world = self._after(world, executed)
        if body.member_epoch < 0 or expected is not Error.NONE:
            return world.with_client(index, client.out())
        if not arrives:
            lost = client._replace(has_lost=True) if client.epoch is not None else client
            return world.with_client(index, lost)
        assert body.member_epoch == JOIN_EPOCH or answer.member_epoch >= body.member_epoch, "a client's epoch went back"
        received = client.received
        if answer.assignment is not None:
            listed = answer.assignment.topic_partitions
            received = frozenset((each.topic_id, partition) for each in listed for partition in each.partitions)
        after = client._replace(epoch=answer.member_epoch, received=received, has_lost=False)
        return world.with_client(index, after)

    def _follow(self, world: World, index: int) -> World:
        client = world.clients[index]
        return world.with_client(index, client._replace(owned=client.received))

    def _fire(self, world: World, timer: str) -> World:
        group = world.decoded()
        assert group is not None
        due = group.timers[timer]
        group.timers[timer] = type(due)(due.kind, NOW - due.timeout_ms, due.timeout_ms, due.member_id, due.generation)
        executed = self._step(world._replace(group=snapshot.encode(group)), [])
        return self._after(world, executed)

    def _describe(self, world: World) -> World:
        later = world._replace(is_later=True)
        body = TopicsDescribedRequest(later.catalogue(self.scope))
        return self._after(later, self._step(world, [self._request("TopicsDescribed", body)]))

    def _pass_time(self, world: World) -> World:
        group = world.decoded()
        assert group is not None
        return world._replace(group=aged(group))

    # ---- requests that must be refused or accepted ---------------------------------------------------------

    def _check_refusals(self, world: World) -> None:
        group = world.decoded()
        refused = list(refusals(None if group is None else group.consumer, world.clients))
        requests = [self._request_of(each.body) for each in refused]
        executed = self._step(world, requests)
        errors = _errors(executed)
        for each, request in zip(refused, requests, strict=True):
            actual = errors[request.address.correlation_id]
            assert actual is each.expected, f"{each.name}: {actual.name} instead of {each.expected.name}"
        after = executed.result.group
        assert not executed.result.journal, "a refused request has changed something"
        if group is not None and after is not None:
            assert group.timers == after.timers, "a refused request has restarted a timer"

    def _check_commits(self, world: World) -> None:
        group = world.decoded()
        if group is None or group.consumer is None:
            return
        bodies = [body for client in world.clients for body in may_commit(client, group.consumer)]
        executed = self._step(world, [self._request_of(body) for body in bodies])
        assert set(_errors(executed).values()) <= {Error.OFFSET_METADATA_TOO_LARGE}, "an owner cannot commit"

    # ---- a step --------------------------------------------------------------------------------------------

    def _request_of(self, body: RequestBody) -> Request:
        is_heartbeat = isinstance(body, ConsumerGroupHeartbeatRequest)
        return self._request("ConsumerGroupHeartbeat" if is_heartbeat else "OffsetCommit", body)

    def _request(self, api: str, body: RequestBody) -> Request:
        self._offset += 1
        address = ReplyAddress(api, VERSIONS[api], str(self._offset), 0, NOW + 1)
        return Request(Place(NOW + 1, 0, self._offset), address, "client", "/127.0.0.1", body)

    def _step(self, world: World, requests: list[Request]) -> Step:
        config = self.scope.config
        now = NOW + 1 if requests else NOW
        result = step(GROUP_ID, world.decoded(), requests, now, started_at=0, config=config)
        executed = Step(world.decoded(), requests, now, 0, config, result)
        check_step(executed)
        self.reached.answers |= set(_errors(executed).values())
        return executed

    def _after(self, world: World, executed: Step) -> World:
        group = executed.result.group
        consumer = _consumer(group)
        if consumer is not None:
            check_group(consumer)
            self.reached.members |= {member.state for member in consumer.members.values()}
        self.reached.groups.add(None if group is None else group.state)
        return world._replace(group=settled(group))

    # ---- convergence ---------------------------------------------------------------------------------------

    def _check_converges(self, number: int) -> None:
        """Let members that are gone expire, and the others follow the protocol."""
        reached = number
        for _ in range(ROUNDS):
            for index in range(len(self.scope.instances)):
                reached = self._follow_protocol(reached, index)
            reached = self._expire_members_that_are_gone(reached)
            if "time passes" in self.edges[reached]:
                reached = self.edges[reached]["time passes"]
        if not has_converged(self.worlds[reached], self.scope):
            raise Broken(f"converges: {self.path_to(number)}")

    def _follow_protocol(self, number: int, index: int) -> int:
        edges = self.edges[number]
        for name in (f"m{index} follows", f"m{index} beats, full", f"m{index} beats, owned"):
            if name in edges:
                number = edges[name]
                edges = self.edges[number]
        return number

    def _expire_members_that_are_gone(self, number: int) -> int:
        world = self.worlds[number]
        present = {client.member_id for client in world.clients if client.epoch is not None}
        consumer = _consumer(world.decoded())
        for member_id in () if consumer is None else consumer.members.keys() - present:
            number = self.edges[number].get(f"time of heartbeat-{member_id} ends", number)
        return number


def _consumer(group: Group | None) -> ConsumerGroup | None:
    return None if group is None else group.consumer


def _errors(executed: Step) -> dict[str, Error]:
    """The error of each answer, by correlation id."""
    return {
        response.address.correlation_id: Error(
            response.body.topics[0].partitions[0].error_code
            if isinstance(response.body, OffsetCommitResponse)
            else response.error_code
        )
        for response in executed.result.responses
    }
