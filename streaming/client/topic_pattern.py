"""A subscription to every topic whose name matches a regular expression. Data: no threads, no I/O."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from streaming.topics import TopicNames

KAFKAS_INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""What a broker marks as internal when it tells of its topics."""


def internal_topics(names: TopicNames) -> frozenset[str]:
    """Kafka's internal topics, and those of a coordinator, which are the same thing to its consumers.

    Whoever consumed the requests and committed what it consumed would write the next request by doing so.
    """
    own = {names.requests, names.responses, names.journal, names.directory, names.rejects, names.transactions}
    return KAFKAS_INTERNAL_TOPICS | own


@dataclass(frozen=True)
class TopicPattern:
    """A regular expression that has to match the whole name of a topic; ``excluded`` topics never match."""

    expression: re.Pattern[str]
    excluded: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.expression.pattern

    def matches(self, topic: str) -> bool:
        """Whether the topic is one of those that are meant."""
        return topic not in self.excluded and self.expression.fullmatch(topic) is not None

    def among(self, topics: Iterable[str]) -> frozenset[str]:
        """Those of the topics that are meant."""
        return frozenset(filter(self.matches, topics))
