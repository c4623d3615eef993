"""What a refusal looks up in a group of each type: the one place of the room that does so by the type."""

from collections.abc import Iterable, Mapping

from coordinator_logic.errors import Error
from coordinator_logic.group import Group
from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, HeartbeatRequest, RequestBody
from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE
from streaming.explain.story.moves import owners_of


class TypeLookup:
    """Looks things up in groups of one type; a type that is not listed has no more than this."""

    def is_ordinary_heartbeat(self, group: Group, body: RequestBody) -> bool:
        """Whether a request is a heartbeat that the group certainly accepts."""
        return False

    def hand_out_again(self, group: Group, handed_out: Mapping[str, int], now: int) -> list[str]:
        """Hand out member ids that can be used until a time, ms since the epoch, if the group would know them.

        Returns those that are used, or can no longer be used.
        """
        return []

    def generation(self, group: Group, member_id: str, since: str) -> str:
        """The generation or the epoch of the group and of a member; ``since`` says when it began."""
        return f"the group is in generation {group.generation}{since}"

    def member_of_instance(self, group: Group, instance_id: str) -> str | None:
        """The member id of the static member with an instance id."""
        return None

    def chosen_protocol(self, group: Group) -> str | None:
        """The protocol that the members have voted for; None in a group without votes."""
        return None

    def common_protocols(self, group: Group) -> Iterable[str]:
        """The protocols that all members support; none in a group without votes."""
        return ()

    def owners(self, group: Group) -> Mapping[tuple[str, int], str]:
        """The member id of who owns a partition, or has yet to give it up, by topic and partition."""
        return {}


class ClassicLookup(TypeLookup):
    """Looks things up in classic groups."""

    def is_ordinary_heartbeat(self, group: Group, body: RequestBody) -> bool:
        if not isinstance(body, HeartbeatRequest):
            return False
        classic = group.part_as(ClassicGroup)
        return classic.check_generation(body.member_id, body.group_instance_id, body.generation_id) is Error.NONE

    def hand_out_again(self, group: Group, handed_out: Mapping[str, int], now: int) -> list[str]:
        classic = group.part_as(ClassicGroup)
        over = [member_id for member_id, until in handed_out.items() if now >= until or member_id in classic.members]
        for member_id in handed_out.keys() - over:
            classic.hand_out_member_id(member_id)
        return over

    def member_of_instance(self, group: Group, instance_id: str) -> str | None:
        member = group.part_as(ClassicGroup).member_of_instance(instance_id)
        return None if member is None else member.member_id

    def chosen_protocol(self, group: Group) -> str | None:
        return group.part_as(ClassicGroup).protocol_name

    def common_protocols(self, group: Group) -> Iterable[str]:
        return group.part_as(ClassicGroup).protocol_candidates()

    def owners(self, group: Group) -> Mapping[tuple[str, int], str]:
        """The owners in the assignment, if it is that of consumers."""
        owned = owners_of(
            {member.member_id: member.assignment for member in group.part_as(ClassicGroup).members.values()}
        )
        return {(place.topic, place.partition): member_id for place, member_id in (owned or {}).items()}


class ConsumerLookup(TypeLookup):
    """Looks things up in consumer groups (KIP-848)."""

    def is_ordinary_heartbeat(self, group: Group, body: RequestBody) -> bool:
        """Whether the member is at the epoch that it names, and asks for nothing that could be refused."""
        if not isinstance(body, ConsumerGroupHeartbeatRequest) or body.member_epoch <= 0:
            return False
        member = group.part_as(ConsumerGroup).members.get(body.member_id)
        return (
            member is not None
            and member.epoch == body.member_epoch
            and body.instance_id in (None, member.group_instance_id)
            and body.server_assignor is None
        )

    def generation(self, group: Group, member_id: str, since: str) -> str:
        consumer = group.part_as(ConsumerGroup)
        member = consumer.members.get(member_id)
        own = "" if member is None else f"the member is at epoch {member.epoch}, "
        return f"{own}the group is at epoch {consumer.epoch}{since}"

    def member_of_instance(self, group: Group, instance_id: str) -> str | None:
        member = group.part_as(ConsumerGroup).static_member(instance_id)
        return None if member is None else member.member_id

    def owners(self, group: Group) -> Mapping[tuple[str, int], str]:
        """The members that hold partitions, by the names of the topics as far as they are known."""
        consumer = group.part_as(ConsumerGroup)
        names = {topic.topic_id: name for name, topic in consumer.topics.items()}
        return {
            (names.get(topic_id, topic_id), number): member.member_id
            for member in consumer.members.values()
            for topic_id, number in member.held_partitions()
        }


_BY_TYPE: Mapping[str, TypeLookup] = {CLASSIC_TYPE: ClassicLookup(), CONSUMER_TYPE: ConsumerLookup()}
_ANY = TypeLookup()


def lookup_in(group: Group) -> TypeLookup:
    """What looks things up in groups of this one's type."""
    return _BY_TYPE.get(group.group_type, _ANY)
