"""Subscriptions by pattern: when a group resolves its patterns, and what follows from it.

A broker resolves patterns in the background, so a new pattern has an effect only with the heartbeat after the one that
brought it. Here they are resolved in the same turn, after the answer, or in several turns if that is much work. The
times between two resolutions are a broker's.
"""

from typing import NamedTuple, Self

from coordinator_logic.groups.consumer.data import ConsumerGroup, MatchedTopics
from coordinator_logic.groups.consumer.limits import MAX_MATCHES_BYTES, size_of_matches
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
    known = {pattern: resolved.topics for pattern, resolved in consumer.patterns.items()}
    matches = _matches(turn, consumer, subscribed)
    if matches is None:
        # The next heartbeats go on with it.
        consumer.has_new_topics = True
        return
    turn.record(PatternsResolved(matches))
    consumer.matched = {pattern: MatchedTopics(len(consumer.topics)) for pattern in consumer.matched}
    consumer.has_new_topics = consumer.has_unresolved_patterns = False
    changed = [pattern for pattern, topics in matches.items() if tuple(topics) != known.get(pattern, ())]
    metadata_hash = consumer.current_metadata_hash()
    if changed or metadata_hash != consumer.metadata_hash:
        because = f"patterns match other topics: {', '.join(changed)}" if changed else "its topics have changed"
        turn.record(GroupEpochBumped(consumer.epoch + 1, metadata_hash, because))
        consumer.refresh_requested = False


def _matches(turn: Turn, consumer: ConsumerGroup, subscribed: list[str]) -> dict[str, list[str]] | None:
    """The topics that each pattern matches; None if there is no time left to match all.

    A group always has room for its first pattern. From the first one on for which it has none, none matches anything.
    """
    matching, found, size = Matching(turn, consumer), dict[str, set[str]](), 0
    has_room = True
    for pattern in subscribed:
        if has_room:
            if not matching.match_known(pattern):
                return None
            topics = _topics_of(consumer, pattern)
            size += size_of_matches(topics)
            has_room = size <= MAX_MATCHES_BYTES or not found or not turn.config.bounds_patterns
        if has_room:
            found[pattern] = topics
        else:
            found[pattern] = set()
            consumer.matched.pop(pattern, None)
    return {pattern: sorted(topics) for pattern, topics in found.items()}


def _topics_of(consumer: ConsumerGroup, pattern: str) -> set[str]:
    """The topics that a pattern matches, once all were matched."""
    before, matched = consumer.patterns.get(pattern), consumer.matched.get(pattern)
    known = () if before is None else (name for name in before.topics if name in consumer.topics)
    return {*known, *(() if matched is None else matched.topics)}
