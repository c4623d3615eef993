"""The lists of all invariants, and the check of a step against them."""

from collections.abc import Callable

from coordinator_logic import snapshot
from coordinator_logic.group import Group
from coordinator_logic.states import State
from tests.logic.invariants.checked_step import Step
from tests.logic.invariants.of_answers import (
    a_refused_request_changes_nothing,
    a_sync_is_answered_with_the_stored_assignment,
    all_members_get_the_same_generation,
    each_open_request_is_answered_at_most_once,
    each_open_request_is_answered_parked_or_dropped_as_in_kafka,
    only_joins_and_syncs_are_parked,
    the_leader_gets_all_members,
)
from tests.logic.invariants.of_changes import (
    a_generation_starts_only_in_preparing_rebalance,
    a_group_is_deleted_only_without_members,
    a_join_ends_once_all_members_have_joined,
    a_join_waits_for_handed_out_ids_until_its_timeout,
    a_static_member_outlives_a_missed_rebalance,
    an_election_changes_the_leader,
    assignments_come_from_the_leader_and_list_every_member,
    every_accepted_request_restarts_the_session,
    every_rebalance_has_a_reason,
    only_a_timer_ends_the_initial_delay,
    only_requests_and_their_answers_restart_a_session,
    the_clock_goes_back_only_with_the_batch,
    the_generation_grows_by_one_with_every_completed_join,
    the_group_wakes_at_its_first_deadline,
    the_journal_of_a_step_is_in_the_order_of_time,
    the_records_describe_the_change,
)
from tests.logic.invariants.of_consumer_groups import CONSUMER_GROUP_INVARIANTS, CONSUMER_GROUP_STEP_INVARIANTS
from tests.logic.invariants.of_groups import GROUP_INVARIANTS
from tests.support.parts import consumer_part

STEP_INVARIANTS: tuple[Callable[[Step], None], ...] = (
    each_open_request_is_answered_at_most_once,
    each_open_request_is_answered_parked_or_dropped_as_in_kafka,
    only_joins_and_syncs_are_parked,
    a_refused_request_changes_nothing,
    all_members_get_the_same_generation,
    the_leader_gets_all_members,
    a_sync_is_answered_with_the_stored_assignment,
    the_clock_goes_back_only_with_the_batch,
    the_journal_of_a_step_is_in_the_order_of_time,
    the_generation_grows_by_one_with_every_completed_join,
    a_generation_starts_only_in_preparing_rebalance,
    only_a_timer_ends_the_initial_delay,
    a_join_waits_for_handed_out_ids_until_its_timeout,
    a_join_ends_once_all_members_have_joined,
    every_rebalance_has_a_reason,
    assignments_come_from_the_leader_and_list_every_member,
    an_election_changes_the_leader,
    only_requests_and_their_answers_restart_a_session,
    every_accepted_request_restarts_the_session,
    a_static_member_outlives_a_missed_rebalance,
    a_group_is_deleted_only_without_members,
    the_records_describe_the_change,
    the_group_wakes_at_its_first_deadline,
)
"""Invariants of a step whose group is not Dead."""

CONSUMER_STEP_INVARIANTS: tuple[Callable[[Step], None], ...] = (
    each_open_request_is_answered_at_most_once,
    a_refused_request_changes_nothing,
    the_clock_goes_back_only_with_the_batch,
    the_journal_of_a_step_is_in_the_order_of_time,
    only_requests_and_their_answers_restart_a_session,
    the_records_describe_the_change,
    the_group_wakes_at_its_first_deadline,
    *CONSUMER_GROUP_STEP_INVARIANTS,
)
"""Invariants of a step whose group is a consumer group before or after it."""


def a_group_survives_its_snapshot(group: Group) -> None:
    assert snapshot.decode(snapshot.encode(group)) == group


def check_step(step: Step) -> None:
    """Check every invariant of the step and of the group after it."""
    group = step.result.group
    if group is not None:
        a_group_survives_its_snapshot(group)
        if group.state is State.DEAD:
            assert step.result.wake_at is None
            return
        for holds in GROUP_INVARIANTS if consumer_part(group) is None else CONSUMER_GROUP_INVARIANTS:
            holds(group)
    has_consumers = any(each is not None and consumer_part(each) is not None for each in (step.before, group))
    for holds_for in CONSUMER_STEP_INVARIANTS if has_consumers else STEP_INVARIANTS:
        holds_for(step)
