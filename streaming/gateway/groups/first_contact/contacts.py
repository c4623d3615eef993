"""Decides about groups that the gateway meets for the first time.

A group that this coordinator has never had may have offsets at the brokers' coordinator: its consumers have changed
only their address. Without these offsets they would read everything again, or skip what waits. So the gateway asks the
brokers once before the first request for such a group goes on, and has the coordinator take the offsets over.
"""

import asyncio
import logging
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from coordinator_logic.errors import Error
from coordinator_logic.messages import TopicToCommit
from streaming.client.errors import CoordinatorError
from streaming.gateway.groups.first_contact.broker_groups import BrokerGroup, Found, Unanswered
from streaming.gateway.wire.client_request import Caller, QuotaEntity

log = logging.getLogger(__name__)

WAIT_SECONDS = 4.0
"""How long a request waits for the decision. Less than the 5 s that consumers' requests have."""

DIRECTORY_SECONDS = 5.0
"""How long a lookup waits for the directory, which a gateway that has just started is still reading."""

GROUPS_TOGETHER = 50
"""Groups that one lookup asks for. There is one lookup at a time, however many clients bring new groups."""

MAX_WAITING = 1_000
MAX_WAITING_OF_A_CLIENT = 100
"""Groups that wait for a lookup. A request for a further one is answered at once, with a retriable error."""

LOOKUP_SECONDS = 0.001
"""What the lookup of a group takes of the event loop's time: two or three requests to a broker, with their answers."""

MAX_REMEMBERED = 100_000

ABSENT_SECONDS = 60.0
"""How long it is remembered that the brokers have nothing of a group, which may still get offsets there."""

RETRY_SECONDS = 1.0
"""How long another decision stands that a later lookup may change."""


class Outcome(StrEnum):
    """What came of a lookup; a label of the metric."""

    ABSENT = "absent"
    """The brokers have nothing of the group."""
    TAKEN_OVER = "taken-over"
    HAD_BEFORE = "had-before"
    """The brokers have offsets, but this coordinator has had the group: they are older than what it had."""
    HAS_MEMBERS = "has-members"
    """The group is refused, because it has members at the brokers."""
    HAS_OFFSETS = "has-offsets"
    """The group is refused, as the option ``first-contact`` says, because it has offsets at the brokers."""
    DENIED = "denied"
    """The group is refused, because the gateway may not look it up."""
    UNANSWERED = "unanswered"
    """It is not known what the brokers have: clients try again."""


PASSING = frozenset({Outcome.ABSENT, Outcome.TAKEN_OVER, Outcome.HAD_BEFORE})
"""The outcomes after which requests for the group go on."""

REFUSED_FOR_GOOD = frozenset({Outcome.HAS_OFFSETS, Outcome.DENIED})
"""The outcomes that only an operator changes: clients fail with an error that names the group."""

LASTING = frozenset({Outcome.TAKEN_OVER, Outcome.HAD_BEFORE})

REMEDIES = {
    Outcome.TAKEN_OVER: "its offsets at the brokers were taken over",
    Outcome.HAD_BEFORE: "its offsets at the brokers are not taken over, because this coordinator has had the group",
    Outcome.HAS_MEMBERS: "it has members at the brokers; stop them there, then its offsets are taken over",
    Outcome.HAS_OFFSETS: "it has offsets at the brokers, and first-contact=refuse; bring them with `offsets import`",
    Outcome.DENIED: (
        "the gateway's principal needs Describe on it at the brokers, to see whether it has offsets there; grant that, "
        "or set first-contact=off"
    ),
    Outcome.UNANSWERED: "it is not known whether it has offsets at the brokers",
}


class Directory(Protocol):
    """The groups that exist here, see :class:`~streaming.client.directory.GroupDirectory`."""

    def entry(self, group_id: str, /) -> object | None:
        """The line of a group; None without one."""

    def wait_complete(self, timeout: float, /) -> bool:
        """Wait until the directory is read."""


class _Decision(NamedTuple):
    outcome: Outcome
    until: float


class _Waiting(NamedTuple):
    decided: "asyncio.Future[Outcome]"
    entity: QuotaEntity


