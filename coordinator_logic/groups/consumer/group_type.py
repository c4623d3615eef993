"""The type of consumer groups (KIP-848)."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from coordinator_logic import apis
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.deleted_topics import DeletedTopics
from coordinator_logic.errors import Error
from coordinator_logic.events import Response
from coordinator_logic.group.timer import HEARTBEAT, Timer
from coordinator_logic.groups.consumer import group_config
from coordinator_logic.groups.consumer.data import ConsumerGroup, form
from coordinator_logic.groups.consumer.limits import topics_fit
from coordinator_logic.groups.consumer.members import MemberState
from coordinator_logic.groups.consumer.rebalance.membership import fence_member, fence_members, session_timeout_ms
from coordinator_logic.groups.consumer.rebalance.topics import forget_topics, learn_topics
from coordinator_logic.groups.consumer.records import ConsumerGroupFormed
from coordinator_logic.groups.consumer.requests import (
    consumer_group_describe,
    consumer_group_heartbeat,
    heartbeat,
    join_group,
    leave_group,
    sync_group,
)
from coordinator_logic.groups.consumer.timers import MEMBER_JOIN, MEMBER_SYNC, REVOCATION, arm_timer
from coordinator_logic.groups.group_type import Answer, Formation, GroupType
from coordinator_logic.handler import Handler
from coordinator_logic.messages import ConsumerGroupHeartbeatResponse, TopicDescription
from coordinator_logic.turn import Turn


def _heartbeat_starts_session(response: Response) -> bool:
    # The answer to a join has an assignment always; others have one if it has changed.
    return isinstance(response.body, ConsumerGroupHeartbeatResponse) and response.body.assignment is not None


class ConsumerType(GroupType):
    """What a consumer group does in a turn."""

    part = ConsumerGroup
    formation = Formation(ConsumerGroupFormed, form)
    handlers = (
        (
            apis.CONSUMER_GROUP_HEARTBEAT,
            Handler(consumer_group_heartbeat.handle, starts_session=_heartbeat_starts_session),
        ),
        (apis.CONSUMER_GROUP_DESCRIBE, Handler(consumer_group_describe.handle, consumer_group_describe.refuse)),
    )
    answers: ClassVar[Mapping[str, Answer]] = {
        apis.JOIN_GROUP.name: join_group.answer,
        apis.SYNC_GROUP.name: sync_group.answer,
        apis.HEARTBEAT.name: heartbeat.answer,
        apis.LEAVE_GROUP.name: leave_group.answer,
    }

    def settings(self, config: CoordinatorConfig) -> Mapping[str, range]:
        return group_config.settings(config)

    def default_settings(self, config: CoordinatorConfig) -> Mapping[str, int]:
        return dict(zip(group_config.settings(config), group_config.effective({}, config), strict=True))

    def check_settings(self, values: Mapping[str, int], config: CoordinatorConfig) -> str | None:
        """Why a group cannot have these values together: its session would end before a heartbeat is due."""
        held = group_config.effective(values, config)
        if held.session_timeout_ms > held.heartbeat_interval_ms:
            return None
        return f"{group_config.SESSION_TIMEOUT} must be greater than {group_config.HEARTBEAT_INTERVAL}"

    def learn_topics(self, turn: Turn, described: Sequence[TopicDescription]) -> Error:
        """Remember the topics to which members subscribe; INVALID_REQUEST if the group has no room for all."""
        consumer = turn.group.part_as(ConsumerGroup)
        if not topics_fit(consumer, described):
            return Error.INVALID_REQUEST
        learn_topics(turn, consumer, described)
        return Error.NONE

    def forget_topics(self, turn: Turn, deleted: DeletedTopics) -> None:
        """Stop assigning topics that were deleted."""
        forget_topics(turn, turn.group.part_as(ConsumerGroup), deleted)

    def restart_members(self, turn: Turn, because: str) -> None:
        """Remove the members: their next heartbeat is answered UNKNOWN_MEMBER_ID, on which they join again."""
        fence_members(turn, list(turn.group.part_as(ConsumerGroup).members), because)

    def fire(self, turn: Turn, timer: Timer) -> None:
        """Fence the member of a timer that is due."""
        if timer.kind == HEARTBEAT:
            fence_member(turn, timer.member_id, "its session timed out")
        elif timer.kind == REVOCATION:
            member = turn.group.part_as(ConsumerGroup).members.get(timer.member_id)
            if member is not None and member.epoch == timer.generation:
                fence_member(turn, timer.member_id, "it did not revoke its partitions within the rebalance timeout")
        elif timer.kind == MEMBER_JOIN:
            fence_member(turn, timer.member_id, "it did not join again within the rebalance timeout")
        elif timer.kind == MEMBER_SYNC:
            fence_member(turn, timer.member_id, "it did not sync within the rebalance timeout")

    def load(self, turn: Turn) -> None:
        """Give every member a full session and full time to revoke; patterns are due."""
        consumer = turn.group.part_as(ConsumerGroup)
        consumer.has_new_topics = bool(consumer.patterns)
        for member in consumer.members.values():
            turn.arm_heartbeat(member.member_id, session_timeout_ms(turn, member))
            if member.state is MemberState.UNREVOKED_PARTITIONS and member.classic is None:
                arm_timer(turn, REVOCATION, member.member_id, member.rebalance_timeout_ms, member.epoch)
