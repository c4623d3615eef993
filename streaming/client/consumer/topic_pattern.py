"""Subscriptions to every topic whose name matches a regular expression. Plain data: no threads, no I/O."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from coordinator_logic.groups.consumer.patterns import InvalidPattern, check_pattern, matching_topics
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
    """A regular expression, which this client evaluates. It must match a topic's whole name.

    ``excluded`` topics never match.
    """

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


@dataclass(frozen=True)
class CoordinatorPattern:
    """A regular expression in RE2's syntax, which the coordinator evaluates (KIP-848). It must match a whole name.

    The coordinator knows the topics that members describe. So this client evaluates the pattern too, and describes what
    it matches. ``excluded`` topics are not described. Raises re.error for another syntax.
    """

    expression: str
    excluded: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        try:
            check_pattern(self.expression)
        except InvalidPattern as reason:
            raise re.error(str(reason), self.expression) from reason

    def __str__(self) -> str:
        return self.expression

    def matches(self, topic: str) -> bool:
        """Whether the pattern matches a topic."""
        return topic in self.filter([topic])

    def filter(self, topics: Iterable[str]) -> frozenset[str]:
        """The topics that the pattern matches."""
        return matching_topics(self.expression, frozenset(topics) - self.excluded)


Pattern = TopicPattern | CoordinatorPattern
