"""A turn: the handling of one request or one fired timer by a group.

A turn is all that a handler gets: through it the handler records changes, answers requests and arms timers. It carries
the time of the turn, so that no code below it reads a clock.
"""

from dataclasses import dataclass, field

from msgspec import UNSET
from msgspec.structs import force_setattr

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import ReplyAddress, Request, Response
from coordinator_logic.group import Group
from coordinator_logic.group.deadlines import Deadlines
from coordinator_logic.group.part import PartT
from coordinator_logic.group.record import Record
from coordinator_logic.group.timer import HEARTBEAT, Timer
from coordinator_logic.messages import Message
from coordinator_logic.records import (
    Cause,
    GroupCreated,
    GroupDeleted,
    JournalEntry,
    OffsetsCommitted,
    RequestCause,
    TimerCause,
    TransactionEnded,
    apply,
    moves_back,
)
from coordinator_logic.sizes import shortened

COMMITTING = (OffsetsCommitted, TransactionEnded)
"""The records that change committed offsets; a union in its place would be made for each record."""


@dataclass(slots=True)
class Output:
    """The responses and journal entries of a step, in order.

    No timer of the group is due before ``nothing_due_before`` (ms since the epoch), so that a request before that time
    skips the search for due timers. ``searches`` counts the searches for the earliest deadline; ``deadlines`` are those
    of the group that was searched last, from the third search on. ``moved_back`` has, by its place in the journal, how
    many committed offsets an entry made lower; entries that made none lower are left out.
    """

    responses: list[Response] = field(default_factory=list)
    journal: list[JournalEntry] = field(default_factory=list)
    nothing_due_before: int = 0
    searches: int = 0
    deadlines: Deadlines | None = None
    moved_back: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FiredTimer:
    """A timer that fired, with its deadline (ms since the epoch)."""

    timer: Timer
    deadline: int


def _cause(origin: Request | FiredTimer, config: CoordinatorConfig) -> Cause:
    if isinstance(origin, FiredTimer):
        return TimerCause(origin.timer.kind, origin.timer.member_id, origin.deadline)
    return RequestCause(
        origin.address.api,
        origin.address.version,
        shortened(getattr(origin.body, "member_id", ""), config),
        shortened(origin.client_id, config),
        shortened(origin.client_host, config),
        origin.address.correlation_id,
        origin.place.partition,
        origin.place.offset,
        None if origin.principal is None else shortened(origin.principal, config),
        not origin.is_signed,
    )


@dataclass(slots=True)
class Turn:
    """A turn of a group; ``existing`` is None if the group does not exist. ``now`` is ms since the epoch."""

    group_id: str
    existing: Group | None
    now: int
    origin: Request | FiredTimer
    config: CoordinatorConfig
    output: Output
    _cause: Cause | None = None

    @property
    def group(self) -> Group:
        """The group, for a handler that knows that it exists."""
        assert self.existing is not None, f"group {self.group_id!r} does not exist"
        return self.existing

    def part_or_none(self, kind: type[PartT]) -> PartT | None:
        """The part of the group; None if the group does not exist, or is of another type."""
        part = None if self.existing is None else self.existing.part
        return part if isinstance(part, kind) else None

    # ---- records -------------------------------------------------------------------------------------------

    def record(self, record: Record) -> None:
        """Apply a record to the group and write it to the journal with the turn's cause."""
        group = self.group
        if self._cause is None:
            self._cause = _cause(self.origin, self.config)
        group.sequence += 1
        if isinstance(record, COMMITTING) and (count := moves_back(group, record)):
            self.output.moved_back[len(self.output.journal)] = count
        apply(group, record, self.now)
        config = self.config
        ends_turn = False if config.logic_version else UNSET
        self.output.journal.append(
            JournalEntry(
                self.group_id,
                group.incarnation,
                group.sequence,
                self.now,
                record,
                self._cause,
                config.job_epoch,
                ends_turn,
            )
        )

    def end(self) -> None:
        """Mark the last entry of the turn, which has one, as such."""
        if self.config.logic_version:
            # Nobody has seen the entry yet. A copy of it would cost several times as much.
            force_setattr(self.output.journal[-1], "ends_turn", True)

    def create_group(self) -> None:
        """Create the group; only a request can do so."""
        assert isinstance(self.origin, Request), "a timer cannot create a group"
        place = self.origin.place
        self.existing = Group(self.group_id, f"{place.partition}-{place.offset}", clock=self.now)
        self.record(GroupCreated())

    def delete_group(self, reason: str) -> None:
        """Delete the group; for later turns of the step it does not exist."""
        self.record(GroupDeleted(reason))
        self.existing = None

    # ---- answers -------------------------------------------------------------------------------------------

    def reply(self, address: ReplyAddress, body: Message, error: int | None = None) -> None:
        """Answer a request. ``error`` is the error of the whole request, by default the top-level one of ``body``."""
        error_code = getattr(body, "error_code", Error.NONE) if error is None else error
        self.output.responses.append(Response(address, self.group_id, int(error_code), body))

    # ---- timers --------------------------------------------------------------------------------------------

    def arm(self, key: str, timer: Timer) -> None:
        """Arm a timer, in place of one with the same key."""
        # Re-inserting keeps timers of the same deadline in the order in which they were armed.
        timers, output = self.group.timers, self.output
        timers.pop(key, None)
        timers[key] = timer
        deadlines = output.deadlines
        if deadlines is not None and deadlines.timers is timers:
            deadlines.add(key, timer)
        deadline = timer.armed_at + timer.timeout_ms
        if deadline < output.nothing_due_before:
            output.nothing_due_before = deadline

    def cancel(self, key: str) -> None:
        """Cancel a timer, if it is armed."""
        self.group.timers.pop(key, None)

    def arm_heartbeat(self, member_id: str, timeout_ms: int) -> None:
        """Restart the session of a member, or the time in which a handed-out member id must be used."""
        self.arm(f"heartbeat-{member_id}", Timer(HEARTBEAT, self.now, timeout_ms, member_id))

    def cancel_heartbeat(self, member_id: str) -> None:
        """Cancel a member's session timer."""
        self.cancel(f"heartbeat-{member_id}")
