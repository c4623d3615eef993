"""Members of a consumer group: who sends a heartbeat, and how a member leaves or is fenced."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from coordinator_logic.assignors.server import Partitions
from coordinator_logic.errors import Error, Refusal
from coordinator_logic.groups.consumer.conversion import DOWNGRADES
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.epochs import JOIN_EPOCH, STATIC_LEAVE_EPOCH, check_heartbeat_epoch
from coordinator_logic.groups.consumer.group_config import group_config
from coordinator_logic.groups.consumer.members import AssignedPartitions, ConsumerMember
from coordinator_logic.groups.consumer.records import GroupEpochBumped, assignment_record
from coordinator_logic.groups.consumer.timers import cancel_timers_of
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest
from coordinator_logic.records import MemberRemoved, StaticMemberReplaced
from coordinator_logic.turn import Turn


class Sender(NamedTuple):
    """The member that sends a request; ``replaces`` is the id of the static member whose place it takes, if it does."""

    member: ConsumerMember
    replaces: str | None = None


def find_sender(
    consumer: ConsumerGroup, body: ConsumerGroupHeartbeatRequest, member_id: str, owned: Partitions | None
) -> Sender | Refusal:
    """Find the member that sends a heartbeat; a member that joins may be new.

    Args:
        consumer: The group; one without members if it is to be created.
        body: The heartbeat, with epoch 0 or a positive one.
        member_id: The id of the member, which may have been generated.
        owned: The partitions that the member owns; None if the request does not say.
    """
    if body.instance_id is None:
        return _find_dynamic_sender(consumer, body, member_id, owned)
    static = consumer.static_member(body.instance_id)
    if body.member_epoch == JOIN_EPOCH:
        if static is None:
            return Sender(consumer.members.get(member_id) or ConsumerMember(member_id))
        if static.classic is None and static.epoch != STATIC_LEAVE_EPOCH:
            message = (
                f"Static member {member_id} with instance id {body.instance_id} cannot join the group because the "
                f"instance id is owned by {static.member_id} member."
            )
            return Refusal(Error.UNRELEASED_INSTANCE_ID, message)
        joining = msgspec.structs.replace(static, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
        return Sender(joining, replaces=static.member_id)
    refusal = _check_static(static, body.instance_id, member_id)
    if refusal is not None:
        return refusal
    assert static is not None
    return _check_epoch(static, body.member_epoch, owned) or Sender(static)


def _find_dynamic_sender(
    consumer: ConsumerGroup, body: ConsumerGroupHeartbeatRequest, member_id: str, owned: Partitions | None
) -> Sender | Refusal:
    member = consumer.members.get(member_id)
    if member is None:
        if body.member_epoch == JOIN_EPOCH:
            return Sender(ConsumerMember(member_id))
        return _unknown_member(body.group_id, member_id)
    return _check_epoch(member, body.member_epoch, owned) or Sender(member)


def _unknown_member(group_id: str, member_id: str) -> Refusal:
    return Refusal(Error.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}.")


def _check_static(static: ConsumerMember | None, instance_id: str, member_id: str) -> Refusal | None:
    if static is None:
        return Refusal(Error.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if static.member_id != member_id:
        message = f"Static member {member_id} with instance id {instance_id} was fenced by member {static.member_id}."
        return Refusal(Error.FENCED_INSTANCE_ID, message)
    return None


def _check_epoch(member: ConsumerMember, received: int, owned: Partitions | None) -> Refusal | None:
    error = check_heartbeat_epoch(member, received, owned)
    if error is Error.NONE:
        return None
    difference = "greater" if received > member.epoch else "smaller"
    message = (
        f"The consumer group member has a {difference} member epoch ({received}) than the one known by the group "
        f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
    )
    return Refusal(error, message)


# ---- leaving ---------------------------------------------------------------------------------------------------


def leave(turn: Turn, body: ConsumerGroupHeartbeatRequest) -> Refusal | None:
    """Let a member leave for good (epoch -1), or a static one for a while (-2); return why it cannot."""
    consumer = turn.group.part_as(ConsumerGroup)
    if body.instance_id is None:
        if body.member_id not in consumer.members:
            return _unknown_member(body.group_id, body.member_id)
    else:
        static = consumer.static_member(body.instance_id)
        refusal = _check_static(static, body.instance_id, body.member_id)
        if refusal is not None:
            return refusal
        assert static is not None
        if body.member_epoch == STATIC_LEAVE_EPOCH:
            _leave_for_a_while(turn, static)
            return None
    fence_member(turn, body.member_id, "left")
    return None


def _leave_for_a_while(turn: Turn, member: ConsumerMember) -> None:
    """Keep a static member's place. Its partitions stay taken, with epoch 0 for whoever returns as this instance."""
    assigned: AssignedPartitions = {
        topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()
    }
    absent = msgspec.structs.replace(member, epoch=STATIC_LEAVE_EPOCH, assigned=assigned, pending_revocation={})
    turn.record(assignment_record(absent, "a static member left for a while"))


def fence_member(turn: Turn, member_id: str, reason: str) -> None:
    """Remove a member from a consumer group; ignores one that is not a member."""
    fence_members(turn, [member_id], reason)


def fence_members(turn: Turn, member_ids: Sequence[str], reason: str) -> None:
    """Remove members, with one new group epoch. The others get a new target with the next heartbeat of any of them."""
    consumer = turn.group.part_as(ConsumerGroup)
    leaving = [member_id for member_id in member_ids if member_id in consumer.members]
    if not leaving:
        return
    conversion = next((each for each in DOWNGRADES if each.happens_without(consumer, leaving, turn.config)), None)
    for member_id in leaving:
        turn.record(MemberRemoved(member_id, consumer.members[member_id].group_instance_id, reason))
        cancel_timers_of(turn, member_id)
    because = f"{', '.join(leaving)}: {reason}"
    if conversion is not None:
        conversion.downgrade(turn, consumer, f": {because}")
        return
    turn.record(GroupEpochBumped(consumer.epoch + 1, consumer.current_metadata_hash(), because))


def replace_member(turn: Turn, instance_id: str, old_member_id: str, new_member_id: str) -> None:
    """Give a static member that returns its place under a new member id."""
    turn.record(StaticMemberReplaced(instance_id, old_member_id, new_member_id))
    if new_member_id != old_member_id:
        cancel_timers_of(turn, old_member_id)


def session_timeout_ms(turn: Turn, member: ConsumerMember) -> int:
    """The session timeout of a member: the coordinator's, or its own if it speaks the classic protocol."""
    classic = member.classic
    return group_config(turn).session_timeout_ms if classic is None else classic.session_timeout_ms
