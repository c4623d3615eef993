"""Invariants of the answers of a step."""

from itertools import pairwise

from coordinator_logic.errors import Error
from coordinator_logic.events import ReplyAddress, Response
from coordinator_logic.group.record import Record
from coordinator_logic.groups.classic.records import AssignmentChanged, GenerationStarted
from coordinator_logic.messages import (
    JoinGroupResponse,
    SyncGroupResponse,
)
from coordinator_logic.records import GroupCreated, MemberRemoved, RequestCause
from coordinator_logic.states import State
from tests.logic.invariants.checked_step import (
    CHANGES_NOTHING,
    Step,
    addresses_of_open_requests,
    member_ids_of_requests,
    parked_requests,
)
from tests.support.parts import classic


def each_open_request_is_answered_at_most_once(step: Step) -> None:
    open_requests = addresses_of_open_requests(step)
    answered = [response.address for response in step.result.responses]
    assert len({address.correlation_id for address in answered}) == len(answered), "a request is answered twice"
    assert all(address in open_requests for address in answered), "a response has no request"


def each_open_request_is_answered_parked_or_dropped_as_in_kafka(step: Step) -> None:
    """As in Kafka, a parked request is dropped if its member sends it again, or leaves during its SyncGroup."""
    done = {response.address.correlation_id for response in step.result.responses}
    done |= {address.correlation_id for address, _ in parked_requests(step.result.group)}
    open_requests = addresses_of_open_requests(step)
    member_ids = member_ids_of_requests(step)
    for address in open_requests:
        if address.correlation_id not in done:
            member_id = member_ids[address.correlation_id]
            replaced = _was_replaced(step, address, member_id)
            dropped = replaced or _was_the_sync_of_a_member_that_left(step, address, member_id)
            assert dropped, f"{address.api} {address.correlation_id} of {member_id} gets no answer"


def _was_replaced(step: Step, address: ReplyAddress, member_id: str) -> bool:
    """Whether the member sent the same request again: its client has given up the older one."""
    later = [request for request in step.requests if request.address != address and request.address.api == address.api]
    return any(getattr(request.body, "member_id", "") == member_id for request in later)


def _was_the_sync_of_a_member_that_left(step: Step, address: ReplyAddress, member_id: str) -> bool:
    """Whether the member left while its SyncGroup was parked."""
    return address.api == "SyncGroup" and any(
        isinstance(entry.record, MemberRemoved)
        and entry.record.member_id == member_id
        and isinstance(entry.cause, RequestCause)
        and entry.cause.api == "LeaveGroup"
        for entry in step.result.journal
    )


def only_joins_and_syncs_are_parked(step: Step) -> None:
    for address, member in parked_requests(step.result.group):
        assert address.api == ("JoinGroup" if address == member.parked_join else "SyncGroup")


def a_refused_request_changes_nothing(step: Step) -> None:
    """Except that, as in a broker, a refused first join may leave an Empty group behind, and that a rebalance follows
    a leader's assignments that are too large."""
    by_correlation = {request.address.correlation_id: request for request in step.requests}
    for response in step.result.responses:
        request = by_correlation.get(response.address.correlation_id)
        if request is None or getattr(request.body, "assignments_too_large", False):
            continue
        if response.error_code not in CHANGES_NOTHING or _may_have_been_parked(step, response):
            continue
        changed = [record for record in step.records_of(request) if not isinstance(record, GroupCreated)]
        assert not changed, f"{Error(response.error_code).name} was answered, yet {changed}"


def _may_have_been_parked(step: Step, response: Response) -> bool:
    """Whether the error may be the answer of a later turn to a parked request."""
    is_parked_kind = isinstance(response.body, JoinGroupResponse | SyncGroupResponse)
    return is_parked_kind and (len(step.requests) > 1 or any(isinstance(r, MemberRemoved) for r in step.records))


def all_members_get_the_same_generation(step: Step) -> None:
    joins = [r.body for r in step.result.responses if isinstance(r.body, JoinGroupResponse) and not r.error_code]
    for one, other in pairwise(joins):
        if one.generation_id == other.generation_id and len(step.requests) < 2:
            assert (one.leader, one.protocol_name) == (other.leader, other.protocol_name)
    for answer in joins:
        listed = [member.member_id for member in answer.members]
        assert not listed or (answer.leader == answer.member_id and answer.member_id in listed)


def the_leader_gets_all_members(step: Step) -> None:
    group = step.result.group
    started = [record for record in step.records if isinstance(record, GenerationStarted)]
    if not started or group is None or group.state is not State.COMPLETING_REBALANCE:
        return
    answers = [r.body for r in step.result.responses if isinstance(r.body, JoinGroupResponse)]
    leaders = [a for a in answers if a.generation_id == group.generation and a.member_id == classic(group).leader]
    assert leaders
    assert all([member.member_id for member in answer.members] == list(classic(group).members) for answer in leaders)


def a_sync_is_answered_with_the_stored_assignment(step: Step) -> None:
    group, member_ids = step.result.group, member_ids_of_requests(step)
    if group is None or len(step.requests) > 1 or any(_clears_assignments(record) for record in step.records):
        return
    for response in step.result.responses:
        member = classic(group).members.get(member_ids[response.address.correlation_id])
        if isinstance(response.body, SyncGroupResponse) and not response.error_code and member is not None:
            assert response.body.assignment == member.assignment
            assert response.body.protocol_name == classic(group).protocol_name


def _clears_assignments(record: Record) -> bool:
    return isinstance(record, AssignmentChanged) and not record.assignments
