"""The breadth-first search: make every move in every state that is reachable, and check every invariant."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from traceback import extract_tb
from typing import NamedTuple, Self

import msgspec

from coordinator_logic import snapshot
from coordinator_logic.config import NEW_MEMBER_JOIN_TIMEOUT_MS, CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Place, ReplyAddress, Request, Response
from coordinator_logic.group import Group
from coordinator_logic.group.timer import EXPIRY, HEARTBEAT
from coordinator_logic.groups.classic import timers
from coordinator_logic.groups.classic.records import GenerationStarted, StateChanged
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
from coordinator_logic.records import GroupDeleted, TimerCause
from coordinator_logic.states import State
from coordinator_logic.step import StepResult, step
from tests.logic.exhaustive.canonical import canonical
from tests.logic.exhaustive.moves import JOIN, PARK, RESTART, TICK, Move, assigned, moves, refusals
from tests.logic.exhaustive.scope import GROUP_ID, UNIT_MS, Scope
from tests.logic.invariants import Step, check_step
from tests.support.parts import classic


class ConcreteState(NamedTuple):
    """A concrete instance of a state: the encoded group, the time, and the coordinator's start (ms since the epoch)."""

    group: bytes | None
    now: int
    started_at: int

    def decoded(self) -> Group | None:
        """Decode the group."""
        return None if self.group is None else snapshot.decode(self.group)


@dataclass
class Reached:
    """What the search has reached."""

    states: set[State | None] = field(default_factory=set)
    transitions: set[tuple[State, State]] = field(default_factory=set)
    timers: set[str] = field(default_factory=set)
    records: set[type] = field(default_factory=set)
    answers: set[tuple[str, Error]] = field(default_factory=set)


class BrokenContract(AssertionError):
    """A move breaks the contract or an invariant. The message has the shortest path to it."""


def _failed_invariant(error: AssertionError) -> str:
    """Return the failed invariant's name and its message."""
    broken = extract_tb(error.__traceback__)[-1]
    return f"{broken.name}: {str(error) or broken.line}"


