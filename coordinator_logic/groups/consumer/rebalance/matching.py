"""How much a group matches topics with patterns at a time.

What RE2 needs for a name depends on the pattern, which a client chooses. So that no group holds a batch, the work is
counted in bytes of names times instructions of the pattern's program, and a group has a share of it: what it has not
done, it does with later requests. It keeps which topics were matched with a pattern, and resolves those no second time.
"""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator_logic.groups.consumer.data import ConsumerGroup, MatchedTopics
from coordinator_logic.groups.consumer.patterns import (
    MAX_INSTRUCTIONS,
    InvalidPattern,
    Pattern,
    matching_topics,
    read_pattern,
)
from coordinator_logic.turn import Turn

WORK_PER_SECOND = 5_000_000
"""The share of a group, in bytes times instructions: up to 30 ms of processor time in a second of the group's time.

A thousand topics of 40 bytes and a pattern like ``orders-.*`` take a quarter of it.
"""
BASE_INSTRUCTIONS = 20
"""What a name costs with any pattern: the states that RE2 makes and keeps."""
READING_AS_BYTES = 100
"""Reading a pattern costs as much as matching a name of that length."""
_SECOND = 1_000_000


class Matched(NamedTuple):
    """Which of the first ``number`` of some topics match a pattern; the others were not matched."""

    topics: list[str]
    number: int


class Matching:
    """Matches topics with patterns, until the group's share of the work is done."""

    def __init__(self, turn: Turn, consumer: ConsumerGroup) -> None:
        self._consumer = consumer
        self._is_bounded = turn.config.bounds_patterns
        now = turn.now * 1_000
        self._since = max(consumer.matching_until, now)
        self._left = WORK_PER_SECOND - (self._since - now) * WORK_PER_SECOND // _SECOND

    def match(self, pattern: str, topics: Sequence[str]) -> Matched:
        """Match topics with a pattern that is not empty, one after the other."""
        if not self._is_bounded:
            matching = matching_topics(pattern, topics, is_bounded=False)
            return Matched([name for name in topics if name in matching], len(topics))
        if not topics or self._left <= 0:
            return Matched([], 0)
        left = self._left
        try:
            matched = self._match(read_pattern(pattern), topics)
        except InvalidPattern:
            # An earlier release has accepted it.
            self._left -= READING_AS_BYTES * MAX_INSTRUCTIONS
            matched = Matched([], len(topics))
        self._since += (left - self._left) * _SECOND // WORK_PER_SECOND
        self._consumer.matching_until = self._since
        return matched

    def _match(self, pattern: Pattern, topics: Sequence[str]) -> Matched:
        work_per_byte = BASE_INSTRUCTIONS + pattern.instructions
        self._left -= READING_AS_BYTES * work_per_byte
        found: list[str] = []
        for number, name in enumerate(topics):
            # Each reading is followed by a name: otherwise a large pattern might be read for ever.
            if number and self._left <= 0:
                return Matched(found, number)
            self._left -= len(name) * work_per_byte
            if pattern.matches(name):
                found.append(name)
        return Matched(found, len(topics))

    def match_known(self, pattern: str) -> bool:
        """Match the topics of the group that were not matched with a pattern; return whether all of them are now."""
        topics, before = self._consumer.topics, self._consumer.matched.get(pattern, MatchedTopics())
        if before.number < len(topics):
            matched = self.match(pattern, list(topics)[before.number :])
            after = MatchedTopics(before.number + matched.number, (*before.topics, *matched.topics))
            self._consumer.matched[pattern] = after
            return after.number == len(topics)
        return True
