"""A subscription to every topic whose name matches a regular expression. Plain data: no threads, no I/O."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from streaming.contract.topics import TopicNames

KAFKAS_INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""The topics that a broker marks as internal in its metadata."""


def internal_topics(names: TopicNames) -> frozenset[str]:
    """The topics that patterns exclude by default: Kafka's internal topics and the coordinator's own.

    A consumer of the request topic would append another request with every commit, without end.
    """
    return KAFKAS_INTERNAL_TOPICS | names.all


@dataclass(frozen=True)
class TopicPattern:
    """A regular expression that must match a topic's whole name. ``excluded`` topics never match."""

    expression: re.Pattern[str]
    excluded: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.expression.pattern

    def matches(self, topic: str) -> bool:
        """Whether the pattern matches a topic."""
        return topic not in self.excluded and self.expression.fullmatch(topic) is not None

    def filter(self, topics: Iterable[str]) -> frozenset[str]:
        """The topics that the pattern matches."""
        return frozenset(filter(self.matches, topics))
