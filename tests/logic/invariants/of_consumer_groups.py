"""Invariants of a consumer group, among them those of the published TLA+ specification of KIP-848."""

from collections.abc import Callable

from coordinator_logic.consumer_group.data import ConsumerGroup
from coordinator_logic.consumer_group.epochs import STATIC_LEAVE_EPOCH
from coordinator_logic.consumer_group.members import ConsumerMember, MemberState
from coordinator_logic.group import Group
from tests.logic.invariants.checked_step import Step


def consumer_of(group: Group) -> ConsumerGroup:
    assert group.consumer is not None
    return group.consumer


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
    assert (group.state, group.generation) == (consumer.state, consumer.epoch)
    assert not group.members


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


def epochs_grow(step: Step) -> None:
    before, after = step.before, step.result.group
    if before is None or after is None or before.consumer is None or after.consumer is None:
        return
    assert before.consumer.epoch <= after.consumer.epoch
    assert before.consumer.target_epoch <= after.consumer.target_epoch
