"""Patterns of topic names (SubscribedTopicRegex), in RE2's syntax as in Kafka, which uses RE2/J.

RE2's time for a name is linear in its length, but a short pattern can stand for a large program, as ``(.?){999}`` does.
So a pattern has a limited length, captures nothing, and is read once even if it is refused. One name then takes some
milliseconds at most, and whoever matches many names does so in pieces, with :func:`matcher`.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import re2

from coordinator_logic.sizes import any_longer

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
MAX_PATTERN_BYTES = 1_024
"""The longest pattern, in UTF-8: RE2 reads one of that length within 40 ms of processor time, whatever it holds."""
KEPT_PATTERNS = 8
"""A pattern that was read takes up to 8 MiB, with the states that RE2 keeps for the next name."""
KEPT_REFUSALS = 256
KEPT_NAMES = 10_000
"""For each of the kept patterns."""


class InvalidPattern(Exception):
    """A pattern that RE2 cannot read; the request is answered INVALID_REGULAR_EXPRESSION."""


_OPTIONS = re2.Options()
# Otherwise RE2 writes each pattern that it cannot read to the standard error output.
_OPTIONS.log_errors = False
# Finding what each group of (.?){999} captures takes 300 times as long as finding out whether a name matches.
_OPTIONS.never_capture = True

_NAME_OF_GROUP = re.compile(
    r"""(?P<other>
        \\Q .*? (?: \\E | \Z )                                      # a quotation
      | \\ .                                                        # an escaped character
      | \[ \^? \]? (?: \[:\^?\w*:\] | \\ . | [^\]\\] )* \]        # a class of characters
    ) | \( \? P? < [^>]* >""",
    re.DOTALL | re.VERBOSE,
)
"""Where the name of a group begins and ends, and everything that could contain the same characters."""


def check_pattern(pattern: str) -> None:
    """Raise :class:`InvalidPattern` if the pattern is too long, or RE2 cannot read it."""
    matcher(pattern)


def matching_topics(pattern: str, topic_names: Iterable[str]) -> frozenset[str]:
    """Return the topics whose whole names match a pattern; an empty pattern matches none.

    Raises:
        InvalidPattern: the pattern is too long, or RE2 cannot read it.
    """
    if not pattern:
        return frozenset()
    return frozenset(filter(matcher(pattern), topic_names))


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that says whether a topic's whole name matches a pattern that is not empty.

    Raises:
        InvalidPattern: the pattern is too long, or RE2 cannot read it.
    """
    if any_longer([pattern], MAX_PATTERN_BYTES):
        raise InvalidPattern(f"SubscribedTopicRegex is longer than {MAX_PATTERN_BYTES} bytes.")
    reason = _refusal(pattern)
    if reason is not None:
        raise InvalidPattern(f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}.")
    return _matcher(pattern)


@lru_cache(KEPT_PATTERNS)
def _matcher(pattern: str) -> Callable[[str], bool]:
    """The function of a pattern that RE2 can read. It remembers names: a heartbeat asks for each one three times."""
    matches = _compiled(pattern).fullmatch
    return lru_cache(KEPT_NAMES)(lambda name: matches(name) is not None)


@lru_cache(KEPT_REFUSALS)
def _refusal(pattern: str) -> str | None:
    """Why RE2 cannot read a pattern; None if it can."""
    try:
        _compiled(pattern)
    except (re2.error, UnicodeEncodeError) as reason:
        return _description(reason)
    return None


def _description(reason: Exception) -> str:
    """What RE2/J calls the mistake that RE2 has found."""
    text = reason.args[0].decode(errors="replace") if isinstance(reason, re2.error) else "invalid UTF-8"
    mistake, _, _ = text.partition(": ")
    return DESCRIPTIONS.get(mistake, mistake)


@lru_cache(KEPT_PATTERNS)
def _compiled(pattern: str) -> Any:
    try:
        compiled = re2.compile(pattern, _OPTIONS)
        if compiled.groups:
            # With a name, a group captures in spite of the options.
            compiled = re2.compile(_NAME_OF_GROUP.sub(lambda found: found["other"] or "(", pattern), _OPTIONS)
        return compiled
    finally:
        # RE2's own cache keeps 128 patterns, which can take a gigabyte.
        re2.purge()
