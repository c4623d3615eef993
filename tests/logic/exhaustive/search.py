"""The search itself: from no group at all, breadth first, every move in every state, every invariant on every move."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from traceback import extract_tb
from typing import NamedTuple, Self

import msgspec

from coordinator_logic import snapshot
from coordinator_logic.config import NEW_MEMBER_JOIN_TIMEOUT_MS, CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Place, ReplyAddress, Request, Response
from coordinator_logic.group import Group, TimerKind
from coordinator_logic.messages import (
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupResponse,
    OffsetCommitResponse,
    OffsetDeleteResponse,
    SyncGroupRequest,
    TxnOffsetCommitResponse,
)
from coordinator_logic.records import GenerationStarted, GroupDeleted, StateChanged, TimerCause
from coordinator_logic.states import State
from coordinator_logic.step import StepResult, step
from tests.logic.exhaustive.canonical import canonical
from tests.logic.exhaustive.moves import JOIN, PARK, RESTART, TICK, Move, assigned, moves, refusals
from tests.logic.exhaustive.scope import GROUP_ID, UNIT_MS, Scope
from tests.logic.invariants import Step, check_step


class World(NamedTuple):
    """A state with real names and times: the group, what time it is, when the coordinator was started (ms)."""

    group: bytes | None
    now: int
    started_at: int

    def decoded(self) -> Group | None:
        """A copy of the group."""
        return None if self.group is None else snapshot.decode(self.group)


@dataclass
class Reached:
    """What the search has seen happen."""

    states: set[State | None] = field(default_factory=set)
    transitions: set[tuple[State, State]] = field(default_factory=set)
    timers: set[TimerKind] = field(default_factory=set)
    records: set[type] = field(default_factory=set)
    answers: set[tuple[str, Error]] = field(default_factory=set)


class Found(AssertionError):
    """A move that breaks the contract or an invariant, with the shortest way there."""


def _why(error: AssertionError) -> str:
    """What an invariant said, with its name."""
    broken = extract_tb(error.__traceback__)[-1]
    return f"{broken.name}: {str(error) or broken.line}"


class Search:
    """All states of a scope. ``edges[i]`` are the moves from state ``i`` by name, with the state that each leads to."""

    def __init__(self, scope: Scope, at_most: int = 1_000_000) -> None:
        self.scope = scope
        self.at_most = at_most
        self.worlds: list[World] = []
        self.edges: list[dict[str, int]] = []
        self.reached = Reached()
        self.transitions = 0
        self._numbers: dict[object, int] = {}
        self._came_by: list[tuple[int, str]] = []
        self._offset = 0

    # ---- what another search does in its own way -------------------------------------------------------------

    def moves(self, group: Group | None) -> Iterable[Move]:
        """What may be asked in a state."""
        return moves(self.scope, group)

    def refusals(self, group: Group | None) -> Iterable[Move]:
        """What must be refused in a state, and change nothing."""
        return refusals(self.scope, group)

    def key(self, group: Group | None, world: World) -> Hashable:
        """What makes two states the same."""
        return canonical(group, world.now, world.started_at, self.scope)

    def check(self, step: Step, made: Move | None) -> None:
        """What must hold of a step in this search only; ``made`` is None where only time has passed."""
        group = step.result.group
        if group is not None:
            a_stable_group_has_the_assignment_of_its_generation(group)
            timeouts_are_what_was_asked_for(group, self.scope)
            if made is not None:
                an_answer_from_the_generation_is_no_sign_of_life(step, made)

    def check_looks(self, step: Step) -> None:
        """What must hold of the answers where nothing has changed."""

    # ---- the search ----------------------------------------------------------------------------------------

    def run(self) -> Self:
        """Explore until nothing new is found."""
        now = self.scope.first_tick
        self._number(None, World(None, now, 0), (0, "nothing"))
        following = 0
        while following < len(self.worlds):
            self._explore(following)
            following += 1
            assert len(self.worlds) <= self.at_most, "the search does not end"
        return self

    def way_to(self, state: int) -> list[str]:
        """The moves that led to a state first."""
        way: list[str] = []
        while state:
            state, name = self._came_by[state]
            way.append(name)
        return way[::-1]

    # ---- one state -----------------------------------------------------------------------------------------

    def _explore(self, state: int) -> None:
        world = self.worlds[state]
        group = world.decoded()
        self.reached.states.add(None if group is None else group.state)
        edges: dict[str, int] = {}
        self.edges.append(edges)
        self._check_refusals(state, world, group)
        for move in self.moves(group):
            assert move.name not in edges
            edges[move.name] = self._make(state, world, move)
        if group is not None:
            edges[TICK] = self._pass(state, TICK, world._replace(now=world.now + UNIT_MS))
            if self.scope.restarts:
                edges[RESTART] = self._pass(state, RESTART, world._replace(started_at=world.now))

    def _make(self, state: int, world: World, move: Move) -> int:
        request = self._request(move, world.now)
        try:
            taken = self._step(world, [request])
            outcome = outcome_of(request, taken)
            assert outcome in move.expected, f"{outcome} instead of {' or '.join(move.expected)}"
            self.check(taken, move)
        except AssertionError as error:
            raise Found(f"{' > '.join([*self.way_to(state), move.name])}: {_why(error)}") from error
        return self._arrive(state, move.name, world, taken.result)

    def _pass(self, state: int, name: str, world: World) -> int:
        try:
            taken = self._step(world, [])
            assert name is TICK or not taken.result.journal, "a start expels nobody"
            self.check(taken, None)
            self._check_that_deadlines_come_first(world, taken.result)
        except AssertionError as error:
            raise Found(f"{' > '.join([*self.way_to(state), name])}: {_why(error)}") from error
        return self._arrive(state, name, world, taken.result)

    def _check_that_deadlines_come_first(self, world: World, passed: StepResult) -> None:
        """A request that comes at the very time of a deadline finds the group as the deadline leaves it."""
        look = Move("a look", "DescribeGroups", 6, DescribeGroupsRequest([GROUP_ID]), frozenset())
        seen = self._step(world, [self._request(look, world.now)]).result
        (described,) = [r.body.groups[0] for r in seen.responses if isinstance(r.body, DescribeGroupsResponse)]
        members = [] if passed.group is None else list(passed.group.members)
        assert described.group_state == (State.DEAD if passed.group is None else passed.group.state).value
        assert [member.member_id for member in described.members] == members
        assert seen.journal == passed.journal
        assert (seen.group is None) == (passed.group is None)
        if seen.group is not None and passed.group is not None:
            assert msgspec.structs.replace(seen.group, clock=passed.group.clock) == passed.group

    def _check_refusals(self, state: int, world: World, group: Group | None) -> None:
        """Send all that is refused here in one batch: each gets its error, and the group is as it was."""
        refused = list(self.refusals(group))
        requests = [self._request(move, world.now) for move in refused]
        try:
            taken = self._step(world, requests)
            result = taken.result
            self.check_looks(taken)
            errors = {r.address.correlation_id: error_of(r) for r in result.responses}
            for move, request in zip(refused, requests, strict=True):
                (expected,) = move.expected
                given = errors.get(request.address.correlation_id)
                assert given == expected, f"{move.name}: {given} instead of {expected}"
            if group is not None:
                group.clock = world.now
            assert result.group == group, "a refused request has changed something"
        except AssertionError as error:
            raise Found(f"{' > '.join([*self.way_to(state), 'what must be refused'])}: {_why(error)}") from error

    # ---- one step ------------------------------------------------------------------------------------------

    def _request(self, move: Move, now: int) -> Request:
        self._offset += 1
        address = ReplyAddress(move.api, move.version, str(self._offset), 0, now)
        return Request(Place(now, 0, self._offset), address, "client", "/127.0.0.1", move.body)

    def _step(self, world: World, requests: list[Request]) -> Step:
        config: CoordinatorConfig = self.scope.config
        result = step(GROUP_ID, world.decoded(), requests, world.now, started_at=world.started_at, config=config)
        taken = Step(world.decoded(), requests, world.now, world.started_at, config, result)
        check_step(taken)
        self._note(taken)
        self.transitions += 1
        return taken

    def _note(self, taken: Step) -> None:
        reached = self.reached
        for entry in taken.result.journal:
            reached.records.add(type(entry.record))
            if isinstance(entry.record, StateChanged):
                reached.transitions.add((State(entry.record.from_state), State(entry.record.to_state)))
            elif isinstance(entry.record, GroupDeleted):
                reached.transitions.add((State.EMPTY, State.DEAD))
            if isinstance(entry.cause, TimerCause):
                reached.timers.add(TimerKind(entry.cause.timer))
        for response in taken.result.responses:
            for code in error_of(response).split(","):
                reached.answers.add((response.address.api, Error(int(code))))

    def _arrive(self, state: int, name: str, world: World, result: StepResult) -> int:
        group = result.group
        encoded = None if group is None else snapshot.encode(group)
        return self._number(group, World(encoded, world.now, world.started_at), (state, name))

    def _number(self, group: Group | None, world: World, came_by: tuple[int, str]) -> int:
        key = self.key(group, world)
        number = self._numbers.setdefault(key, len(self.worlds))
        if number == len(self.worlds):
            self.worlds.append(world)
            self._came_by.append(came_by)
        return number


def a_stable_group_has_the_assignment_of_its_generation(group: Group) -> None:
    """Of all members, those included that came back under another id."""
    if group.state is State.STABLE:
        assert all(member.assignment == assigned(group) for member in group.members.values())


def an_answer_from_the_generation_is_no_sign_of_life(step: Step, made: Move) -> None:
    """A rejoin that is answered at once, or a sync in a Stable group, prolongs no session, as in a broker."""
    before, group = step.before, step.result.group
    rejoins = isinstance(made.body, JoinGroupRequest) and made.body.member_id and made.expected == {"0"}
    syncs = isinstance(made.body, SyncGroupRequest) and before is not None and before.state is State.STABLE
    if before is not None and group is not None and (rejoins or syncs):
        sessions = [timer for timer in group.timers.values() if timer.kind is TimerKind.HEARTBEAT]
        assert sessions == [timer for timer in before.timers.values() if timer.kind is TimerKind.HEARTBEAT]


def timeouts_are_what_was_asked_for(group: Group, scope: Scope) -> None:
    """Nobody has more time than it asked for, nobody less."""
    session, rebalance, delay = (units * UNIT_MS for units in (scope.session, scope.rebalance, scope.delay))
    for timer in group.timers.values():
        member = group.members.get(timer.member_id)
        first = {NEW_MEMBER_JOIN_TIMEOUT_MS} if member is not None and member.is_new else set()
        legal = {
            TimerKind.HEARTBEAT: {session} | first,
            TimerKind.INITIAL_JOIN: {delay},
            TimerKind.JOIN: {rebalance},
            TimerKind.SYNC: {rebalance},
            TimerKind.EXPIRY: {UNIT_MS * units for units in range(1, 10)},
        }
        assert timer.timeout_ms in legal[timer.kind], f"{timer.kind.value} is armed with {timer.timeout_ms} ms"
    if "join" in group.timers and group.timers["join"].kind is TimerKind.INITIAL_JOIN:
        waited = group.timers["join"].armed_at + delay - group.state_timestamp
        assert waited <= max(delay, rebalance), "the initial delay grows beyond the rebalance timeout"


def outcome_of(request: Request, taken: Step) -> str:
    """What became of a request: parked, joined or an error."""
    mine = [response for response in taken.result.responses if response.address == request.address]
    if not mine:
        return JOIN if request.address.api == "JoinGroup" else PARK
    started = any(isinstance(record, GenerationStarted) for record in taken.records)
    is_joined = isinstance(mine[0].body, JoinGroupResponse) and not mine[0].error_code and started
    return JOIN if is_joined else error_of(mine[0])


def error_of(response: Response) -> str:
    """The error of the request, or those of its entries."""
    match response.body:
        case LeaveGroupResponse(members=[_, *_] as entries) | DeleteGroupsResponse(results=entries):
            codes = [entry.error_code for entry in entries]
        case OffsetCommitResponse(topics=topics) | TxnOffsetCommitResponse(topics=topics):
            codes = [partition.error_code for topic in topics for partition in topic.partitions]
        case OffsetDeleteResponse(topics=[_, *_] as topics):
            codes = [partition.error_code for topic in topics for partition in topic.partitions]
        case _:
            return str(response.error_code)
    return ",".join(map(str, codes)) if any(codes) else "0"
