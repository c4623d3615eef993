"""One request's, or one fired timer's, turn at a group.

Handlers get a turn and nothing else: through it they record what changes, answer requests and arm timers. It
carries the time of the turn, so that nothing below it ever asks a clock.
"""

from dataclasses import dataclass, field

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import ReplyAddress, Request, Response
from coordinator_logic.group import Group, Member, Timer, TimerKind
from coordinator_logic.messages import JoinGroupResponse, ResponseBody, SyncGroupResponse
from coordinator_logic.records import (
    Cause,
    GroupCreated,
    GroupDeleted,
    JournalEntry,
    Record,
    RequestCause,
    StateChanged,
    TimerCause,
    apply,
)
from coordinator_logic.states import State


@dataclass(slots=True)
class Output:
    """What a step sends out, in order, and what it knows of the group's timers.

    None of them is due before ``nothing_due_before`` (ms since the epoch): so a request need not look at all of them.
    """

    responses: list[Response] = field(default_factory=list)
    journal: list[JournalEntry] = field(default_factory=list)
    nothing_due_before: int = 0


@dataclass(frozen=True, slots=True)
class FiredTimer:
    """A timer with the deadline at which it fired (ms since the epoch)."""

    timer: Timer
    deadline: int


def _cause(origin: Request | FiredTimer) -> Cause:
    if isinstance(origin, FiredTimer):
        return TimerCause(origin.timer.kind.value, origin.timer.member_id, origin.deadline)
    return RequestCause(
        origin.address.api,
        origin.address.version,
        getattr(origin.body, "member_id", ""),
        origin.client_id,
        origin.client_host,
        origin.address.correlation_id,
        origin.place.partition,
        origin.place.offset,
        origin.principal,
    )


@dataclass(slots=True)
class Turn:
    """A turn at the group ``group_id``; ``group`` is None while it does not exist. ``now`` is ms since the epoch."""

    group_id: str
    existing: Group | None
    now: int
    origin: Request | FiredTimer
    config: CoordinatorConfig
    output: Output
    _cause: Cause | None = None

    @property
    def group(self) -> Group:
        """The group, where the handler knows that it exists."""
        assert self.existing is not None, f"group {self.group_id!r} does not exist"
        return self.existing

    # ---- records -------------------------------------------------------------------------------------------

    def record(self, record: Record) -> None:
        """Apply a record to the group and write it to the journal, with the turn's cause."""
        group = self.group
        if self._cause is None:
            self._cause = _cause(self.origin)
        group.sequence += 1
        apply(group, record, self.now)
        self.output.journal.append(
            JournalEntry(self.group_id, group.incarnation, group.sequence, self.now, record, self._cause)
        )

    def create_group(self) -> None:
        """Create the group; only a request can."""
        assert isinstance(self.origin, Request), "a timer cannot create a group"
        place = self.origin.place
        self.existing = Group(self.group_id, f"{place.partition}-{place.offset}", clock=self.now)
        self.record(GroupCreated())

    def delete_group(self, reason: str) -> None:
        """Delete the group; what comes after finds none."""
        self.record(GroupDeleted(reason))
        self.existing = None

    def change_state(self, target: State, reason: str) -> None:
        """Record a transition of the group."""
        self.record(StateChanged(self.group.state.value, target.value, reason))

    # ---- answers -------------------------------------------------------------------------------------------

    def reply(self, address: ReplyAddress, body: ResponseBody, error: int | None = None) -> None:
        """Answer a request. ``error`` is the whole request's; by default the one at the top of ``body``."""
        error_code = getattr(body, "error_code", Error.NONE) if error is None else error
        self.output.responses.append(Response(address, self.group_id, int(error_code), body))

    def reply_to_parked_join(self, member: Member, body: JoinGroupResponse) -> None:
        """Answer the member's parked JoinGroup, if it has one."""
        if member.parked_join is not None:
            address, member.parked_join = member.parked_join, None
            self.reply(address, body)

    def reply_to_parked_sync(self, member: Member, body: SyncGroupResponse) -> bool:
        """Answer the member's parked SyncGroup; whether it had one."""
        if member.parked_sync is None:
            return False
        address, member.parked_sync = member.parked_sync, None
        self.reply(address, body)
        return True

    # ---- timers --------------------------------------------------------------------------------------------

    def _arm(self, key: str, timer: Timer) -> None:
        # Re-inserting keeps timers of the same deadline in the order in which they were armed.
        self.group.timers.pop(key, None)
        self.group.timers[key] = timer
        self.output.nothing_due_before = min(self.output.nothing_due_before, timer.armed_at + timer.timeout_ms)

    def arm_heartbeat(self, member_id: str, timeout_ms: int) -> None:
        """Start a member's session, or a handed-out member id's time to join, anew."""
        key = f"heartbeat-{member_id}"
        self._arm(key, Timer(TimerKind.HEARTBEAT, self.now, timeout_ms, member_id))

    def arm_session(self, member: Member) -> None:
        """Start a member's session anew, with its own timeout."""
        self.arm_heartbeat(member.member_id, member.session_timeout_ms)

    def cancel_heartbeat(self, member_id: str) -> None:
        """End a member's session timer."""
        self.group.timers.pop(f"heartbeat-{member_id}", None)

    def arm_initial_join(self, delay_ms: int, remaining_ms: int) -> None:
        """Wait ``delay_ms`` for the first members of a group; the delay can grow by ``remaining_ms``."""
        self._arm("join", Timer(TimerKind.INITIAL_JOIN, self.now, delay_ms, remaining_ms=remaining_ms))

    def arm_join(self, at_least_ms: int | None = None) -> None:
        """Give the members their longest rebalance timeout to join, or ``at_least_ms`` where that is more."""
        timeout = self.group.rebalance_timeout_ms
        if at_least_ms is not None:
            timeout = max(timeout, at_least_ms)
        self._arm("join", Timer(TimerKind.JOIN, self.now, timeout))

    def cancel_join(self) -> None:
        """End the join timer."""
        self.group.timers.pop("join", None)

    def arm_sync(self) -> None:
        """Give the members of this generation their longest rebalance timeout to sync."""
        group = self.group
        timer = Timer(TimerKind.SYNC, self.now, group.rebalance_timeout_ms, generation=group.generation)
        self._arm("sync", timer)

    def cancel_sync(self) -> None:
        """End the sync timer."""
        self.group.timers.pop("sync", None)

    def arm_expiry(self, tick: int) -> None:
        """Look for expired offsets at a time (ms since the epoch)."""
        self._arm("expiry", Timer(TimerKind.EXPIRY, self.now, tick - self.now))

    def cancel_expiry(self) -> None:
        """Look for expired offsets no more."""
        self.group.timers.pop("expiry", None)
