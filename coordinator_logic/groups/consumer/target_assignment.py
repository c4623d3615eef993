"""The target assignment of a group: what its topics are, which assignor runs, and what it decides."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from coordinator_logic.assignors.server import Partitions, ServerAssignor, SubscribedMember
from coordinator_logic.groups.consumer.members import ConsumerMember


class Topic(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An existing topic. A topic that is deleted and created again has another id."""

    topic_id: str
    partitions: int


class Subscriptions(msgspec.Struct, frozen=True):
    """What subscriptions mean at present: the existing topics by name, and the topics that each pattern matches.

    A pattern that is not in ``matches`` is not resolved yet, and matches nothing.
    """

    topics: Mapping[str, Topic]
    matches: Mapping[str, Iterable[str]] = {}

    def names_of(self, member: ConsumerMember) -> set[str]:
        """Return the names of the topics that a member subscribes to, by name or by pattern; not all need to exist."""
        return {*member.subscribed_topic_names, *self.matches.get(member.subscribed_topic_regex, ())}

    def topics_of(self, member: ConsumerMember) -> list[Topic]:
        """Return the existing ones of the topics that a member subscribes to."""
        return [self.topics[name] for name in sorted(self.names_of(member) & self.topics.keys())]


def preferred_assignor(members: Iterable[ConsumerMember], configured: Sequence[str]) -> str:
    """Return the assignor that most members ask for; the first configured one if no member asks for any.

    Kafka breaks ties arbitrarily; here the one that is configured first wins. Members that ask for an assignor which is
    no longer configured do not count.
    """
    votes = Counter(member.server_assignor for member in members)
    return max(configured, key=lambda name: votes[name])


def compute_targets(
    members: Iterable[ConsumerMember],
    previous: Mapping[str, Partitions],
    subscriptions: Subscriptions,
    assignor: ServerAssignor,
) -> dict[str, Partitions]:
    """Compute the target assignment of every member, by member id.

    Args:
        members: All members of the group.
        previous: The previous target assignment, by member id; a new member has none.
        subscriptions: What the members' subscriptions mean.
        assignor: The assignor to run.
    """
    partition_counts: dict[str, int] = {}
    subscribed: list[SubscribedMember] = []
    for member in members:
        topics = subscriptions.topics_of(member)
        partition_counts.update((topic.topic_id, topic.partitions) for topic in topics)
        topic_ids = frozenset(topic.topic_id for topic in topics)
        target = previous.get(member.member_id, {})
        subscribed.append(SubscribedMember(member.member_id, member.group_instance_id, topic_ids, target))
    return assignor(subscribed, partition_counts)
