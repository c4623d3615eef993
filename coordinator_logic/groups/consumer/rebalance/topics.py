"""What a consumer group learns of topics, from heartbeats and from events of their own."""

from collections.abc import Sequence

from coordinator_logic.deleted_topics import DeletedTopics
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.rebalance.matching import Matched, Matching
from coordinator_logic.groups.consumer.records import TopicsChanged
from coordinator_logic.messages import TopicDescription
from coordinator_logic.turn import Turn


def learn_topics(turn: Turn, consumer: ConsumerGroup, described: Sequence[TopicDescription], pattern: str = "") -> None:
    """Remember the topics to which members subscribe, by name or by pattern; ignore what is known or does not matter.

    Descriptions may be older than what the group knows. Topics do not lose partitions, so of two descriptions with the
    same id the one with more partitions holds.

    pattern: that of the member that brings the descriptions; empty if it has none. They are most likely of topics that
    match it, so the other patterns have little to do.
    """
    news = {topic.name: topic for topic in described if _is_news(consumer, topic)}
    if not news:
        return
    relevant = set(news.keys() & consumer.subscribed_topics)
    matching = Matching(turn, consumer)
    for each in sorted(consumer.subscribed_patterns, key=lambda other: other != pattern):
        unknown = [name for name in news if name not in relevant]
        matched = matching.match(each, unknown)
        # The group keeps topics for whose matching it has no time left; they may match.
        relevant.update(matched.topics if matched.number == len(unknown) else unknown)
        if len(relevant) == len(news):
            break
    created = [name for name in news if name in relevant and _is_created(consumer, news[name])]
    if created and not consumer.has_new_topics:
        resolved = sorted(consumer.patterns, key=lambda other: other != pattern)
        consumer.has_new_topics = any(_may_match(matching.match(each, created), created) for each in resolved)
    if relevant:
        turn.record(TopicsChanged([news[name] for name in sorted(relevant)], []))


def _may_match(matched: Matched, topics: Sequence[str]) -> bool:
    return bool(matched.topics) or matched.number < len(topics)


def _is_news(consumer: ConsumerGroup, topic: TopicDescription) -> bool:
    return _is_created(consumer, topic) or consumer.topics[topic.name].partitions < topic.partitions


def _is_created(consumer: ConsumerGroup, topic: TopicDescription) -> bool:
    known = consumer.topics.get(topic.name)
    return known is None or known.topic_id != topic.topic_id


def forget_topics(turn: Turn, consumer: ConsumerGroup, deleted: DeletedTopics) -> None:
    """Forget topics that were deleted, but for those of which the group knows by now that they exist again."""
    topics = consumer.topics
    known = [name for name in deleted.ids if name in topics and deleted.includes(name, topics[name].topic_id)]
    if known:
        turn.record(TopicsChanged([], known))
