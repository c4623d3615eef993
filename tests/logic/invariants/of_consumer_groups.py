"""Invariants of a consumer group, among them those of the published TLA+ specification of KIP-848."""

from collections.abc import Callable

from coordinator_logic.errors import Error
from coordinator_logic.group import Group
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.epochs import STATIC_LEAVE_EPOCH
from coordinator_logic.groups.consumer.members import ConsumerMember, MemberState
from coordinator_logic.groups.consumer.records import PatternsResolved, TargetAssignmentChanged
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from coordinator_logic.records import StaticMemberReplaced
from tests.logic.invariants.checked_step import Step
from tests.support.parts import consumer_group, consumer_part


def consumer_of(group: Group) -> ConsumerGroup:
    assert consumer_part(group) is not None
    return consumer_group(group)


def has_left_for_a_while(member: ConsumerMember) -> bool:
    return member.epoch == STATIC_LEAVE_EPOCH


def no_partition_is_held_by_two_members(group: Group) -> None:
    held = [place for member in consumer_of(group).members.values() for place in member.held_partitions()]
    assert len(held) == len(set(held))


def no_partition_is_in_two_targets(group: Group) -> None:
    consumer = consumer_of(group)
    places = [
        (topic_id, partition)
        for target in consumer.targets.values()
        for topic_id, partitions in target.items()
        for partition in partitions
    ]
    assert len(places) == len(set(places))
    assert consumer.targets.keys() <= consumer.members.keys()


def what_the_group_shows_follows_from_its_consumers(group: Group) -> None:
    consumer = consumer_of(group)
    assert (group.state, group.generation) == (consumer.state_of_members, consumer.epoch)


def epochs_are_in_order(group: Group) -> None:
    consumer = consumer_of(group)
    assert consumer.target_epoch <= consumer.epoch
    for member in consumer.members.values():
        assert member.epoch <= consumer.target_epoch
        for partitions in (member.assigned, member.pending_revocation):
            assert all(epoch <= max(member.epoch, 0) for epochs in partitions.values() for epoch in epochs.values())


def a_member_revokes_in_the_state_for_it(group: Group) -> None:
    for member in consumer_of(group).members.values():
        if not has_left_for_a_while(member):
            assert (member.state is MemberState.UNREVOKED_PARTITIONS) == bool(member.pending_revocation)


def a_member_that_is_stable_has_nothing_else_than_its_target(group: Group) -> None:
    consumer = consumer_of(group)
    for member in consumer.members.values():
        if member.is_reconciled_to(consumer.target_epoch):
            target = consumer.target_of(member.member_id)
            assert all(held.keys() <= target.get(topic_id, frozenset()) for topic_id, held in member.assigned.items())


def members_have_their_timers(group: Group) -> None:
    consumer = consumer_of(group)
    for member_id, member in consumer.members.items():
        assert f"heartbeat-{member_id}" in group.timers, "a member's session cannot expire"
        if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
            assert has_left_for_a_while(member) or f"revocation-{member_id}" in group.timers
    owners = {timer.member_id for timer in group.timers.values() if timer.member_id}
    assert owners <= consumer.members.keys(), "a timer of a member that is gone"


def what_is_derived_is_up_to_date(group: Group) -> None:
    consumer = consumer_of(group)
    fresh = ConsumerGroup(members=consumer.members, patterns=consumer.patterns)
    assert consumer.held == fresh.held
    assert consumer.member_ids_of_instances == fresh.member_ids_of_instances
    assert consumer.subscribed_topics == fresh.subscribed_topics
    assert consumer.size_of_members == fresh.size_of_members


CONSUMER_GROUP_INVARIANTS: tuple[Callable[[Group], None], ...] = (
    no_partition_is_held_by_two_members,
    no_partition_is_in_two_targets,
    what_the_group_shows_follows_from_its_consumers,
    epochs_are_in_order,
    a_member_revokes_in_the_state_for_it,
    a_member_that_is_stable_has_nothing_else_than_its_target,
    members_have_their_timers,
    what_is_derived_is_up_to_date,
)
"""Invariants of a consumer group."""


# ---- steps -----------------------------------------------------------------------------------------------------


def epochs_grow(step: Step) -> None:
    before, after = step.before, step.result.group
    if before is None or after is None or consumer_part(before) is None or consumer_part(after) is None:
        return
    if before.incarnation != after.incarnation:
        return
    assert consumer_group(before).epoch <= consumer_group(after).epoch
    assert consumer_group(before).target_epoch <= consumer_group(after).target_epoch
    if len(step.requests) > 1 or any(isinstance(record, StaticMemberReplaced) for record in step.records):
        return
    for member_id in consumer_group(before).members.keys() & consumer_group(after).members.keys():
        member = consumer_group(after).members[member_id]
        assert has_left_for_a_while(member) or consumer_group(before).members[member_id].epoch <= member.epoch


