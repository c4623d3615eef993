"""Looks up in a consumer group (KIP-848) what a refusal is explained with."""

from collections.abc import Mapping

from coordinator_logic.group import Group
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, RequestBody
from streaming.explain.refusals.group_types.type_lookup import TypeLookup


class ConsumerLookup(TypeLookup):
    """Looks things up in consumer groups."""

    def is_ordinary_heartbeat(self, group: Group, body: RequestBody) -> bool:
        """Whether the member is at the epoch that it names, and asks for nothing that could be refused."""
        if not isinstance(body, ConsumerGroupHeartbeatRequest) or body.member_epoch <= 0:
            return False
        member = _part(group).members.get(body.member_id)
        return (
            member is not None
            and member.epoch == body.member_epoch
            and body.instance_id in (None, member.group_instance_id)
            and body.server_assignor is None
        )

    def generation(self, group: Group, member_id: str, since: str) -> str:
        """The epochs."""
        consumer = _part(group)
        member = consumer.members.get(member_id)
        own = "" if member is None else f"the member is at epoch {member.epoch}, "
        return f"{own}the group is at epoch {consumer.epoch}{since}"

    def member_of_instance(self, group: Group, instance_id: str) -> str | None:
        """The static member."""
        member = _part(group).static_member(instance_id)
        return None if member is None else member.member_id

    def owners(self, group: Group) -> Mapping[tuple[str, int], str]:
        """The members that hold partitions, by the names of the topics as far as they are known."""
        consumer = _part(group)
        names = {topic.topic_id: name for name, topic in consumer.topics.items()}
        return {
            (names.get(topic_id, topic_id), number): member.member_id
            for member in consumer.members.values()
            for topic_id, number in member.held_partitions()
        }


def _part(group: Group) -> ConsumerGroup:
    assert isinstance(group.part, ConsumerGroup)
    return group.part