class Search:
    """All states of a scope. ``edges[i]`` maps the name of each move from state ``i`` to the next state."""

    def __init__(self, scope: Scope, at_most: int = 1_000_000) -> None:
        self.scope = scope
        self.at_most = at_most
        self.concrete_states: list[ConcreteState] = []
        self.edges: list[dict[str, int]] = []
        self.reached = Reached()
        self._state_numbers: dict[object, int] = {}
        self._predecessors: list[tuple[int, str]] = []
        self._offset = 0

    # ---- what subclasses override --------------------------------------------------------------------------

    def moves(self, group: Group | None) -> Iterable[Move]:
        """Yield the moves in a state."""
        return moves(self.scope, group)

    def refusals(self, group: Group | None) -> Iterable[Move]:
        """Yield the requests that must be refused in a state and change nothing."""
        return refusals(self.scope, group)

    def key(self, group: Group | None, current: ConcreteState) -> Hashable:
        """Return the key of a state; states with the same key are equal."""
        return canonical(group, current.now, current.started_at, self.scope)

    def check(self, step: Step, last_move: Move | None) -> None:
        """Check the invariants of this search after a step; ``last_move`` is None if only time has passed."""
        group = step.result.group
        if group is not None:
            _a_stable_group_has_the_assignment_of_its_generation(group)
            _timers_have_the_requested_timeouts(group, self.scope)
            if last_move is not None:
                _a_response_without_change_renews_no_session(step, last_move)

    def check_unchanged(self, step: Step) -> None:
        """Check the responses of a step that must not change the group."""

    # ---- the search ----------------------------------------------------------------------------------------

    def run(self) -> Self:
        """Explore until there is no new state."""
        now = self.scope.first_tick
        self._number(None, ConcreteState(None, now, 0), (0, "nothing"))
        next_state = 0
        while next_state < len(self.concrete_states):
            self._explore(next_state)
            next_state += 1
            assert len(self.concrete_states) <= self.at_most, "the search has too many states"
        return self

    def path_to(self, state: int) -> list[str]:
        """Return the moves of the shortest path to a state."""
        path: list[str] = []
        while state:
            state, name = self._predecessors[state]
            path.append(name)
        return path[::-1]

    # ---- one state -----------------------------------------------------------------------------------------

    def _explore(self, state: int) -> None:
        current = self.concrete_states[state]
        group = current.decoded()
        self.reached.states.add(None if group is None else group.state)
        edges: dict[str, int] = {}
        self.edges.append(edges)
        self._check_refusals(state, current, group)
        for move in self.moves(group):
            assert move.name not in edges
            edges[move.name] = self._make_move(state, current, move)
        if group is not None:
            edges[TICK] = self._pass_time(state, TICK, current._replace(now=current.now + UNIT_MS))
            if self.scope.restarts:
                edges[RESTART] = self._pass_time(state, RESTART, current._replace(started_at=current.now))

    def _make_move(self, state: int, current: ConcreteState, move: Move) -> int:
        request = self._request(move, current.now)
        try:
            executed = self._step(current, [request])
            outcome = outcome_of(request, executed)
            assert outcome in move.expected, f"{outcome} instead of {' or '.join(move.expected)}"
            self.check(executed, move)
        except AssertionError as error:
            raise self._broken_contract(state, move.name, error) from error
        return self._add_successor(state, move.name, current, executed.result)

    def _pass_time(self, state: int, name: str, current: ConcreteState) -> int:
        try:
            executed = self._step(current, [])
            assert name is TICK or not executed.result.journal, "a restart has expelled a member"
            self.check(executed, None)
            self._check_that_deadlines_come_first(current, executed.result)
        except AssertionError as error:
            raise self._broken_contract(state, name, error) from error
        return self._add_successor(state, name, current, executed.result)

    def _check_that_deadlines_come_first(self, current: ConcreteState, passed: StepResult) -> None:
        """Check that a request at the time of a deadline finds the group after the deadline."""
        describe = Move("describe", "DescribeGroups", 6, DescribeGroupsRequest([GROUP_ID]), frozenset())
        observed = self._step(current, [self._request(describe, current.now)]).result
        (described,) = [r.body.groups[0] for r in observed.responses if isinstance(r.body, DescribeGroupsResponse)]
        members = [] if passed.group is None else list(classic(passed.group).members)
        assert described.group_state == (State.DEAD if passed.group is None else passed.group.state).value
        assert [member.member_id for member in described.members] == members
        assert observed.journal == passed.journal
        assert (observed.group is None) == (passed.group is None)
        if observed.group is not None and passed.group is not None:
            assert msgspec.structs.replace(observed.group, clock=passed.group.clock) == passed.group

    def _check_refusals(self, state: int, current: ConcreteState, group: Group | None) -> None:
        """Send all refused requests of this state in one batch; check their errors, and that the group is unchanged."""
        refused = list(self.refusals(group))
        requests = [self._request(move, current.now) for move in refused]
        try:
            executed = self._step(current, requests)
            result = executed.result
            self.check_unchanged(executed)
            errors = {r.address.correlation_id: error_of(r) for r in result.responses}
            for move, request in zip(refused, requests, strict=True):
                (expected,) = move.expected
                actual = errors.get(request.address.correlation_id)
                assert actual == expected, f"{move.name}: {actual} instead of {expected}"
            if group is not None:
                group.clock = current.now
            assert result.group == group, "a refused request has changed something"
        except AssertionError as error:
            raise self._broken_contract(state, "refused requests", error) from error

    def _broken_contract(self, state: int, move: str, error: AssertionError) -> BrokenContract:
        return BrokenContract(f"{' > '.join([*self.path_to(state), move])}: {_failed_invariant(error)}")

    # ---- one step ------------------------------------------------------------------------------------------

    def _request(self, move: Move, now: int) -> Request:
        self._offset += 1
        address = ReplyAddress(move.api, move.version, str(self._offset), 0, now)
        return Request(Place(now, 0, self._offset), address, "client", "/127.0.0.1", move.body)

    def _step(self, current: ConcreteState, requests: list[Request]) -> Step:
        config: CoordinatorConfig = self.scope.config
        result = step(GROUP_ID, current.decoded(), requests, current.now, started_at=current.started_at, config=config)
        executed = Step(current.decoded(), requests, current.now, current.started_at, config, result)
        check_step(executed)
        self._record_reached(executed)
        return executed

    def _record_reached(self, executed: Step) -> None:
        reached = self.reached
        for entry in executed.result.journal:
            reached.records.add(type(entry.record))
            if isinstance(entry.record, StateChanged):
                reached.transitions.add((State(entry.record.from_state), State(entry.record.to_state)))
            elif isinstance(entry.record, GroupDeleted):
                reached.transitions.add((State.EMPTY, State.DEAD))
            if isinstance(entry.cause, TimerCause):
                reached.timers.add(entry.cause.timer)
        for response in executed.result.responses:
            for code in error_of(response).split(","):
                reached.answers.add((response.address.api, Error(int(code))))

    def _add_successor(self, state: int, name: str, current: ConcreteState, result: StepResult) -> int:
        group = result.group
        encoded = None if group is None else snapshot.encode(group)
        return self._number(group, ConcreteState(encoded, current.now, current.started_at), (state, name))

    def _number(self, group: Group | None, current: ConcreteState, predecessor: tuple[int, str]) -> int:
        key = self.key(group, current)
        number = self._state_numbers.setdefault(key, len(self.concrete_states))
        if number == len(self.concrete_states):
            self.concrete_states.append(current)
            self._predecessors.append(predecessor)
        return number