class FirstContacts:
    """The decisions, for one event loop.

    directory: the groups that exist here.
    find: what the brokers have of groups, see :class:`BrokerGroups`; whatever it raises leaves them undecided.
    had_before: those of some groups that this coordinator has had; it blocks, and may raise CoordinatorError.
    take_over: has the coordinator create a group with offsets; it raises CoordinatorError without its answer.
    count: counts an outcome.
    await_slice: waits until a client may use so many seconds of the event loop.
    refuses_offsets: whether a group with offsets at the brokers is refused, and nothing taken over.
    """

    def __init__(
        self,
        directory: Directory,
        find: Callable[[Sequence[str]], Awaitable[Found]],
        had_before: Callable[[Iterable[str]], set[str]],
        take_over: Callable[[str, list[TopicToCommit]], Awaitable[None]],
        count: Callable[[str], None],
        await_slice: Callable[[QuotaEntity, float], Awaitable[None]],
        *,
        refuses_offsets: bool = False,
    ) -> None:
        self._refuses_offsets = refuses_offsets
        self._directory = directory
        self._find = find
        self._had_before = had_before
        self._take_over = take_over
        self._count = count
        self._await_slice = await_slice
        self._decisions: OrderedDict[str, _Decision] = OrderedDict()
        self._waiting: dict[str, _Waiting] = {}
        self._waiting_of: Counter[QuotaEntity] = Counter()
        self._queue: deque[str] = deque()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_looking_up = False

    async def refusal(self, group_id: str, caller: Caller) -> Error | None:
        """Why a request for a group cannot go on; None if it can.

        COORDINATOR_LOAD_IN_PROGRESS is retriable: a later request may go on. GROUP_AUTHORIZATION_FAILED is not.
        """
        if not group_id or self._directory.entry(group_id) is not None:
            return None
        if self._known(group_id) is None and group_id not in self._waiting:
            await self._await_slice(caller.quota_entity, LOOKUP_SECONDS)
        known = self._known(group_id)
        if known is not None:
            return _refusal(known)
        waiting = self._waiting.get(group_id) or self._enqueue(group_id, caller.quota_entity)
        if waiting is None:
            return Error.COORDINATOR_LOAD_IN_PROGRESS
        done, _ = await asyncio.wait((waiting.decided,), timeout=WAIT_SECONDS)
        return _refusal(waiting.decided.result()) if done else Error.COORDINATOR_LOAD_IN_PROGRESS

    def _known(self, group_id: str) -> Outcome | None:
        """The outcome of a decision that still stands."""
        decision = self._decisions.get(group_id)
        return decision.outcome if decision is not None and decision.until > time.monotonic() else None

    async def close(self) -> None:
        """End all lookups."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _enqueue(self, group_id: str, entity: QuotaEntity) -> _Waiting | None:
        if len(self._waiting) >= MAX_WAITING or self._waiting_of[entity] >= MAX_WAITING_OF_A_CLIENT:
            return None
        waiting = self._waiting[group_id] = _Waiting(asyncio.get_running_loop().create_future(), entity)
        self._waiting_of[entity] += 1
        self._queue.append(group_id)
        if not self._is_looking_up:
            self._is_looking_up = True
            self._start(self._look_up_all())
        return waiting

    def _start(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look_up_all(self) -> None:
        try:
            await asyncio.to_thread(self._directory.wait_complete, DIRECTORY_SECONDS)
            while self._queue:
                group_ids = [self._queue.popleft() for _ in range(min(GROUPS_TOGETHER, len(self._queue)))]
                await self._look_up(group_ids)
        finally:
            self._is_looking_up = False

    async def _look_up(self, group_ids: Sequence[str]) -> None:
        absent = [group_id for group_id in group_ids if self._directory.entry(group_id) is None]
        for group_id in set(group_ids).difference(absent):
            self._decide(group_id, Outcome.ABSENT)
        try:
            found = await self._find(absent)
        # Brokers are away, or answer what no broker should: either leaves the groups undecided.
        except Exception as failure:
            found = dict.fromkeys(absent, Unanswered(repr(failure)))
        with_offsets: dict[str, list[TopicToCommit]] = {}
        for group_id in absent:
            match found.get(group_id, Unanswered("no broker coordinates it")):
                case Unanswered(reason, is_denied):
                    self._decide(group_id, Outcome.DENIED if is_denied else Outcome.UNANSWERED, reason)
                case BrokerGroup(has_members=True):
                    self._decide(group_id, Outcome.HAS_MEMBERS)
                case BrokerGroup(offsets=[]):
                    self._decide(group_id, Outcome.ABSENT)
                case BrokerGroup(offsets=offsets):
                    with_offsets[group_id] = offsets
        if with_offsets:
            # Not awaited: to read the journal may take long, and other groups need not wait for it.
            self._start(self._take_over_all(with_offsets))

    async def _take_over_all(self, with_offsets: dict[str, list[TopicToCommit]]) -> None:
        try:
            had_before = await asyncio.to_thread(self._had_before, list(with_offsets))
        # Without a decision, requests for the groups would be refused for good.
        except Exception as failure:
            for group_id in with_offsets:
                self._decide(group_id, Outcome.UNANSWERED, f"the journal cannot be read: {failure}")
            return
        for group_id, offsets in with_offsets.items():
            if group_id in had_before:
                self._decide(group_id, Outcome.HAD_BEFORE)
            elif self._refuses_offsets:
                self._decide(group_id, Outcome.HAS_OFFSETS)
            else:
                self._start(self._take_over_one(group_id, offsets))

    async def _take_over_one(self, group_id: str, offsets: list[TopicToCommit]) -> None:
        try:
            await self._take_over(group_id, offsets)
        except CoordinatorError as failure:
            self._decide(group_id, Outcome.UNANSWERED, f"they were not taken over: {failure}")
        else:
            self._decide(group_id, Outcome.TAKEN_OVER)

    def _decide(self, group_id: str, outcome: Outcome, reason: str = "") -> None:
        self._count(outcome)
        before = self._decisions.pop(group_id, None)
        if outcome is not Outcome.ABSENT and (before is None or before.outcome is not outcome):
            level = logging.INFO if outcome is Outcome.TAKEN_OVER else logging.WARNING
            log.log(level, "group %r: %s%s", group_id, REMEDIES[outcome], f" ({reason})" if reason else "")
        self._decisions[group_id] = _Decision(outcome, time.monotonic() + _seconds(outcome))
        if len(self._decisions) > MAX_REMEMBERED:
            self._decisions.popitem(last=False)
        waiting = self._waiting.pop(group_id)
        self._waiting_of[waiting.entity] -= 1
        if not self._waiting_of[waiting.entity]:
            del self._waiting_of[waiting.entity]
        waiting.decided.set_result(outcome)


def _seconds(outcome: Outcome) -> float:
    if outcome in LASTING:
        return float("inf")
    return ABSENT_SECONDS if outcome is Outcome.ABSENT else RETRY_SECONDS


def _refusal(outcome: Outcome) -> Error | None:
    if outcome in PASSING:
        return None
    return Error.GROUP_AUTHORIZATION_FAILED if outcome in REFUSED_FOR_GOOD else Error.COORDINATOR_LOAD_IN_PROGRESS
