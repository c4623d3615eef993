"""Subscriptions by pattern: when a group resolves its patterns, and what follows from it.

A broker resolves patterns in the background, so a new pattern has an effect only with the heartbeat after the one that
brought it. Here they are resolved in the same turn, after the answer, or in several turns if that is much work. The
times between two resolutions are a broker's.
"""

from collections.abc import Iterable
from typing import NamedTuple, Self

from coordinator_logic.groups.consumer.data import ConsumerGroup, MatchedTopics
from coordinator_logic.groups.consumer.rebalance.matching import Matching
from coordinator_logic.groups.consumer.records import GroupEpochBumped, PatternsResolved
from coordinator_logic.turn import Turn

SHORTEST_INTERVAL_MS = 10_000
"""Kafka's bound: patterns are resolved again when more time than this has passed, even if topics have appeared."""


class ResolvedBefore(NamedTuple):
    """The state of a group's patterns before a request: when they were last resolved (ms since the epoch), how many."""

    at: int | None
    number: int

    @classmethod
    def of(cls, consumer: ConsumerGroup) -> Self:
        """The state of a group's patterns now."""
        return cls(next((each.resolved_at for each in consumer.patterns.values()), None), len(consumer.patterns))


def resolve_patterns_if_needed(
    turn: Turn, consumer: ConsumerGroup, before: ResolvedBefore, *, has_new_pattern: bool
) -> None:
    """Resolve all patterns of the group, and bump the group epoch if one matches other topics than before.

    ``before`` is as of before the request. ``has_new_pattern``: whether the member brings a pattern that no other
    member has.
    """
    subscribed = list(consumer.subscribed_patterns)
    consumer.has_unresolved_patterns = len(subscribed) != len(consumer.patterns)
    if not subscribed:
        return
    is_due = has_new_pattern or len(subscribed) != before.number or consumer.has_new_topics
    if before.at is not None:
        if turn.now <= before.at + SHORTEST_INTERVAL_MS:
            return
        is_due = is_due or turn.now > before.at + turn.config.group_consumer_regex_refresh_interval_ms
    if is_due:
        _resolve(turn, consumer, subscribed)


def _resolve(turn: Turn, consumer: ConsumerGroup, subscribed: list[str]) -> None:
    matching = Matching(turn, consumer)
    if not all(matching.match_known(pattern) for pattern in subscribed):
        # The next heartbeats go on with it.
        consumer.has_new_topics = True
        return
    known = {pattern: resolved.topics for pattern, resolved in consumer.patterns.items()}
    matches = {pattern: _topics_of(consumer, pattern, known.get(pattern, ())) for pattern in subscribed}
    turn.record(PatternsResolved(matches))
    consumer.matched = dict.fromkeys(subscribed, MatchedTopics(len(consumer.topics)))
    consumer.has_new_topics = consumer.has_unresolved_patterns = False
    changed = [pattern for pattern, topics in matches.items() if tuple(topics) != known.get(pattern, ())]
    metadata_hash = consumer.current_metadata_hash()
    if changed or metadata_hash != consumer.metadata_hash:
        because = f"patterns match other topics: {', '.join(changed)}" if changed else "its topics have changed"
        turn.record(GroupEpochBumped(consumer.epoch + 1, metadata_hash, because))
        consumer.refresh_requested = False


def _topics_of(consumer: ConsumerGroup, pattern: str, known: Iterable[str]) -> list[str]:
    """The topics that a pattern matches, once all were matched; ``known`` are those that it matched before."""
    return sorted({*(name for name in known if name in consumer.topics), *consumer.matched[pattern].topics})
