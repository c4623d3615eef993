"""The steps of a member to its target assignment."""

from collections.abc import Callable
from typing import Any

import msgspec

from coordinator_logic.assignors.server import Partitions
from coordinator_logic.groups.consumer.members import AssignedPartitions, ConsumerMember, MemberState
from coordinator_logic.groups.consumer.reconciliation import Target
from coordinator_logic.groups.consumer.reconciliation import reconcile as reconcile_either


def reconcile(*step: Any, subscription_changed: bool = False) -> ConsumerMember:
    return reconcile_either(*step, subscription_changed=subscription_changed)


def some(**partitions: set[int]) -> Partitions:
    return {topic: frozenset(numbers) for topic, numbers in partitions.items()}


def target(epoch: int, subscribed: str = "t", **partitions: set[int]) -> Target:
    return Target(epoch, some(**partitions), topic_ids=set(subscribed.split()), subscribes=bool(subscribed))


def member(
    epoch: int,
    assigned: AssignedPartitions,
    pending: AssignedPartitions | None = None,
    state: MemberState = MemberState.STABLE,
) -> ConsumerMember:
    return ConsumerMember(
        "m", epoch=epoch, previous_epoch=epoch, state=state, assigned=assigned, pending_revocation=pending or {}
    )


def held_by(*others: ConsumerMember) -> Callable[[str, int], bool]:
    held = {partition for other in others for partition in other.held_partitions()}
    return lambda topic_id, partition: (topic_id, partition) not in held


EVERYTHING_IS_FREE = held_by()


def test_a_partition_moves_when_its_old_owner_has_confirmed_that_it_revoked_it() -> None:
    old, new = member(10, {"t": {0: 9, 1: 9, 2: 9}}), member(0, {})
    keep, move = target(11, t={0, 1}), target(11, t={2})

    new = reconcile(new, move, {}, held_by(old))
    assert (new.state, new.epoch, new.assigned) == (MemberState.UNRELEASED_PARTITIONS, 11, {})

    old = reconcile(old, keep, None, held_by(old, new))
    assert (old.state, old.epoch) == (MemberState.UNREVOKED_PARTITIONS, 10)
    assert (old.assigned, old.pending_revocation) == ({"t": {0: 9, 1: 9}}, {"t": {2: 9}})
    assert reconcile(old, keep, None, held_by(old, new)) == old
    assert reconcile(old, keep, some(t={0, 1, 2}), held_by(old, new)) == old
    assert reconcile(new, move, None, held_by(old, new)).assigned == {}

    old = reconcile(old, keep, some(t={0, 1}), held_by(old, new))
    assert (old.state, old.epoch, old.previous_epoch) == (MemberState.STABLE, 11, 10)
    assert old.pending_revocation == {}

    new = reconcile(new, move, None, held_by(old, new))
    assert (new.state, new.epoch, new.assigned) == (MemberState.STABLE, 11, {"t": {2: 11}})


def test_a_member_at_its_targets_epoch_does_not_change() -> None:
    stable = member(11, {"t": {0: 11}})
    assert reconcile(stable, target(11, t={0}), None, EVERYTHING_IS_FREE) is stable


def test_a_member_that_owns_nothing_to_revoke_advances_at_once() -> None:
    after = reconcile(member(10, {"t": {0: 9, 1: 9}}), target(11, t={0}), some(t={0}), EVERYTHING_IS_FREE)
    assert (after.state, after.epoch, after.assigned) == (MemberState.STABLE, 11, {"t": {0: 9}})


def test_free_partitions_are_given_while_others_are_awaited() -> None:
    other = member(11, {"t": {1: 3}})
    after = reconcile(member(10, {}), target(11, t={0, 1}), None, held_by(other))
    assert (after.state, after.assigned) == (MemberState.UNRELEASED_PARTITIONS, {"t": {0: 11}})


def test_a_member_revokes_again_at_its_old_epoch_when_the_target_moved_on() -> None:
    revoking = member(10, {"t": {0: 9, 1: 9}}, {"t": {2: 9}}, MemberState.UNREVOKED_PARTITIONS)
    after = reconcile(revoking, target(12, t={0}), some(t={0, 1}), EVERYTHING_IS_FREE)
    assert (after.state, after.epoch) == (MemberState.UNREVOKED_PARTITIONS, 10)
    assert after.pending_revocation == {"t": {1: 9}}


def test_a_member_gets_back_at_once_what_it_has_just_revoked() -> None:
    revoking = member(10, {"t": {0: 9}}, {"t": {1: 9}}, MemberState.UNREVOKED_PARTITIONS)
    after = reconcile(revoking, target(12, t={0, 1}), some(t={0}), held_by(revoking))
    assert (after.state, after.assigned) == (MemberState.STABLE, {"t": {0: 9, 1: 12}})


def test_unsubscribed_topics_are_revoked_before_there_is_a_new_target() -> None:
    stable = member(11, {"t": {0: 11}, "u": {0: 11}})
    old_target = target(11, "t", t={0}, u={0})
    after = reconcile(stable, old_target, None, EVERYTHING_IS_FREE, subscription_changed=True)
    assert (after.state, after.epoch) == (MemberState.UNREVOKED_PARTITIONS, 11)
    assert (after.assigned, after.pending_revocation) == ({"t": {0: 11}}, {"u": {0: 11}})
    assert reconcile(stable, old_target, some(t={0}), EVERYTHING_IS_FREE, subscription_changed=True).assigned == {
        "t": {0: 11}
    }


def test_more_unsubscribed_topics_join_those_that_are_being_revoked() -> None:
    revoking = member(11, {"t": {0: 9}}, {"u": {0: 9}}, MemberState.UNREVOKED_PARTITIONS)
    after = reconcile(revoking, target(12, "", t={0}), None, EVERYTHING_IS_FREE, subscription_changed=True)
    assert (after.assigned, after.pending_revocation) == ({}, {"t": {0: 9}, "u": {0: 9}})


def test_a_target_with_an_unsubscribed_topic_does_not_assign_it() -> None:
    after = reconcile(member(10, {}), target(11, "t", t={0}, u={0}), None, EVERYTHING_IS_FREE)
    assert (after.state, after.assigned) == (MemberState.STABLE, {"t": {0: 11}})


def test_a_member_whose_topics_do_not_exist_keeps_its_previous_epoch_and_one_without_a_subscription_loses_it() -> None:
    empty = msgspec.structs.replace(member(11, {}), previous_epoch=10)
    of_absent = Target(11, {}, topic_ids=set(), subscribes=True)
    assert reconcile(empty, of_absent, None, EVERYTHING_IS_FREE, subscription_changed=True) is empty
    of_nothing = Target(11, {}, topic_ids=set(), subscribes=False)
    assert reconcile(empty, of_nothing, None, EVERYTHING_IS_FREE, subscription_changed=True).previous_epoch == 11