def _a_stable_group_has_the_assignment_of_its_generation(group: Group) -> None:
    """Check the assignments of all members, including static members that rejoined with a new id."""
    if group.state is State.STABLE:
        assert all(member.assignment == assigned(group) for member in classic(group).members.values())


def _a_response_without_change_renews_no_session(step: Step, last_move: Move) -> None:
    """Check that a rejoin without a rebalance and a sync in a Stable group renew no session, as in a broker."""
    before, group = step.before, step.result.group
    rejoins = isinstance(last_move.body, JoinGroupRequest) and last_move.body.member_id and last_move.expected == {"0"}
    syncs = isinstance(last_move.body, SyncGroupRequest) and before is not None and before.state is State.STABLE
    if before is not None and group is not None and (rejoins or syncs):
        sessions = [timer for timer in group.timers.values() if timer.kind == HEARTBEAT]
        assert sessions == [timer for timer in before.timers.values() if timer.kind == HEARTBEAT]


def _timers_have_the_requested_timeouts(group: Group, scope: Scope) -> None:
    """Check that every timer has the requested timeout."""
    session, rebalance, delay = (units * UNIT_MS for units in (scope.session, scope.rebalance, scope.delay))
    for timer in group.timers.values():
        member = classic(group).members.get(timer.member_id)
        first = {NEW_MEMBER_JOIN_TIMEOUT_MS} if member is not None and member.is_new else set()
        legal = {
            HEARTBEAT: {session} | first,
            timers.INITIAL_JOIN: {delay},
            timers.JOIN: {rebalance},
            timers.SYNC: {rebalance},
            EXPIRY: {UNIT_MS * units for units in range(1, 10)},
        }
        assert timer.timeout_ms in legal[timer.kind], f"{timer.kind} is armed with {timer.timeout_ms} ms"
    if "join" in group.timers and group.timers["join"].kind == timers.INITIAL_JOIN:
        waited = group.timers["join"].armed_at + delay - group.part.state_timestamp
        assert waited <= max(delay, rebalance), "the initial delay grows beyond the rebalance timeout"


def outcome_of(request: Request, executed: Step) -> str:
    """Return the outcome of a request: :data:`PARK`, :data:`JOIN` or an error code."""
    mine = [response for response in executed.result.responses if response.address == request.address]
    if not mine:
        return JOIN if request.address.api == "JoinGroup" else PARK
    started = any(isinstance(record, GenerationStarted) for record in executed.records)
    is_joined = isinstance(mine[0].body, JoinGroupResponse) and not mine[0].error_code and started
    return JOIN if is_joined else error_of(mine[0])


def error_of(response: Response) -> str:
    """Return the error code of the response, or the comma-separated codes of its entries."""
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
