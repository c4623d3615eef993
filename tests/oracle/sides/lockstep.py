"""Run one script against both sides, step by step and in real time, and compare the responses.

The broker arms its timers when it handles a request, our side when the request is sent, so the broker's fire slightly
later. A request is not sent while one of our deadlines is near: the deadline must first pass on both sides. Then the
new responses and the result of a DescribeGroups must be equal. If a round trip took so long that a deadline may have
passed in between, the run is inconclusive and has to be repeated.

A broker keeps members in a HashMap, our logic in the order of joining. If the responses differ, our step runs again
with the members in every other order, and a result that agrees with the broker replaces ours. An order can also show
later only, so our group can have several candidate states; later responses eliminate those that disagree.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

import msgspec

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from tests.oracle.scripts.script import References, Script, Send, Wait, client_id
from tests.oracle.sides.broker_side import BrokerSide, milliseconds
from tests.oracle.sides.canonical import Names
from tests.oracle.sides.connection import Connections
from tests.oracle.sides.logic_side import GroupState, LogicSide, Outcome

NEAR_MS = 50
"""The minimum time between a request and a deadline, to which twice the longest round trip of the script is added.

The state of the broker is compared the same time after a deadline of ours.
"""
DIFFERENCE_TIMEOUT_MS = 400
"""The time that a difference must last: a response can be in transit, and a timer can be late."""
UNDISTURBED_ATTEMPTS = 6
"""The number of comparisons in which it must last, without a pause of this machine."""
UNDISTURBED_MS = 80
MAX_STALL_MS = 10_000
ATTEMPT_INTERVAL_MS = 15
FIRST_ATTEMPT_WITH_VARIANTS = 1
MAX_WAIT_MS = 4_000
MAX_CANDIDATES = 24

Answers = dict[int, Any]


@dataclass(frozen=True)
class Exchange:
    """One comparison: what was sent, and the responses of both sides since the previous comparison."""

    at_ms: int
    description: str
    ours: Answers
    theirs: Answers
    our_group: Any = None
    their_group: Any = None


@dataclass
class ScriptRun:
    """The run of a script.

    ``difference`` names the APIs whose responses differ. ``inconclusive`` is the reason why the run proves nothing.
    ``answers`` counts compared responses by API and error code, ``states`` the observed states of the broker's group.
    """

    script: Script
    requests: int = 0
    compared: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    reordered: int = 0
    difference: str | None = None
    inconclusive: str | None = None
    exchanges: list[Exchange] = field(default_factory=list)


class _Different(Exception):
    """The responses of the sides differ."""


class _Inconclusive(Exception):
    """A difference cannot be distinguished from an effect of timing."""


@dataclass(frozen=True)
class _Comparison:
    """The occasion of a comparison: requests, or none if time has passed, at a time (ms since the epoch)."""

    description: str
    now: int
    requests: Sequence[Request] = ()


class Lockstep:
    """Runs one script once, in its own group."""

    def __init__(self, script: Script, group_id: str, connections: Connections, config: CoordinatorConfig) -> None:
        self.run = ScriptRun(script)
        self._ours = LogicSide(group_id, config)
        self._theirs = BrokerSide(connections, group_id)
        self._group_id = group_id
        self._candidates = [GroupState()]
        self._open: dict[int, Send] = {}
        self._names = (Names(), Names())
        self._started_at = milliseconds()
        self._margin_ms = NEAR_MS
        self._references: tuple[References, References]

    async def play(self) -> ScriptRun:
        """Run the script to its end, to the first difference, or until it is inconclusive."""
        try:
            producers = await self._producers()
            self._references = (References(self._group_id, producers), References(self._group_id, producers))
            for number, item in enumerate(self.run.script.steps):
                if isinstance(item, Wait):
                    await self._wait(item)
                else:
                    await self._send(number, item)
        except _Inconclusive as inconclusive:
            self.run.inconclusive = str(inconclusive)
        except _Different as different:
            self.run.difference = str(different)
        finally:
            await self._theirs.close()
        return self.run

    @property
    def group(self) -> Group | None:
        """A copy of our group."""
        return self._candidates[0].group

    async def _producers(self) -> dict[int, int]:
        used = set(_producer_numbers([s.body for s in self.run.script.steps if isinstance(s, Send)]))
        return {number: await self._theirs.new_producer_id(number) for number in sorted(used)}

    # ---- time ----------------------------------------------------------------------------------------------

    @property
    def _wake_at(self) -> int | None:
        """The earliest deadline of all candidates."""
        return min((candidate.wake_at for candidate in self._candidates if candidate.wake_at is not None), default=None)

    async def _wait(self, item: Wait) -> None:
        now = milliseconds()
        if item.ms is not None:
            end = now + item.ms
        elif self._wake_at is not None and self._wake_at < now + MAX_WAIT_MS:
            end = max(self._wake_at, now)
        else:
            return
        while (wake_at := self._wake_at) is not None and wake_at <= end:
            await _sleep_until(wake_at)
            await self._pass_deadlines()
        await _sleep_until(end)

    async def _pass_deadlines(self) -> bool:
        """Wait until near deadlines have passed on both sides, compare the results, and return whether any passed."""
        now = milliseconds()
        outcomes = [Outcome(candidate, {}) for candidate in self._candidates]
        passed = False
        while near := [deadline for deadline in self._deadlines(outcomes) if self._is_near(deadline, now, passed)]:
            await _sleep_until(max(near) + self._margin_ms)
            now, passed = milliseconds(), True
            outcomes = [self._ours.advance(candidate, [], now) for candidate in self._candidates]
        if passed:
            for candidate in self._candidates:
                outcomes += self._ours.timer_orders(candidate, now)
            await self._compare(_Comparison("time passes", now), outcomes)
        return passed

    def _is_near(self, deadline: int, now: int, passed: bool) -> bool:
        """Return whether to wait for a deadline; one that has passed here may still be due at the broker."""
        return deadline <= now + self._margin_ms and (not passed or deadline > now - self._margin_ms)

    def _deadlines(self, outcomes: Sequence[Outcome]) -> set[int]:
        candidates = [*self._candidates, *(outcome.after for outcome in outcomes)]
        return set(chain.from_iterable(candidate.deadlines() for candidate in candidates))

    # ---- requests ------------------------------------------------------------------------------------------

    async def _send(self, number: int, item: Send) -> None:
        passed = await self._pass_deadlines()
        if passed and self.run.script.joins_together and Wait not in map(type, self.run.script.steps[:number]):
            raise _Inconclusive(f"#{number}: a deadline passed between requests that belong together")
        connection = await self._theirs.connection()
        sender = client_id(item.actor)
        ours, theirs = (references.resolve(item) for references in self._references)
        now = milliseconds()
        self._theirs.send(connection, number, item.api, item.version, sender, theirs)
        self._open[number] = item
        self.run.requests += 1
        request = self._ours.request(number, item.api, item.version, sender, ours, now)
        outcomes = [self._ours.advance(candidate, [request], now) for candidate in self._candidates]
        description = f"#{number} {sender}: {item.api} v{item.version} {self._readable(ours)}"
        await self._compare(_Comparison(description, now, [request]), outcomes)

    def _readable(self, body: Any) -> str:
        text = msgspec.json.encode(self._names[0].copy().canonical(body)).decode()
        return text.replace(self._group_id, "g")

    # ---- comparing -----------------------------------------------------------------------------------------

    async def _compare(self, comparison: _Comparison, outcomes: Sequence[Outcome]) -> None:
        """Keep the outcomes, or variants of them, that agree with the broker."""
        limit = min((d for d in self._deadlines(outcomes) if d > comparison.now), default=comparison.now + MAX_STALL_MS)
        give_up_at = min(milliseconds() + DIFFERENCE_TIMEOUT_MS, limit - 5)
        await self._theirs.wait_for(set(outcomes[0].answers), give_up_at)
        undisturbed = 0
        for attempt in count():
            asked_at = milliseconds()
            await asyncio.sleep(ATTEMPT_INTERVAL_MS / 1000 if attempt or self._has_open_requests(outcomes[0]) else 0)
            probe = await self._theirs.probe()
            undisturbed += milliseconds() - asked_at < UNDISTURBED_MS
            theirs = {number: self._theirs.answers[number] for number in self._open if number in self._theirs.answers}
            self._margin_ms = max(self._margin_ms, NEAR_MS + 2 * (self._answered_at(comparison) - comparison.now))
            in_time = self._answered_at(comparison) < limit
            if self._keep_agreeing(outcomes, theirs, probe, comparison, MAX_CANDIDATES):
                break
            timed_out = milliseconds() > give_up_at and undisturbed >= UNDISTURBED_ATTEMPTS
            trying_variants = attempt == FIRST_ATTEMPT_WITH_VARIANTS or timed_out
            if trying_variants and self._keep_agreeing(self._variants(comparison), theirs, probe, comparison, 1):
                self.run.reordered += 1
                break
            if timed_out or milliseconds() > limit:
                self._report_difference(outcomes[0], theirs, probe, comparison, in_time and milliseconds() < limit)
        if not in_time:
            raise _Inconclusive(f"{comparison.description}: a deadline may have passed before the request")

    def _has_open_requests(self, outcome: Outcome) -> bool:
        """Return whether a request is parked on our side: the probe must not overtake it on another connection."""
        return any(number not in outcome.answers for number in self._open)

    def _answered_at(self, comparison: _Comparison) -> int:
        """Return the time by which the broker has handled the requests: the time of its response, or of the probe."""
        numbers = [int(request.address.correlation_id) for request in comparison.requests]
        return max((self._theirs.answered_at.get(number, milliseconds()) for number in numbers), default=comparison.now)

    def _variants(self, comparison: _Comparison) -> Iterator[Outcome]:
        for candidate in self._candidates:
            yield from self._ours.variants(candidate, comparison.requests, comparison.now)

    def _canonical(self, names: Names, answers: Mapping[int, Any], probe: Any) -> tuple[Answers, Any]:
        by_step = {number: names.canonical(answers[number]) for number in sorted(answers)}
        return by_step, names.canonical(probe)

    def _keep_agreeing(
        self, outcomes: Iterable[Outcome], theirs: Mapping[int, Any], probe: Any, comparison: _Comparison, at_most: int
    ) -> bool:
        """Keep at most ``at_most`` outcomes that agree with the broker; return whether there is one."""
        their_names = self._names[1].copy()
        broker_view = self._canonical(their_names, theirs, probe)
        agreeing: dict[bytes | None, Outcome] = {}
        names = self._names[0]
        for outcome in outcomes:
            if outcome.answers.keys() != theirs.keys() or outcome.after.snapshot in agreeing:
                continue
            our_names = self._names[0].copy()
            if (
                self._canonical(our_names, outcome.answers, self._ours.probe(outcome.after, comparison.now))
                == broker_view
            ):
                agreeing[outcome.after.snapshot] = outcome
                names = our_names
                if len(agreeing) == at_most:
                    break
        if not agreeing:
            return False
        self._names = (names, their_names)
        self._candidates = [outcome.after for outcome in agreeing.values()]
        self._learn(next(iter(agreeing.values())), theirs, broker_view[0])
        self._record_exchange(comparison, broker_view, broker_view)
        return True

    def _learn(self, outcome: Outcome, theirs: Mapping[int, Any], canonical: Answers) -> None:
        for number in theirs:
            item = self._open.pop(number)
            self._references[0].learn(item.actor, outcome.answers[number])
            self._references[1].learn(item.actor, theirs[number])
            self.run.answers[f"{item.api} {_error(canonical[number])}"] += 1
        self.run.compared += len(theirs)

    def _report_difference(
        self, outcome: Outcome, theirs: Mapping[int, Any], probe: Any, comparison: _Comparison, certain: bool
    ) -> None:
        our_view = self._canonical(self._names[0], outcome.answers, self._ours.probe(outcome.after, comparison.now))
        broker_view = self._canonical(self._names[1], theirs, probe)
        self._record_exchange(comparison, our_view, broker_view)
        if not certain:
            raise _Inconclusive(f"{comparison.description}: the sides differ, but a deadline is near")
        differing = {n for n in {*our_view[0], *broker_view[0]} if our_view[0].get(n) != broker_view[0].get(n)}
        raise _Different("+".join(sorted({self._open[n].api for n in differing})) or "state of the group")

    def _record_exchange(self, comparison: _Comparison, ours: tuple[Answers, Any], theirs: tuple[Answers, Any]) -> None:
        at_ms = comparison.now - self._started_at
        self.run.exchanges.append(Exchange(at_ms, comparison.description, ours[0], theirs[0], ours[1], theirs[1]))
        self.run.states[theirs[1]["groups"][0]["groupState"]] += 1


async def _sleep_until(moment: int) -> None:
    while (left := moment - milliseconds()) > 0:
        await asyncio.sleep(left / 1000)


def _error(answer: Any) -> int:
    """Return the first error code in a response, at the top level or in an entry; 0 if there is none."""
    if isinstance(answer, list):
        return next((error for error in map(_error, answer) if error), 0)
    if not isinstance(answer, dict):
        return 0
    return int(answer.get("errorCode", 0)) or _error(list(answer.values()))


def _producer_numbers(value: Any) -> Iterable[int]:
    if isinstance(value, list):
        for item in value:
            yield from _producer_numbers(item)
    elif isinstance(value, dict):
        if value.get("ref") == "producer":
            yield value["number"]
        for item in value.values():
            yield from _producer_numbers(item)
