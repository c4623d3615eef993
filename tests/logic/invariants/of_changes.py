"""Invariants of what a step changes."""

from itertools import pairwise

from coordinator_logic import snapshot
from coordinator_logic.apis import RESET_OFFSETS
from coordinator_logic.errors import Error
from coordinator_logic.group import Group
from coordinator_logic.group.deadlines import earliest
from coordinator_logic.group.record import Record
from coordinator_logic.group.timer import HEARTBEAT
from coordinator_logic.groups.classic.records import AssignmentChanged, GenerationStarted, LeaderElected, StateChanged
from coordinator_logic.groups.classic.timers import INITIAL_JOIN, JOIN
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    TopicToCommit,
)
from coordinator_logic.records import (
    GroupCreated,
    GroupDeleted,
    JournalEntry,
    MemberRemoved,
    RequestCause,
    TimerCause,
    apply,
)
from coordinator_logic.states import State
from coordinator_logic.step import wake_time
from tests.logic.invariants.checked_step import PREPARING, Step, member_ids_of_requests, parked_requests
from tests.logic.invariants.of_journals import recorded
from tests.support.parts import classic


def the_clock_goes_back_only_with_the_batch(step: Step) -> None:
    before, after = step.before, step.result.group
    if before is None or after is None or before.incarnation != after.incarnation:
        return
    assert after.clock >= (step.batch_time if step.brings_back else before.clock)
    assert after.clock <= step.latest_time, "a group is ahead of its batch"


def the_journal_of_a_step_is_in_the_order_of_time(step: Step) -> None:
    for earlier, later in pairwise(step.result.journal):
        assert later.timestamp >= earlier.timestamp


def the_generation_grows_by_one_with_every_completed_join(step: Step) -> None:
    before, after = step.before, step.result.group
    if before is None or after is None or before.incarnation != after.incarnation:
        return
    started = [record.generation for record in step.records if isinstance(record, GenerationStarted)]
    assert started == list(range(before.generation + 1, before.generation + 1 + len(started)))
    assert after.generation == before.generation + len(started)


def a_generation_starts_only_in_preparing_rebalance(step: Step) -> None:
    """Except one that no member is in: it ends the generation of a Stable group whose offsets were reset."""
    for entry, after in pairwise([*step.result.journal, None]):
        record = None if entry is None else entry.record
        if entry is not None and isinstance(record, GenerationStarted):
            following = None if after is None else after.record
            assert isinstance(following, StateChanged)
            if _is_reset(entry):
                assert (following.from_state, following.to_state) == (State.STABLE.value, PREPARING.value)
                continue
            target = State.EMPTY if record.protocol_name is None else State.COMPLETING_REBALANCE
            assert (following.from_state, following.to_state) == (PREPARING.value, target.value)


def _is_reset(entry: JournalEntry) -> bool:
    return isinstance(entry.cause, RequestCause) and entry.cause.api == RESET_OFFSETS.name


def only_a_timer_ends_the_initial_delay(step: Step) -> None:
    state, previous = (None, None) if step.before is None else (step.before.state, step.before.part.previous_state)
    for entry in step.result.journal:
        if isinstance(entry.record, GroupCreated):
            state = State.EMPTY
        elif isinstance(entry.record, StateChanged):
            state, previous = State(entry.record.to_state), state
        elif isinstance(entry.record, GenerationStarted) and state is PREPARING and previous is State.EMPTY:
            assert isinstance(entry.cause, TimerCause), "a request ended the initial delay"


def a_join_waits_for_handed_out_ids_until_its_timeout(step: Step) -> None:
    if step.before is None or step.result.group is None or step.before.incarnation != step.result.group.incarnation:
        return
    time_is_up = (JOIN, INITIAL_JOIN)
    never_used = set(classic(step.before).pending_joins) & set(classic(step.result.group).pending_joins)
    for entry in step.result.journal:
        if isinstance(entry.record, GenerationStarted) and len(step.requests) < 2 and not _is_reset(entry):
            is_over = isinstance(entry.cause, TimerCause) and entry.cause.timer in time_is_up
            assert is_over or not never_used


def a_join_ends_once_all_members_have_joined(step: Step) -> None:
    """Except in a group with a maximum size: the refusal of a member does not complete the join of the others."""
    group = step.result.group
    has_max_size = step.config.group_max_size < 2**31 - 1
    if (
        group is not None
        and group.state is PREPARING
        and group.part.previous_state is not State.EMPTY
        and not has_max_size
    ):
        assert classic(group).pending_joins or any(
            member.parked_join is None for member in classic(group).members.values()
        )


def every_rebalance_has_a_reason(step: Step) -> None:
    assert all(record.reason for record in step.records if isinstance(record, StateChanged))


def assignments_come_from_the_leader_and_list_every_member(step: Step) -> None:
    """An empty record clears the assignments: the generation ended before its leader had synced."""
    for entry, following in pairwise([*step.result.journal, None]):
        record = entry.record if entry is not None else None
        if isinstance(record, AssignmentChanged) and record.assignments:
            assert entry is not None
            assert following is not None
            assert isinstance(entry.cause, RequestCause)
            assert entry.cause.api == "SyncGroup"
            assert isinstance(following.record, StateChanged)
            assert following.record.to_state == State.STABLE.value
            group = step.result.group
            if group is not None and group.state is State.STABLE and len(step.requests) < 2:
                assert entry.cause.member_id == classic(group).leader
                assert record.assignments.keys() == classic(group).members.keys()


