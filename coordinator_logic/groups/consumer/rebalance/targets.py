"""Group epochs and targets: when a consumer group needs a new target assignment, and how it gets one."""

from coordinator_logic.assignors.server import SERVER_ASSIGNORS
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.group_config import group_config
from coordinator_logic.groups.consumer.records import GroupEpochBumped, TargetAssignmentChanged
from coordinator_logic.groups.consumer.target_assignment import compute_targets, preferred_assignor
from coordinator_logic.turn import Turn


def bump_if_needed(turn: Turn, consumer: ConsumerGroup, reason: str | None) -> None:
    """Bump the group epoch for a reason, or because the subscribed topics have changed since the last bump.

    ``reason`` is None if only the topics can be one: then they are looked at if something was heard of them.
    """
    if reason is None and has_changed_topics(consumer):
        reason = "the topics that it subscribes to have changed"
    if reason is not None:
        turn.record(GroupEpochBumped(consumer.epoch + 1, consumer.current_metadata_hash(), reason))
    consumer.refresh_requested = False


def has_changed_topics(consumer: ConsumerGroup) -> bool:
    """Whether something was heard of the subscribed topics, and they are no longer those of the group epoch."""
    return consumer.refresh_requested and consumer.current_metadata_hash() != consumer.metadata_hash


def update_target(turn: Turn, consumer: ConsumerGroup) -> None:
    """Compute a target for the group epoch, unless there is one or the last one is too recent (KIP-1263)."""
    interval = group_config(turn).assignment_interval_ms
    if consumer.target_epoch >= consumer.epoch:
        return
    if consumer.target_at and interval and turn.now < consumer.target_at + interval:
        return
    members = consumer.members.values()
    name = preferred_assignor(members, turn.config.server_assignors)
    previous = {member_id: consumer.target_of(member_id) for member_id in consumer.targets}
    targets = compute_targets(members, previous, consumer.subscriptions, SERVER_ASSIGNORS[name])
    changed = {
        member_id: {topic_id: sorted(numbers) for topic_id, numbers in sorted(target.items())}
        for member_id, target in targets.items()
        if member_id not in previous or previous[member_id] != target
    }
    turn.record(TargetAssignmentChanged(consumer.epoch, name, changed))
