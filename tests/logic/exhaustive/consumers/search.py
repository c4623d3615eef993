"""The breadth-first search: every move of every client in every reachable state, with every invariant checked."""

from collections.abc import Iterator
from functools import partial
from traceback import extract_tb
from typing import Self

from coordinator_logic import snapshot
from coordinator_logic.errors import Error
from coordinator_logic.messages import TopicsDescribedRequest
from tests.logic.exhaustive.consumers.classic_clients import PROTOCOL_STEPS as CLASSIC_STEPS
from tests.logic.exhaustive.consumers.classic_clients import ClassicClients
from tests.logic.exhaustive.consumers.invariants import check_world, has_converged
from tests.logic.exhaustive.consumers.newer_clients import PROTOCOL_STEPS as NEWER_STEPS
from tests.logic.exhaustive.consumers.newer_clients import NewerClients
from tests.logic.exhaustive.consumers.requests import may_commit, refusals
from tests.logic.exhaustive.consumers.stepping import Reached, Stepping, consumer_of, errors_of
from tests.logic.exhaustive.consumers.world import NOW, Client, NamedPlay, Scope, World, aged, key
from tests.support.parts import consumer_part

ROUNDS = 6


class Broken(AssertionError):
    """A move breaks an invariant. The message has the shortest path to it."""


class Search:
    """All states of a scope. ``edges[i]`` has the next state for the name of each move in state ``i``."""

    def __init__(self, scope: Scope, at_most: int = 100_000) -> None:
        self.scope, self.at_most = scope, at_most
        self._stepping = Stepping(scope)
        self._newer, self._classic = NewerClients(self._stepping), ClassicClients(self._stepping)
        self.worlds: list[World] = []
        self.edges: list[dict[str, int]] = []
        self._numbers: dict[object, int] = {}
        self._predecessors: list[tuple[int, str]] = []

    def run(self) -> Self:
        """Explore until there is no new state; then check that each state converges. Raises :class:`Broken`."""
        newer = len(self.scope.instances) - self.scope.classic
        clients = tuple(
            Client(f"m{i}", instance, is_classic=i >= newer) for i, instance in enumerate(self.scope.instances)
        )
        self._number(World(None, clients), (0, ""))
        number = 0
        while number < len(self.worlds):
            self._explore(number)
            number += 1
            assert number <= self.at_most, "the search has too many states"
        for number in range(len(self.worlds)):
            self._check_converges(number)
        return self

    @property
    def reached(self) -> Reached:
        """What the search has reached so far."""
        return self._stepping.reached

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

    def _moves(self, world: World) -> Iterator[NamedPlay]:
        group = world.decoded()
        for index, client in enumerate(world.clients):
            clients = self._classic if client.is_classic else self._newer
            for name, play in clients.moves(world, index):
                yield f"m{index} {name}", play
        for timer in () if group is None else sorted(group.timers.keys() - {"expiry"}):
            yield f"time of {timer} ends", partial(self._fire, timer=timer)
        if group is not None and self.scope.later and not world.is_later:
            yield "topics appear", self._describe
        if group is not None and self.scope.passes_time:
            yield "time passes", self._pass_time

    def _fire(self, world: World, timer: str) -> World:
        group = world.decoded()
        assert group is not None
        due = group.timers[timer]
        group.timers[timer] = type(due)(due.kind, NOW - due.timeout_ms, due.timeout_ms, due.member_id, due.generation)
        executed = self._stepping.step(world._replace(group=snapshot.encode(group)), [])
        return self._stepping.after(world, executed)

    def _describe(self, world: World) -> World:
        later = world._replace(is_later=True)
        body = TopicsDescribedRequest(later.catalogue(self.scope))
        return self._stepping.send(later, body)[0]

    def _pass_time(self, world: World) -> World:
        group = world.decoded()
        assert group is not None
        return world._replace(group=aged(group))

    # ---- requests that must be refused or accepted ---------------------------------------------------------

    def _check_refusals(self, world: World) -> None:
        group = world.decoded()
        refused = list(refusals(None if group is None else consumer_part(group), world.clients))
        requests = [self._stepping.request(each.body) for each in refused]
        executed = self._stepping.step(world, requests)
        errors = errors_of(executed)
        for each, request in zip(refused, requests, strict=True):
            actual = errors[request.address.correlation_id]
            assert actual is each.expected, f"{each.name}: {actual.name} instead of {each.expected.name}"
        after = executed.result.group
        assert not executed.result.journal, "a refused request has changed something"
        if group is not None and after is not None:
            assert group.timers == after.timers, "a refused request has restarted a timer"

    def _check_commits(self, world: World) -> None:
        group = world.decoded()
        consumer = consumer_part(group)
        if consumer is None:
            return
        bodies = [body for client in world.clients for body in may_commit(client, consumer)]
        executed = self._stepping.step(world, [self._stepping.request(body) for body in bodies])
        assert set(errors_of(executed).values()) <= {Error.OFFSET_METADATA_TOO_LARGE}, "an owner cannot commit"

    # ---- convergence ---------------------------------------------------------------------------------------

    def _check_converges(self, number: int) -> None:
        """Let members that are gone expire, and the others follow the protocol.

        As in Kafka 4.3, only a join or a heartbeat of a newer member leads to a new target. So in a group with classic
        members, the newer ones join again.
        """
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
        steps: tuple[str, ...] = CLASSIC_STEPS if self.worlds[number].clients[index].is_classic else NEWER_STEPS
        if self.scope.classic and steps == NEWER_STEPS:
            steps = ("joins", *steps)
        for step_name in steps:
            name = f"m{index} {step_name}"
            if name in edges:
                number = edges[name]
                edges = self.edges[number]
        return number

    def _expire_members_that_are_gone(self, number: int) -> int:
        world = self.worlds[number]
        present = {client.member_id for client in world.clients if client.epoch is not None}
        consumer = consumer_of(world.decoded())
        for member_id in () if consumer is None else consumer.members.keys() - present:
            number = self.edges[number].get(f"time of heartbeat-{member_id} ends", number)
        return number