def an_election_changes_the_leader(step: Step) -> None:
    leader = classic(step.before).leader if step.before is not None else None
    for record in step.records:
        if isinstance(record, LeaderElected):
            assert record.member_id != leader
            leader = record.member_id


def only_requests_and_their_answers_restart_a_session(step: Step) -> None:
    """A session restarts with a request of its member, the answer to one, a new generation, or a clock set back."""
    group = step.result.group
    if group is None or step.brings_back or any(isinstance(record, GenerationStarted) for record in step.records):
        return
    member_ids = member_ids_of_requests(step)
    alive = {member_ids[response.address.correlation_id] for response in step.result.responses} | set(
        member_ids.values()
    )
    with_member_id = JoinGroupResponse | ConsumerGroupHeartbeatResponse
    alive |= {r.body.member_id or "" for r in step.result.responses if isinstance(r.body, with_member_id)}
    armed_before = step.before.timers if step.before is not None else {}
    for key, timer in group.timers.items():
        if timer.kind == HEARTBEAT and armed_before.get(key) != timer:
            assert timer.member_id in alive, "the session of a member that sent nothing restarted"


def every_accepted_request_restarts_the_session(step: Step) -> None:
    """So does the answer to a parked request."""
    group = step.result.group
    if group is None or len(step.requests) > 1:
        return
    errors = {response.address.correlation_id: response.error_code for response in step.result.responses}
    or_rebalancing = (Error.NONE, Error.REBALANCE_IN_PROGRESS)
    alive: dict[str, int] = {}
    for request in step.requests:
        match request.body, errors.get(request.address.correlation_id):
            case HeartbeatRequest(member_id=member_id), error if error in or_rebalancing:
                alive[member_id] = min(request.place.timestamp, step.latest_time)
            case OffsetCommitRequest(member_id=member_id, topics=[TopicToCommit(partitions=[_, *_]), *_]), Error.NONE:
                alive[member_id] = min(request.place.timestamp, step.latest_time)
    for address, member in parked_requests(step.before):
        if errors.get(address.correlation_id) in or_rebalancing:
            alive[member.member_id] = step.result.journal[0].timestamp
    for member_id in alive.keys() & classic(group).members.keys():
        timer = group.timers.get(f"heartbeat-{member_id}")
        assert timer is None or timer.armed_at >= alive[member_id], "an active member has an old deadline"


def a_static_member_outlives_a_missed_rebalance(step: Step) -> None:
    """It is removed when it leaves, expires, does not sync or loses its place, but not when it does not rejoin."""
    for entry in step.result.journal:
        if isinstance(entry.record, MemberRemoved) and entry.record.group_instance_id is not None:
            match entry.cause:
                case RequestCause(api="LeaveGroup") | TimerCause(timer="sync"):
                    pass
                case RequestCause(api="JoinGroup", member_id=member_id):
                    assert member_id == entry.record.member_id, "a JoinGroup removed a member other than its sender"
                case TimerCause(timer="heartbeat", member_id=member_id):
                    assert member_id == entry.record.member_id, "the expired session is another member's"
                case _:
                    raise AssertionError(f"a static member was removed by {entry.cause}")


def a_group_is_deleted_only_without_members(step: Step) -> None:
    deleted = any(isinstance(record, GroupDeleted) for record in step.records)
    if deleted and len(step.requests) < 2:
        assert step.result.group is None or step.before is None or step.requests
        assert (
            step.before is None
            or not classic(step.before).members
            or any(_is_transition_to_empty(record) for record in step.records)
        )


def _is_transition_to_empty(record: Record) -> bool:
    return isinstance(record, StateChanged) and record.to_state == State.EMPTY.value


def the_records_describe_the_change(step: Step) -> None:
    before, after, journal = step.before, step.result.group, step.result.journal
    copy = None if before is None else snapshot.decode(snapshot.encode(before)) if journal else before
    for entry in journal:
        if isinstance(entry.record, GroupCreated):
            assert copy is None, "a group was created that already existed"
            copy = Group(entry.group_id, entry.incarnation)
        assert copy is not None
        assert entry.incarnation == copy.incarnation
        assert entry.sequence == copy.sequence + 1
        copy.sequence = entry.sequence
        apply(copy, entry.record, entry.timestamp)
        copy = None if copy.state is State.DEAD else copy
    assert (copy is None) == (after is None)
    if copy is not None and after is not None:
        assert recorded(copy) == recorded(after)
        assert copy.sequence == after.sequence


def the_group_wakes_at_its_first_deadline(step: Step) -> None:
    group, wake_at = step.result.group, step.result.wake_at
    if group is not None and step.config.late_answer_ms is not None and group.join_answered_at == step.batch_time:
        assert wake_at == step.batch_time, "the group is not called in the batch after it answered a join"
        return
    started_at = step.started_at if group is None else max(step.started_at, group.sessions_from)
    due = None if group is None else earliest(group.timers, started_at)
    if due is None:
        assert wake_at is None
        return
    fires_at = wake_time(due[1], started_at, step.config)
    assert wake_at == max(fires_at, step.batch_time)
    assert fires_at > (step.batch_time if step.read_until is None else step.read_until), "a due deadline did not fire"
