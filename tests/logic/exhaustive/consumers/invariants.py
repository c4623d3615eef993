"""What holds in every state of a group with its clients, beside the invariants of every step."""

from coordinator_logic.group import Group
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.members import ConsumerMember
from coordinator_logic.groups.consumer.patterns import matching_topics
from coordinator_logic.states import State
from tests.logic.exhaustive.consumers.world import Partition, Scope, Stage, World, places
from tests.support.parts import consumer_group, consumer_part


def check_group(consumer: ConsumerGroup) -> None:
    """Check what holds for the group alone."""
    valid_stable_state(consumer)


def check_world(world: World, scope: Scope) -> None:
    """Check what holds for the group with its clients."""
    group = world.decoded()
    if group is None or consumer_part(group) is None:
        return
    no_double_ownership(world, group)
    owners_are_known(world, group)
    clients_know_their_assignment(world, group)


def _clients_of_members(world: World, group: Group) -> list[tuple[frozenset[Partition], ConsumerMember]]:
    """What each client owns that is a member and knows it.

    A client that has partitions from before it was fenced does not count.
    """
    assert consumer_part(group) is not None
    known = consumer_group(group).members
    return [
        (client.owned, known[client.member_id])
        for client in world.clients
        if client.epoch is not None and client.member_id in known and not client.has_old_partitions
    ]


def no_double_ownership(world: World, group: Group) -> None:
    """No partition is owned by two clients that are members."""
    owned = [place for places_of_client, _ in _clients_of_members(world, group) for place in places_of_client]
    assert len(owned) == len(set(owned)), "two consumers own a partition"


def owners_are_known(world: World, group: Group) -> None:
    """The group knows what its clients own: it gives no such partition to others."""
    for owned, member in _clients_of_members(world, group):
        assert owned <= places(member.assigned) | places(member.pending_revocation), "it owns what it does not hold"


def clients_know_their_assignment(world: World, group: Group) -> None:
    """A client that got the last response knows its epoch and what it may own."""
    assert consumer_part(group) is not None
    for client in world.clients:
        member = consumer_group(group).members.get(client.member_id)
        if client.epoch is not None and member is not None and not client.has_lost:
            assert client.epoch == member.epoch, "a consumer does not know its epoch"
            if client.is_classic and client.stage is not Stage.SETTLED:
                continue
            assert client.received == places(member.assigned), "a consumer does not know its assignment"


def valid_stable_state(consumer: ConsumerGroup) -> None:
    """In a Stable group, each member has its whole target, and every partition of the topics is in a target."""
    if consumer.state is not State.STABLE or consumer.refresh_requested:
        return
    for member in consumer.members.values():
        ids = {topic.topic_id for topic in consumer.subscriptions.topics_of(member)}
        target = {place for place in _target(consumer, member) if place[0] in ids}
        assert places(member.assigned) == target, "a member of a Stable group lacks some of its target"


def _target(consumer: ConsumerGroup, member: ConsumerMember) -> frozenset[Partition]:
    target = consumer.targets.get(member.member_id, {})
    return frozenset((each, partition) for each, numbers in target.items() for partition in numbers)


def has_converged(world: World, scope: Scope) -> bool:
    """Whether every member owns its target, and all partitions that exist and are subscribed to have an owner."""
    group = world.decoded()
    if group is None or consumer_part(group) is None or not consumer_group(group).members:
        return True
    consumer = consumer_group(group)
    if consumer.state is not State.STABLE or consumer.epoch != consumer.target_epoch:
        return False
    owned: set[Partition] = set()
    for places_of_client, member in _clients_of_members(world, group):
        if places_of_client != places(member.assigned) or places_of_client != _target(consumer, member):
            return False
        owned |= places_of_client
    return owned == _subscribed_partitions(world, consumer, scope)


def _subscribed_partitions(world: World, consumer: ConsumerGroup, scope: Scope) -> set[Partition]:
    """All partitions of the existing topics to which members subscribe, whatever the group knows of them."""
    topics = {topic.name: topic for topic in world.catalogue(scope)}
    names = {name for member in consumer.members.values() for name in member.subscribed_topic_names}
    names.update(*(matching_topics(pattern, topics) for pattern in consumer.subscribed_patterns))
    return {
        (topics[name].topic_id, partition)
        for name in names & topics.keys()
        for partition in range(topics[name].partitions)
    }
