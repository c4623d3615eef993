"""What must hold after every step, whatever has happened: one function for each, named for what it demands.

The driver looks at all of them after each step of each test, the exhaustive search on each of its transitions.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from coordinator_logic import snapshot
from coordinator_logic.config import NEW_MEMBER_JOIN_TIMEOUT_MS, CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import ReplyAddress, Request, Response
from coordinator_logic.group import Group, Member, TimerKind
from coordinator_logic.messages import (
    HeartbeatRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    SyncGroupResponse,
    TopicToCommit,
)
from coordinator_logic.rebalance import select_protocol
from coordinator_logic.records import (
    AssignmentChanged,
    GenerationStarted,
    GroupCreated,
    GroupDeleted,
    JournalEntry,
    LeaderElected,
    MemberAdded,
    MemberRemoved,
    Record,
    RequestCause,
    StateChanged,
    StaticMemberReplaced,
    TimerCause,
    apply,
    fold,
)
from coordinator_logic.states import TRANSITIONS, State
from coordinator_logic.step import StepResult
from coordinator_logic.timers import earliest, wake_time

GATHERING = State.PREPARING_REBALANCE
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
"""Errors of a whole request that was refused: nothing has come of it."""


class Step(NamedTuple):
    """A step with all that went into it. ``before`` is a copy of the group as it was: a step may change its own."""

    before: Group | None
    requests: Sequence[Request]
    batch_time: int
    started_at: int
    config: CoordinatorConfig
    result: StepResult

    @property
    def records(self) -> list[Record]:
        """What has changed."""
        return [entry.record for entry in self.result.journal]

    def records_of(self, request: Request) -> list[Record]:
        """What a request has changed."""
        correlation = request.address.correlation_id
        return [
            entry.record
            for entry in self.result.journal
            if isinstance(entry.cause, RequestCause) and entry.cause.correlation_id == correlation
        ]


# ---- the group as it stands ------------------------------------------------------------------------------------


def members_have_one_leader_who_is_one_of_them(group: Group) -> None:
    assert (group.leader in group.members) if group.members else group.leader is None


def members_are_filed_under_their_ids(group: Group) -> None:
    assert all(member_id == member.member_id for member_id, member in group.members.items())


def an_instance_id_has_one_owner(group: Group) -> None:
    instances = [member.group_instance_id for member in group.members.values() if member.is_static]
    assert len(instances) == len(set(instances)), "two members hold one instance id"


def there_are_members_where_the_state_says_so(group: Group) -> None:
    assert not (group.members and group.state is State.EMPTY)
    assert group.members or group.state in (State.EMPTY, GATHERING)


def members_have_a_protocol_in_common(group: Group) -> None:
    assert not group.members or group.protocol_candidates(), "the members have no protocol in common"
    assert group.protocol_name is None or group.state is not State.EMPTY


def a_generation_follows_the_protocol_of_the_vote(group: Group) -> None:
    if group.state in SYNCING:
        assert group.protocol_name == select_protocol(group), "the members would vote for another protocol now"


def requests_are_parked_only_while_there_is_something_to_wait_for(group: Group) -> None:
    for member in group.members.values():
        assert member.parked_join is None or group.state is GATHERING
        assert member.parked_sync is None or group.state is State.COMPLETING_REBALANCE
        assert member.parked_sync is None or member.member_id != group.leader, "the leader waits for itself"


def a_request_is_parked_once(group: Group) -> None:
    parked = [address.correlation_id for address, _ in parked_requests(group)]
    assert len(parked) == len(set(parked))


def a_generation_that_was_given_up_leaves_no_assignment(group: Group) -> None:
    if group.state is GATHERING and group.previous_state is State.COMPLETING_REBALANCE:
        assert not any(member.assignment for member in group.members.values())


def members_of_a_generation_have_joined(group: Group) -> None:
    if group.state in SYNCING:
        assert not any(member.is_new for member in group.members.values()), "a new member has not joined yet"


def handed_out_ids_are_no_members(group: Group) -> None:
    assert len(group.pending_joins) == len(set(group.pending_joins))
    assert not group.members.keys() & set(group.pending_joins)


def who_has_not_synced_is_known(group: Group) -> None:
    assert len(group.pending_syncs) == len(set(group.pending_syncs))
    assert not group.pending_syncs or group.state in SYNCING
    if group.state is State.COMPLETING_REBALANCE:
        silent = {member.member_id for member in group.members.values() if member.parked_sync is None}
        assert set(group.pending_syncs) == silent


def every_member_is_watched_or_excused(group: Group) -> None:
    for member in group.members.values():
        waits_for_us = member.parked_join is not None or member.parked_sync is not None
        is_excused = waits_for_us and not member.is_new
        assert is_excused or f"heartbeat-{member.member_id}" in group.timers, "nobody watches a member"
    assert all(f"heartbeat-{member_id}" in group.timers for member_id in group.pending_joins)


def timers_are_there_for_their_states_only(group: Group) -> None:
    assert ("join" in group.timers) == (group.state is GATHERING)
    assert ("sync" in group.timers) == bool(group.pending_syncs)
    assert "expiry" not in group.timers or group.state in (State.EMPTY, State.STABLE)


def timers_are_of_this_generation(group: Group) -> None:
    sync = group.timers.get("sync")
    assert sync is None or sync.generation == group.generation


def no_deadline_is_out_of_bounds(group: Group) -> None:
    for key, timer in group.timers.items():
        assert timer.armed_at <= group.clock, "a timer was armed in the future"
        if timer.kind is TimerKind.HEARTBEAT:
            assert key == f"heartbeat-{timer.member_id}"
            member = group.members.get(timer.member_id)
            if member is not None and member.is_new:
                assert timer.timeout_ms in (NEW_MEMBER_JOIN_TIMEOUT_MS, member.session_timeout_ms)


GROUP_INVARIANTS: tuple[Callable[[Group], None], ...] = (
    members_have_one_leader_who_is_one_of_them,
    members_are_filed_under_their_ids,
    an_instance_id_has_one_owner,
    there_are_members_where_the_state_says_so,
    members_have_a_protocol_in_common,
    a_generation_follows_the_protocol_of_the_vote,
    requests_are_parked_only_while_there_is_something_to_wait_for,
    a_request_is_parked_once,
    a_generation_that_was_given_up_leaves_no_assignment,
    members_of_a_generation_have_joined,
    handed_out_ids_are_no_members,
    who_has_not_synced_is_known,
    every_member_is_watched_or_excused,
    timers_are_there_for_their_states_only,
    timers_are_of_this_generation,
    no_deadline_is_out_of_bounds,
)
"""What holds of a group that is not Dead."""


# ---- answers ---------------------------------------------------------------------------------------------------


def parked_requests(group: Group | None) -> Iterator[tuple[ReplyAddress, Member]]:
    """Every request that the group owes an answer, with its member."""
    for member in group.members.values() if group is not None else ():
        for address in (member.parked_join, member.parked_sync):
            if address is not None:
                yield address, member


def _askers(step: Step) -> dict[str, str]:
    """The member id behind each request that was owed an answer, by correlation id.

    The first join of a member is filed under the id that it was given.
    """
    askers = {address.correlation_id: member.member_id for address, member in parked_requests(step.before)}
    for request in step.requests:
        askers[request.address.correlation_id] = getattr(request.body, "member_id", "")
        for record in step.records_of(request):
            if isinstance(record, MemberAdded):
                askers[request.address.correlation_id] = record.member_id
            elif isinstance(record, StaticMemberReplaced):
                askers[request.address.correlation_id] = record.new_member_id
    return askers


def only_what_is_owed_is_answered_and_only_once(step: Step) -> None:
    owed = [address for address, _ in parked_requests(step.before)] + [request.address for request in step.requests]
    answered = [response.address for response in step.result.responses]
    assert len({address.correlation_id for address in answered}) == len(answered), "a request is answered twice"
    assert all(address in owed for address in answered), "something is answered that nobody asked"


def what_is_owed_is_answered_parked_or_legally_forgotten(step: Step) -> None:
    """As a broker does, the coordinator forgets two kinds of parked requests: those of the functions below."""
    settled = {response.address.correlation_id for response in step.result.responses}
    settled |= {address.correlation_id for address, _ in parked_requests(step.result.group)}
    owed = [address for address, _ in parked_requests(step.before)] + [request.address for request in step.requests]
    askers = _askers(step)
    for address in owed:
        if address.correlation_id not in settled:
            member_id = askers[address.correlation_id]
            assert _was_overwritten(step, address, member_id) or _was_the_sync_of_a_leaver(step, address, member_id), (
                f"{address.api} {address.correlation_id} of {member_id} gets no answer"
            )


def _was_overwritten(step: Step, address: ReplyAddress, member_id: str) -> bool:
    """The member has sent the same request again: the client has given the older one up."""
    later = [request for request in step.requests if request.address != address and request.address.api == address.api]
    return any(getattr(request.body, "member_id", "") == member_id for request in later)


def _was_the_sync_of_a_leaver(step: Step, address: ReplyAddress, member_id: str) -> bool:
    """The member has left while its SyncGroup was parked."""
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
    """But that a first join which is refused may leave an Empty group behind, as it does in a broker."""
    by_correlation = {request.address.correlation_id: request for request in step.requests}
    for response in step.result.responses:
        request = by_correlation.get(response.address.correlation_id)
        if request is None or response.error_code not in CHANGES_NOTHING or _may_have_been_parked(step, response):
            continue
        changed = [record for record in step.records_of(request) if not isinstance(record, GroupCreated)]
        assert not changed, f"{Error(response.error_code).name} was answered, yet {changed}"


def _may_have_been_parked(step: Step, response: Response) -> bool:
    """Whether the error may be what became of the request later in the same batch."""
    is_parked_kind = isinstance(response.body, JoinGroupResponse | SyncGroupResponse)
    return is_parked_kind and (len(step.requests) > 1 or any(isinstance(r, MemberRemoved) for r in step.records))


def all_are_told_the_same_of_a_generation(step: Step) -> None:
    told = [r.body for r in step.result.responses if isinstance(r.body, JoinGroupResponse) and not r.error_code]
    for one, other in pairwise(told):
        if one.generation_id == other.generation_id and len(step.requests) < 2:
            assert (one.leader, one.protocol_name) == (other.leader, other.protocol_name)
    for answer in told:
        shown = [member.member_id for member in answer.members]
        assert not shown or (answer.leader == answer.member_id and answer.member_id in shown)


def who_leads_is_told_so_and_shown_all_members(step: Step) -> None:
    group = step.result.group
    started = [record for record in step.records if isinstance(record, GenerationStarted)]
    if not started or group is None or group.state is not State.COMPLETING_REBALANCE:
        return
    answers = [r.body for r in step.result.responses if isinstance(r.body, JoinGroupResponse)]
    leaders = [a for a in answers if a.generation_id == group.generation and a.member_id == group.leader]
    assert leaders
    assert all([member.member_id for member in answer.members] == list(group.members) for answer in leaders)


def an_assignment_is_answered_as_it_is_stored(step: Step) -> None:
    group, askers = step.result.group, _askers(step)
    if group is None or len(step.requests) > 1 or any(_clears_assignments(record) for record in step.records):
        return
    for response in step.result.responses:
        member = group.members.get(askers[response.address.correlation_id])
        if isinstance(response.body, SyncGroupResponse) and not response.error_code and member is not None:
            assert response.body.assignment == member.assignment
            assert response.body.protocol_name == group.protocol_name


def _clears_assignments(record: Record) -> bool:
    return isinstance(record, AssignmentChanged) and not record.assignments


# ---- changes ---------------------------------------------------------------------------------------------------


def the_clock_never_goes_back(step: Step) -> None:
    if step.before is not None and step.result.group is not None:
        assert step.result.group.clock >= step.before.clock or step.result.group.incarnation != step.before.incarnation


def the_generation_grows_by_one_with_every_completed_join(step: Step) -> None:
    before, after = step.before, step.result.group
    if before is None or after is None or before.incarnation != after.incarnation:
        return
    started = [record.generation for record in step.records if isinstance(record, GenerationStarted)]
    assert started == list(range(before.generation + 1, before.generation + 1 + len(started)))
    assert after.generation == before.generation + len(started)


def a_generation_starts_when_its_members_are_gathered(step: Step) -> None:
    records = step.records
    for record, following in pairwise([*records, None]):
        if isinstance(record, GenerationStarted):
            assert isinstance(following, StateChanged)
            target = State.EMPTY if record.protocol_name is None else State.COMPLETING_REBALANCE
            assert (following.from_state, following.to_state) == (GATHERING.value, target.value)


def only_a_timer_ends_the_initial_delay(step: Step) -> None:
    state, previous = (None, None) if step.before is None else (step.before.state, step.before.previous_state)
    for entry in step.result.journal:
        if isinstance(entry.record, GroupCreated):
            state = State.EMPTY
        elif isinstance(entry.record, StateChanged):
            state, previous = State(entry.record.to_state), state
        elif isinstance(entry.record, GenerationStarted) and state is GATHERING and previous is State.EMPTY:
            assert isinstance(entry.cause, TimerCause), "the initial delay was cut short"


def a_join_waits_for_handed_out_ids_until_its_time_is_up(step: Step) -> None:
    if step.before is None or step.result.group is None or step.before.incarnation != step.result.group.incarnation:
        return
    time_is_up = (TimerKind.JOIN.value, TimerKind.INITIAL_JOIN.value)
    never_used = set(step.before.pending_joins) & set(step.result.group.pending_joins)
    for entry in step.result.journal:
        if isinstance(entry.record, GenerationStarted) and len(step.requests) < 2:
            is_over = isinstance(entry.cause, TimerCause) and entry.cause.timer in time_is_up
            assert is_over or not never_used


def nobody_waits_once_all_have_joined(step: Step) -> None:
    """But in a group that turns members away: who is refused is not waited for, and nothing is looked at again then."""
    group = step.result.group
    turns_away = step.config.group_max_size < 2**31 - 1
    if group is not None and group.state is GATHERING and group.previous_state is not State.EMPTY and not turns_away:
        assert group.pending_joins or any(member.parked_join is None for member in group.members.values())


def every_rebalance_has_a_reason(step: Step) -> None:
    assert all(record.reason for record in step.records if isinstance(record, StateChanged))


def assignments_are_the_leaders_and_name_every_member(step: Step) -> None:
    """Else they are taken back, because the generation ends before its leader has synced."""
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
                assert entry.cause.member_id == group.leader
                assert record.assignments.keys() == group.members.keys()


def a_leader_is_elected_only_where_there_is_none_or_another_must(step: Step) -> None:
    leader = step.before.leader if step.before is not None else None
    for record in step.records:
        if isinstance(record, LeaderElected):
            assert record.member_id != leader
            leader = record.member_id


def only_signs_of_life_prolong_a_session(step: Step) -> None:
    """A session begins anew with a request of the member, an answer to one, or a generation that counts on it."""
    group = step.result.group
    if group is None or any(isinstance(record, GenerationStarted) for record in step.records):
        return
    askers = _askers(step)
    alive = {askers[response.address.correlation_id] for response in step.result.responses} | set(askers.values())
    alive |= {r.body.member_id for r in step.result.responses if isinstance(r.body, JoinGroupResponse)}
    armed_before = step.before.timers if step.before is not None else {}
    for key, timer in group.timers.items():
        if timer.kind is TimerKind.HEARTBEAT and armed_before.get(key) != timer:
            assert timer.member_id in alive, "a silent member's session was prolonged"


def every_sign_of_life_begins_the_session_anew(step: Step) -> None:
    """A heartbeat or a commit that is accepted, and the answer to a request that was parked."""
    group = step.result.group
    if group is None or len(step.requests) > 1:
        return
    errors = {response.address.correlation_id: response.error_code for response in step.result.responses}
    or_rebalancing = (Error.NONE, Error.REBALANCE_IN_PROGRESS)
    alive: dict[str, int] = {}
    for request in step.requests:
        match request.body, errors.get(request.address.correlation_id):
            case HeartbeatRequest(member_id=member_id), error if error in or_rebalancing:
                alive[member_id] = request.place.timestamp
            case OffsetCommitRequest(member_id=member_id, topics=[TopicToCommit(partitions=[_, *_]), *_]), Error.NONE:
                alive[member_id] = request.place.timestamp
    for address, member in parked_requests(step.before):
        if errors.get(address.correlation_id) in or_rebalancing:
            alive[member.member_id] = step.result.journal[0].timestamp
    for member_id in alive.keys() & group.members.keys():
        timer = group.timers.get(f"heartbeat-{member_id}")
        assert timer is None or timer.armed_at >= alive[member_id], "a member that lives has an old deadline"


def a_static_member_outlives_a_missed_rebalance(step: Step) -> None:
    """It goes when it leaves, when its session is over, or when it has not synced; never for not having rejoined."""
    for entry in step.result.journal:
        if isinstance(entry.record, MemberRemoved) and entry.record.group_instance_id is not None:
            match entry.cause:
                case RequestCause(api="LeaveGroup") | TimerCause(timer=TimerKind.SYNC.value):
                    pass
                case RequestCause(api="JoinGroup", member_id=member_id):
                    assert member_id == entry.record.member_id, "only who rejoins itself can be refused its place"
                case TimerCause(timer=TimerKind.HEARTBEAT.value, member_id=member_id):
                    assert member_id == entry.record.member_id, "the session that ended was another's"
                case _:
                    raise AssertionError(f"a static member was removed by {entry.cause}")


def a_group_is_deleted_only_when_nobody_is_in_it(step: Step) -> None:
    deleted = any(isinstance(record, GroupDeleted) for record in step.records)
    if deleted and len(step.requests) < 2:
        assert step.result.group is None or step.before is None or step.requests
        assert step.before is None or not step.before.members or any(_empties(record) for record in step.records)


def _empties(record: Record) -> bool:
    return isinstance(record, StateChanged) and record.to_state == State.EMPTY.value


def the_records_tell_the_change(step: Step) -> None:
    before, after, journal = step.before, step.result.group, step.result.journal
    copy = None if before is None else snapshot.decode(snapshot.encode(before)) if journal else before
    for entry in journal:
        if isinstance(entry.record, GroupCreated):
            assert copy is None, "a group was created that existed"
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


def the_group_wakes_when_something_is_due(step: Step) -> None:
    group, wake_at = step.result.group, step.result.wake_at
    due = None if group is None else earliest(group, step.started_at)
    assert wake_at == (None if due is None else wake_time(due[1], step.started_at, step.config))
    assert wake_at is None or wake_at > step.batch_time, "a deadline was due and did not fire"


STEP_INVARIANTS: tuple[Callable[[Step], None], ...] = (
    only_what_is_owed_is_answered_and_only_once,
    what_is_owed_is_answered_parked_or_legally_forgotten,
    only_joins_and_syncs_are_parked,
    a_refused_request_changes_nothing,
    all_are_told_the_same_of_a_generation,
    who_leads_is_told_so_and_shown_all_members,
    an_assignment_is_answered_as_it_is_stored,
    the_clock_never_goes_back,
    the_generation_grows_by_one_with_every_completed_join,
    a_generation_starts_when_its_members_are_gathered,
    only_a_timer_ends_the_initial_delay,
    a_join_waits_for_handed_out_ids_until_its_time_is_up,
    nobody_waits_once_all_have_joined,
    every_rebalance_has_a_reason,
    assignments_are_the_leaders_and_name_every_member,
    a_leader_is_elected_only_where_there_is_none_or_another_must,
    only_signs_of_life_prolong_a_session,
    every_sign_of_life_begins_the_session_anew,
    a_static_member_outlives_a_missed_rebalance,
    a_group_is_deleted_only_when_nobody_is_in_it,
    the_records_tell_the_change,
    the_group_wakes_when_something_is_due,
)
"""What holds of a step whose group is not Dead."""


# ---- all of them -----------------------------------------------------------------------------------------------


def comes_back_from_its_snapshot(group: Group) -> None:
    assert snapshot.decode(snapshot.encode(group)) == group


def check_step(step: Step) -> None:
    """Every invariant, of the step and of the group that it leaves."""
    group = step.result.group
    if group is not None:
        comes_back_from_its_snapshot(group)
        if group.state is State.DEAD:
            assert step.result.wake_at is None
            return
        for holds in GROUP_INVARIANTS:
            holds(group)
    for holds_for in STEP_INVARIANTS:
        holds_for(step)


def check_journal(journal: Sequence[JournalEntry], group: Group | None) -> None:
    """The journal counts without gaps, tells legal transitions only, and folds to the group."""
    for earlier, later in pairwise(journal):
        if later.incarnation == earlier.incarnation:
            assert later.sequence == earlier.sequence + 1
            assert later.timestamp >= earlier.timestamp
        else:
            assert later.sequence == 1
            assert isinstance(later.record, GroupCreated)
    for entry in journal:
        if isinstance(entry.record, StateChanged):
            assert State(entry.record.to_state) in TRANSITIONS[State(entry.record.from_state)]
    folded = fold(list(journal))
    if group is None or (group.state is State.DEAD and not journal):
        assert folded is None
        return
    assert folded is not None
    assert recorded(folded) == recorded(group)
    assert folded.sequence == group.sequence


def recorded(group: Group) -> tuple[object, ...]:
    """All that only records may change."""
    members = [
        (
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.protocols,
            member.assignment,
        )
        for member in group.members.values()
    ]
    return (
        group.group_id,
        group.incarnation,
        group.state,
        group.previous_state,
        group.state_timestamp,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader,
        members,
        group.offsets,
        group.subscribed_topics,
        group.open_transactions,
    )
