"""Patterns of topic names (SubscribedTopicRegex), in RE2's syntax as in Kafka, which uses RE2/J.

RE2 takes linear time for every pattern, so a client cannot stop a batch with one.
"""

from collections.abc import Iterable
from typing import Any

import re2

DESCRIPTIONS = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "regexp/syntax: internal error",
}
"""By RE2's name of a mistake, that of RE2/J, if it differs; the rest is the same for both."""


class InvalidPattern(Exception):
    """A pattern that RE2 cannot read; the request is answered INVALID_REGULAR_EXPRESSION."""


_OPTIONS = re2.Options()
# Otherwise RE2 writes each pattern that it cannot read to the standard error output.
_OPTIONS.log_errors = False


def check_pattern(pattern: str) -> None:
    """Raise :class:`InvalidPattern` if RE2 cannot read the pattern."""
    _compile(pattern)


def matching_topics(pattern: str, topic_names: Iterable[str]) -> frozenset[str]:
    """Return the topics whose whole names match a pattern; an empty pattern matches none.

    Raises:
        InvalidPattern: RE2 cannot read the pattern.
    """
    if not pattern:
        return frozenset()
    compiled = _compile(pattern)
    return frozenset(name for name in topic_names if compiled.fullmatch(name))


def _compile(pattern: str) -> Any:
    try:
        return re2.compile(pattern, _OPTIONS)
    except (re2.error, UnicodeEncodeError) as reason:
        what = f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {_description(reason)}."
        raise InvalidPattern(what) from None


def _description(reason: Exception) -> str:
    """What RE2/J calls the mistake that RE2 has found."""
    text = reason.args[0].decode(errors="replace") if isinstance(reason, re2.error) else "invalid UTF-8"
    mistake, _, _ = text.partition(": ")
    return DESCRIPTIONS.get(mistake, mistake)