def _accepted_heartbeat(step: Step) -> tuple[ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse] | None:
    """The only request of a step and its answer, if it is a heartbeat of a member that joins or stays."""
    if len(step.requests) != 1 or not isinstance(step.requests[0].body, ConsumerGroupHeartbeatRequest):
        return None
    body = step.requests[0].body
    answer = next(each.body for each in step.result.responses if each.address == step.requests[0].address)
    is_accepted = isinstance(answer, ConsumerGroupHeartbeatResponse) and answer.error_code == Error.NONE
    if body.member_epoch < 0 or not is_accepted:
        return None
    assert isinstance(answer, ConsumerGroupHeartbeatResponse)
    return body, answer


def every_accepted_heartbeat_restarts_the_session(step: Step) -> None:
    accepted, group = _accepted_heartbeat(step), step.result.group
    if accepted is not None and group is not None and consumer_part(group) is not None:
        timer = group.timers.get(f"heartbeat-{accepted[1].member_id}")
        sent_at = min(step.requests[0].place.timestamp, step.latest_time)
        assert timer is None or timer.armed_at >= sent_at, "an active member has an old deadline"


def a_member_learns_its_assignment(step: Step) -> None:
    """When it joins, when its request has all fields, and when the assignment has changed; never a wrong one."""
    accepted, group = _accepted_heartbeat(step), step.result.group
    if accepted is None or group is None or consumer_part(group) is None:
        return
    body, answer = accepted
    member = consumer_group(group).members.get(answer.member_id or "")
    if member is None:
        return
    before = None if step.before is None or consumer_part(step.before) is None else consumer_group(step.before).members
    known = None if before is None else before.get(member.member_id)
    subscribes = body.subscribed_topic_names is not None or body.subscribed_topic_regex is not None
    is_full = body.rebalance_timeout_ms != -1 and body.topic_partitions is not None and subscribes
    if body.member_epoch == 0 or is_full or (known is not None and known.assigned != member.assigned):
        assert answer.assignment is not None, "a member does not learn its assignment"
    if answer.assignment is not None:
        told = {each.topic_id: set(each.partitions) for each in answer.assignment.topic_partitions}
        assert told == {topic_id: set(numbers) for topic_id, numbers in member.assigned.items()}


def a_member_gets_only_topics_that_it_subscribes_to(step: Step) -> None:
    """The target may be older than the subscription. Patterns are resolved after the member made its step."""
    accepted, group = _accepted_heartbeat(step), step.result.group
    if accepted is None or group is None or consumer_part(group) is None:
        return
    member = consumer_group(group).members.get(accepted[1].member_id or "")
    if member is None or any(isinstance(record, PatternsResolved) for record in step.records):
        return
    before = None if step.before is None or consumer_part(step.before) is None else consumer_group(step.before).members
    known = None if before is None else before.get(member.member_id)
    subscribed = {topic.topic_id for topic in consumer_group(group).subscriptions.topics_of(member)}
    had = set() if known is None else known.assigned.keys()
    assert member.assigned.keys() - had <= subscribed, "a member got a topic that it does not subscribe to"


def a_new_target_is_legal_and_complete(step: Step) -> None:
    """A target gives each partition of the subscribed topics to one subscriber."""
    group, records = step.result.group, step.records
    computed = any(isinstance(record, TargetAssignmentChanged) and record.assignor is not None for record in records)
    if group is None or consumer_part(group) is None or not computed or len(step.requests) != 1:
        return
    # Patterns are resolved after the target was computed.
    if any(isinstance(record, PatternsResolved) for record in records):
        return
    consumer = consumer_group(group)
    expected, given = set(), set()
    for member_id, member in consumer.members.items():
        topics = {topic.topic_id: topic.partitions for topic in consumer.subscriptions.topics_of(member)}
        expected |= {(topic_id, number) for topic_id, count in topics.items() for number in range(count)}
        target = consumer.targets.get(member_id, {})
        assert target.keys() <= topics.keys(), "a member is to get a topic that it does not subscribe to"
        given |= {(topic_id, number) for topic_id, numbers in target.items() for number in numbers}
    assert given == expected, "a target does not have exactly the partitions that exist"


CONSUMER_GROUP_STEP_INVARIANTS: tuple[Callable[[Step], None], ...] = (
    epochs_grow,
    every_accepted_heartbeat_restarts_the_session,
    a_member_learns_its_assignment,
    a_member_gets_only_topics_that_it_subscribes_to,
    a_new_target_is_legal_and_complete,
)
"""Invariants of a step of a consumer group that classic groups do not have."""
