"""One script against both sides, in lockstep and in real time.

The broker's timers run on its own clock, a little later than ours: they are armed when it takes a request, ours
when the request is sent. So nothing is sent while a deadline of ours is near: it has to pass on both sides first.
Then the answers since the last comparison, and a probe (DescribeGroups), must be equal. Where a round trip took
so long that a deadline may have come before it, the run is doubtful: it is to be repeated, not judged.

A broker keeps members in a HashMap, we in the order in which they came. Where the answers differ, our step is run
again with the members in every other order, and what gives the broker's answers is taken over. Sometimes an order
shows only later: so there can be several ways in which our group may stand, of which later answers leave those
that agree.
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
from tests.oracle.canonical import Names
from tests.oracle.connection import Connections
from tests.oracle.ours import OurSide, Outcome, Standing
from tests.oracle.script import Knowledge, Script, Send, Wait, client_id
from tests.oracle.theirs import TheirSide, milliseconds

NEAR_MS = 50
"""No request is sent when a deadline is this near, and twice the longest round trip of the script. As long after a
deadline of ours the broker is asked whether it has passed there, too."""
PATIENCE_MS = 400
"""How long a difference must last: an answer may be on its way, a timer a little late."""
CALM_ATTEMPTS = 6
"""How often, and meanwhile without a stall of this machine."""
CALM_MS = 80
LONGEST_STALL_MS = 10_000
PAUSE_MS = 15
FIRST_ATTEMPT_WITH_VARIANTS = 1
LONGEST_WAIT_MS = 4_000
MOST_STANDINGS = 24

Answers = dict[int, Any]


@dataclass(frozen=True)
class Exchange:
    """What happened at one point of a script: what was sent, and what either side answered since the last one."""

    at_ms: int
    what: str
    ours: Answers
    theirs: Answers
    our_group: Any = None
    their_group: Any = None


@dataclass
class Played:
    """How a script went.

    ``difference`` names the API at which the sides parted, ``doubt`` why it proves nothing. ``answers`` counts what was
    compared by API and error code, ``states`` the states in which the broker's group was seen.
    """

    script: Script
    requests: int = 0
    compared: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    states: Counter[str] = field(default_factory=Counter)
    reordered: int = 0
    difference: str | None = None
    doubt: str | None = None
    exchanges: list[Exchange] = field(default_factory=list)


class _Parted(Exception):
    """The sides gave different answers."""


class _Doubtful(Exception):
    """What was observed proves nothing."""


@dataclass(frozen=True)
class _Turn:
    """What our side is to be compared with the broker for: requests (none: time has passed) at a moment."""

    what: str
    now: int
    requests: Sequence[Request] = ()


class Lockstep:
    """Plays one script, once, in a group of its own."""

    def __init__(self, script: Script, group_id: str, connections: Connections, config: CoordinatorConfig) -> None:
        self.played = Played(script)
        self._ours = OurSide(group_id, config)
        self._theirs = TheirSide(connections, group_id)
        self._group_id = group_id
        self._standings = [Standing()]
        self._open: dict[int, Send] = {}
        self._names = (Names(), Names())
        self._started_at = milliseconds()
        self._margin_ms = NEAR_MS
        self._knowledge: tuple[Knowledge, Knowledge]

    async def play(self) -> Played:
        """Play the script to its end, or to the first difference or doubt."""
        try:
            producers = await self._producers()
            self._knowledge = (Knowledge(self._group_id, producers), Knowledge(self._group_id, producers))
            for number, item in enumerate(self.played.script.steps):
                if isinstance(item, Wait):
                    await self._wait(item)
                else:
                    await self._send(number, item)
        except _Doubtful as doubt:
            self.played.doubt = str(doubt)
        except _Parted as parted:
            self.played.difference = str(parted)
        finally:
            await self._theirs.close()
        return self.played

    @property
    def group(self) -> Group | None:
        """Our group as it stands."""
        return self._standings[0].group

    async def _producers(self) -> dict[int, int]:
        used = set(_producer_numbers([s.body for s in self.played.script.steps if isinstance(s, Send)]))
        return {number: await self._theirs.new_producer_id(number) for number in sorted(used)}

    # ---- time ----------------------------------------------------------------------------------------------

    @property
    def _wake_at(self) -> int | None:
        """The next deadline, however our group stands."""
        return min((standing.wake_at for standing in self._standings if standing.wake_at is not None), default=None)

    async def _wait(self, item: Wait) -> None:
        now = milliseconds()
        if item.ms is not None:
            end = now + item.ms
        elif self._wake_at is not None and self._wake_at < now + LONGEST_WAIT_MS:
            end = max(self._wake_at, now)
        else:
            return
        while (wake_at := self._wake_at) is not None and wake_at <= end:
            await _sleep_until(wake_at)
            await self._pass_deadlines()
        await _sleep_until(end)

    async def _pass_deadlines(self) -> None:
        """Let the deadlines that are near pass on both sides, and compare what they led to."""
        now = milliseconds()
        outcomes = [Outcome(standing, {}) for standing in self._standings]
        passed = False
        while near := [deadline for deadline in self._deadlines(outcomes) if self._is_near(deadline, now, passed)]:
            await _sleep_until(max(near) + self._margin_ms)
            now, passed = milliseconds(), True
            outcomes = [self._ours.advance(standing, [], now) for standing in self._standings]
        if passed:
            for standing in self._standings:
                outcomes += self._ours.timer_orders(standing, now)
            await self._compare(_Turn("time passes", now), outcomes)

    def _is_near(self, deadline: int, now: int, passed: bool) -> bool:
        """Whether a deadline is to be waited for; one that has fired already, whether the broker may be late for it."""
        return deadline <= now + self._margin_ms and (not passed or deadline > now - self._margin_ms)

    def _deadlines(self, outcomes: Sequence[Outcome]) -> set[int]:
        standings = [*self._standings, *(outcome.after for outcome in outcomes)]
        return set(chain.from_iterable(standing.deadlines() for standing in standings))

    # ---- requests ------------------------------------------------------------------------------------------

    async def _send(self, number: int, item: Send) -> None:
        await self._pass_deadlines()
        connection = await self._theirs.connection()
        who = client_id(item.actor)
        ours, theirs = (knowledge.resolve(item) for knowledge in self._knowledge)
        now = milliseconds()
        self._theirs.send(connection, number, item.api, item.version, who, theirs)
        self._open[number] = item
        self.played.requests += 1
        request = self._ours.request(number, item.api, item.version, who, ours, now)
        outcomes = [self._ours.advance(standing, [request], now) for standing in self._standings]
        what = f"#{number} {who}: {item.api} v{item.version} {self._readable(ours)}"
        await self._compare(_Turn(what, now, [request]), outcomes)

    def _readable(self, body: Any) -> str:
        text = msgspec.json.encode(self._names[0].copy().canonical(body)).decode()
        return text.replace(self._group_id, "g")

    # ---- comparing -----------------------------------------------------------------------------------------

    async def _compare(self, turn: _Turn, outcomes: Sequence[Outcome]) -> None:
        """Take over the outcomes, or the variants of them, that agree with the broker."""
        limit = min((d for d in self._deadlines(outcomes) if d > turn.now), default=turn.now + LONGEST_STALL_MS)
        patience = min(milliseconds() + PATIENCE_MS, limit - 5)
        await self._theirs.wait_for(set(outcomes[0].answers), patience)
        calm = 0
        for attempt in count():
            asked_at = milliseconds()
            await asyncio.sleep(PAUSE_MS / 1000 if attempt or self._still_owed(outcomes[0]) else 0)
            probe = await self._theirs.probe()
            calm += milliseconds() - asked_at < CALM_MS
            theirs = {number: self._theirs.answers[number] for number in self._open if number in self._theirs.answers}
            self._margin_ms = max(self._margin_ms, NEAR_MS + 2 * (self._answered_at(turn) - turn.now))
            in_time = self._answered_at(turn) < limit
            if self._take_over(outcomes, theirs, probe, turn, MOST_STANDINGS):
                break
            out_of_patience = milliseconds() > patience and calm >= CALM_ATTEMPTS
            trying_variants = attempt == FIRST_ATTEMPT_WITH_VARIANTS or out_of_patience
            if trying_variants and self._take_over(self._variants(turn), theirs, probe, turn, 1):
                self.played.reordered += 1
                break
            if out_of_patience or milliseconds() > limit:
                self._give_up(outcomes[0], theirs, probe, turn, in_time and milliseconds() < limit)
        if not in_time:
            raise _Doubtful(f"{turn.what}: a deadline may have come before")

    def _still_owed(self, outcome: Outcome) -> bool:
        """Whether a request stays open on our side: the probe must not overtake it on another connection."""
        return any(number not in outcome.answers for number in self._open)

    def _answered_at(self, turn: _Turn) -> int:
        """Until when the broker has surely taken the turn's request: its answer; if it is parked, the probe's."""
        numbers = [int(request.address.correlation_id) for request in turn.requests]
        return max((self._theirs.answered_at.get(number, milliseconds()) for number in numbers), default=turn.now)

    def _variants(self, turn: _Turn) -> Iterator[Outcome]:
        for standing in self._standings:
            yield from self._ours.variants(standing, turn.requests, turn.now)

    def _canonical(self, names: Names, answers: Mapping[int, Any], probe: Any) -> tuple[Answers, Any]:
        by_step = {number: names.canonical(answers[number]) for number in sorted(answers)}
        return by_step, names.canonical(probe)

    def _take_over(
        self, outcomes: Iterable[Outcome], theirs: Mapping[int, Any], probe: Any, turn: _Turn, at_most: int
    ) -> bool:
        """Keep the outcomes that agree with the broker; whether there is one."""
        their_names = self._names[1].copy()
        theirs_seen = self._canonical(their_names, theirs, probe)
        agreeing: dict[bytes | None, Outcome] = {}
        names = self._names[0]
        for outcome in outcomes:
            if outcome.answers.keys() != theirs.keys() or outcome.after.snapshot in agreeing:
                continue
            our_names = self._names[0].copy()
            if self._canonical(our_names, outcome.answers, self._ours.probe(outcome.after, turn.now)) == theirs_seen:
                agreeing[outcome.after.snapshot] = outcome
                names = our_names
                if len(agreeing) == at_most:
                    break
        if not agreeing:
            return False
        self._names = (names, their_names)
        self._standings = [outcome.after for outcome in agreeing.values()]
        self._learn(next(iter(agreeing.values())), theirs, theirs_seen[0])
        self._note(turn, theirs_seen, theirs_seen)
        return True

    def _learn(self, outcome: Outcome, theirs: Mapping[int, Any], seen: Answers) -> None:
        for number in theirs:
            item = self._open.pop(number)
            self._knowledge[0].learn(item.actor, outcome.answers[number])
            self._knowledge[1].learn(item.actor, theirs[number])
            self.played.answers[f"{item.api} {_error(seen[number])}"] += 1
        self.played.compared += len(theirs)

    def _give_up(self, outcome: Outcome, theirs: Mapping[int, Any], probe: Any, turn: _Turn, certain: bool) -> None:
        ours_seen = self._canonical(self._names[0], outcome.answers, self._ours.probe(outcome.after, turn.now))
        theirs_seen = self._canonical(self._names[1], theirs, probe)
        self._note(turn, ours_seen, theirs_seen)
        if not certain:
            raise _Doubtful(f"{turn.what}: differs, but a deadline is too near to tell")
        differing = {n for n in {*ours_seen[0], *theirs_seen[0]} if ours_seen[0].get(n) != theirs_seen[0].get(n)}
        raise _Parted("+".join(sorted({self._open[n].api for n in differing})) or "state of the group")

    def _note(self, turn: _Turn, ours: tuple[Answers, Any], theirs: tuple[Answers, Any]) -> None:
        at_ms = turn.now - self._started_at
        self.played.exchanges.append(Exchange(at_ms, turn.what, ours[0], theirs[0], ours[1], theirs[1]))
        self.played.states[theirs[1]["groups"][0]["groupState"]] += 1


async def _sleep_until(moment: int) -> None:
    while (left := moment - milliseconds()) > 0:
        await asyncio.sleep(left / 1000)


def _error(answer: Any) -> int:
    """The first error in an answer, at its top or in an entry; 0 when there is none."""
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
