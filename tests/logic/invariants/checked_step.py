"""A step with everything that went into it, as the invariants see it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import ReplyAddress, Request
from coordinator_logic.group import Group
from coordinator_logic.group.record import Record
from coordinator_logic.groups.classic.member import Member
from coordinator_logic.groups.classic.records import MemberAdded
from coordinator_logic.records import RequestCause, StaticMemberReplaced
from coordinator_logic.states import State
from coordinator_logic.step import StepResult
from tests.support.parts import classic_or_empty

PREPARING = State.PREPARING_REBALANCE
SYNCING = (State.COMPLETING_REBALANCE, State.STABLE)

CHANGES_NOTHING = frozenset(
    {
        Error.UNKNOWN_SERVER_ERROR,
        Error.ILLEGAL_GENERATION,
        Error.INCONSISTENT_GROUP_PROTOCOL,
        Error.INVALID_GROUP_ID,
        Error.UNKNOWN_MEMBER_ID,
        Error.INVALID_SESSION_TIMEOUT,
        Error.GROUP_ID_NOT_FOUND,
        Error.FENCED_INSTANCE_ID,
    }
)
"""Errors with which a whole request is refused; such a request changes nothing."""


class Step(NamedTuple):
    """A step with input and result.

    ``before`` is a copy of the group, which a step may change in place. The log was read up to ``read_until`` (ms since
    the epoch); None: up to the batch's time.
    """

    before: Group | None
    requests: Sequence[Request]
    batch_time: int
    started_at: int
    config: CoordinatorConfig
    result: StepResult
    read_until: int | None = None

    @property
    def latest_time(self) -> int:
        """The latest time (ms since the epoch) that a group may have seen after the step."""
        return self.batch_time + self.config.expiry_allowance_ms

    @property
    def brings_back(self) -> bool:
        """Whether the group is ahead of the step, because the driver's clock went back."""
        before = self.before
        return before is not None and max(before.clock, before.sessions_from) > self.latest_time

    @property
    def records(self) -> list[Record]:
        """All records of the step."""
        return [entry.record for entry in self.result.journal]

    def records_of(self, request: Request) -> list[Record]:
        """The records that a request caused."""
        correlation = request.address.correlation_id
        return [
            entry.record
            for entry in self.result.journal
            if isinstance(entry.cause, RequestCause) and entry.cause.correlation_id == correlation
        ]


def parked_requests(group: Group | None) -> Iterator[tuple[ReplyAddress, Member]]:
    """Every parked request of the group, with its member."""
    for member in classic_or_empty(group).members.values() if group is not None else ():
        for address in (member.parked_join, member.parked_sync):
            if address is not None:
                yield address, member


def addresses_of_open_requests(step: Step) -> list[ReplyAddress]:
    """The addresses of the requests that were parked before the step, and of the step's own."""
    return [*(address for address, _ in parked_requests(step.before)), *(request.address for request in step.requests)]


def member_ids_of_requests(step: Step) -> dict[str, str]:
    """The member id of each open request, by correlation id; for a first join, the id that the member got."""
    member_ids = {address.correlation_id: member.member_id for address, member in parked_requests(step.before)}
    for request in step.requests:
        member_ids[request.address.correlation_id] = getattr(request.body, "member_id", "")
        for record in step.records_of(request):
            if isinstance(record, MemberAdded):
                member_ids[request.address.correlation_id] = record.member_id
            elif isinstance(record, StaticMemberReplaced):
                member_ids[request.address.correlation_id] = record.new_member_id
    return member_ids
