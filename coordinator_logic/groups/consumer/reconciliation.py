"""Reconciliation: the next step of one member on its way to the target assignment.

A member gives up partitions before it gets new ones, and a partition goes to its next owner when its last one has
confirmed that it revoked it. A member confirms by leaving the partition out of the list of those it owns.

Source: KIP-848, "Reconciliation of the group", as Kafka 4.3 implements it.
"""

from collections.abc import Callable, Set

import msgspec

from coordinator_logic.assignors.server import Partitions
from coordinator_logic.groups.consumer.members import AssignedPartitions, ConsumerMember, MemberState


class Target(msgspec.Struct, frozen=True):
    """Where a member is to arrive: its part of the group's target assignment, with the target's epoch.

    ``topic_ids`` are the existing topics that the member subscribes to now. The target may be older than the
    subscription; the member gets no partitions of other topics. ``subscribes`` is whether it subscribes to any topic,
    existing or not.
    """

    epoch: int
    partitions: Partitions
    topic_ids: Set[str]
    subscribes: bool


def reconcile(
    member: ConsumerMember,
    target: Target,
    owned: Partitions | None,
    is_free: Callable[[str, int], bool],
    *,
    subscription_changed: bool,
) -> ConsumerMember:
    """Return the member after its next step, which equals the member if it can make none.

    As in Kafka, a member that waits for unreleased partitions loses its previous epoch with its second heartbeat: that
    one shows that the response with the new epoch arrived.

    Args:
        member: The member that sends a heartbeat.
        target: Its target.
        owned: The partitions that the member owns; None if the heartbeat does not say, which confirms no revocation.
        is_free: Whether no member holds the partition of a topic id.
        subscription_changed: Whether the heartbeat changed the member's subscription. If so, the member begins to
            revoke partitions of other topics, even if it can make no other step.
    """
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        if _owns_any(owned, member.pending_revocation):
            return _without_unsubscribed(member, target, owned) if subscription_changed else member
    elif member.is_reconciled_to(target.epoch):
        return _without_unsubscribed(member, target, owned) if subscription_changed else member
    return _next_assignment(member, target, owned, is_free)


def _next_assignment(
    member: ConsumerMember, target: Target, owned: Partitions | None, is_free: Callable[[str, int], bool]
) -> ConsumerMember:
    wanted = {topic_id: numbers for topic_id, numbers in target.partitions.items() if topic_id in target.topic_ids}
    kept = _select(member.assigned, lambda topic_id, partition: partition in wanted.get(topic_id, ()))
    revoked = _select(member.assigned, lambda topic_id, partition: partition not in wanted.get(topic_id, ()))
    if revoked and _owns_any(owned, revoked):
        return msgspec.structs.replace(
            member,
            previous_epoch=member.epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=kept,
            pending_revocation=revoked,
        )

    unreleased = False
    for topic_id, numbers in wanted.items():
        for partition in sorted(numbers - kept.get(topic_id, {}).keys()):
            # What the member itself has just revoked is free for it: nobody else can have got it.
            if is_free(topic_id, partition) or partition in member.pending_revocation.get(topic_id, {}):
                kept.setdefault(topic_id, {})[partition] = target.epoch
            else:
                unreleased = True
    return msgspec.structs.replace(
        member,
        epoch=target.epoch,
        previous_epoch=member.epoch,
        state=MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE,
        assigned=kept,
        pending_revocation={},
    )


def _without_unsubscribed(member: ConsumerMember, target: Target, owned: Partitions | None) -> ConsumerMember:
    """Begin to revoke what is assigned of topics that the member no longer subscribes to."""
    removed = {topic_id: held for topic_id, held in member.assigned.items() if topic_id not in target.topic_ids}
    # As in Kafka, a member that subscribes to nothing any more loses its previous epoch even if it has no partitions.
    if not removed and (target.subscribes or member.pending_revocation):
        return member
    kept = {topic_id: held for topic_id, held in member.assigned.items() if topic_id in target.topic_ids}
    pending = {topic_id: dict(held) for topic_id, held in member.pending_revocation.items()}
    for topic_id, held in removed.items():
        pending.setdefault(topic_id, {}).update(held)
    if not pending or not _owns_any(owned, pending):
        return msgspec.structs.replace(member, previous_epoch=member.epoch, assigned=kept)
    return msgspec.structs.replace(
        member,
        previous_epoch=member.epoch,
        state=MemberState.UNREVOKED_PARTITIONS,
        assigned=kept,
        pending_revocation=pending,
    )


def _select(held: AssignedPartitions, matches: Callable[[str, int], bool]) -> AssignedPartitions:
    selected: AssignedPartitions = {}
    for topic_id, epochs in held.items():
        for partition, epoch in epochs.items():
            if matches(topic_id, partition):
                selected.setdefault(topic_id, {})[partition] = epoch
    return selected


def _owns_any(owned: Partitions | None, partitions: AssignedPartitions) -> bool:
    """Whether the member owns one of the partitions; it does if it does not say."""
    if owned is None:
        return True
    return any(not numbers.isdisjoint(partitions.get(topic_id, {})) for topic_id, numbers in owned.items())
