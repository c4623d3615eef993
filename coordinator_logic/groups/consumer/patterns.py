"""Patterns of topic names (SubscribedTopicRegex), in RE2's syntax as in Kafka, which uses RE2/J.

RE2's time for a name grows with the name's length and with the program that it makes of the pattern. A short pattern
can stand for a large program, as ``([x0-9]?){999}`` does. So a pattern has a limited length and a limited program,
captures nothing, and is read once even if it is refused. One name then takes some milliseconds at most. Whoever matches
many names does so in pieces, with a :class:`Pattern`.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

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
"""The longest pattern, in UTF-8."""
MAX_INSTRUCTIONS = 8_192
"""The largest program of a pattern. RE2 takes up to 4 ns for each instruction and byte: 8 ms for the longest name."""
MAX_TOPIC_NAME_LENGTH = 249
"""Kafka's bound. The characters of a topic's name are some of ASCII's."""
KEPT_PATTERNS = 8
"""A pattern that was read takes up to 0.5 MiB, with the states that RE2 keeps for the next name."""
KEPT_REFUSALS = 256
KEPT_NAMES = 10_000
"""For each of the kept patterns."""

_TOO_LARGE = "pattern too large - compile failed"
"""RE2's words."""


class InvalidPattern(Exception):
    """A pattern that cannot be read; the request is answered INVALID_REGULAR_EXPRESSION."""


class Pattern(NamedTuple):
    """A pattern that was read. ``matches`` says whether a topic's whole name matches it."""

    matches: Callable[[str], bool]
    instructions: int


def _options(encoding: Any, max_memory: int) -> Any:
    options = re2.Options()
    options.encoding = encoding
    options.max_mem = max_memory
    # Otherwise RE2 writes each pattern that it cannot read to the standard error output.
    options.log_errors = False
    # Finding what each group of (.?){999} captures takes 300 times as long as finding out whether a name matches.
    options.never_capture = True
    return options


_UTF_8, _LATIN_1 = re2.Options.Encoding.UTF8, re2.Options.Encoding.LATIN1
_MAX_MEMORY = 2**19
"""For a program and the states of its automaton. RE2 stops early when it reads what is too large for it."""
_OPTIONS_OF_BYTES = _options(_LATIN_1, _MAX_MEMORY)
_OPTIONS = _options(_UTF_8, _MAX_MEMORY)
_EARLIER_OPTIONS = _options(_UTF_8, 2**23)

_NAME_OF_GROUP = re.compile(
    r"""(?P<other>
        \\Q .*? (?: \\E | \Z )                                      # a quotation
      | \\ .                                                        # an escaped character
      | \[ \^? \]? (?: \[:\^?\w*:\] | \\ . | [^\]\\] )* \]        # a class of characters
    ) | \( \? P? < [^>]* >""",
    re.DOTALL | re.VERBOSE,
)
"""Where the name of a group begins and ends, and everything that could contain the same characters."""


def check_pattern(pattern: str, *, is_bounded: bool = True) -> None:
    """Raise :class:`InvalidPattern` if a pattern is too long, its program is too large, or RE2 cannot read it.

    is_bounded: False for the bounds of earlier releases, see :func:`matching_topics`.
    """
    if any_longer([pattern], MAX_PATTERN_BYTES):
        raise InvalidPattern(f"SubscribedTopicRegex is longer than {MAX_PATTERN_BYTES} bytes.")
    reason = _refusal(pattern, is_bounded)
    if reason is not None:
        raise InvalidPattern(f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {reason}.")


def read_pattern(pattern: str) -> Pattern:
    """Read a pattern that is not empty. Raises :class:`InvalidPattern` as :func:`check_pattern` does."""
    check_pattern(pattern)
    return _read(pattern, is_bounded=True)


def matching_topics(pattern: str, topic_names: Iterable[str], *, is_bounded: bool = True) -> frozenset[str]:
    """Return the topics whose whole names match a pattern; an empty pattern matches none.

    is_bounded: False for what releases did until logic version 4: a program had up to 8 MiB, and any text was a name.

    Raises:
        InvalidPattern: as in :func:`check_pattern`.
    """
    if not pattern:
        return frozenset()
    check_pattern(pattern, is_bounded=is_bounded)
    return frozenset(filter(_read(pattern, is_bounded).matches, topic_names))


@lru_cache(KEPT_REFUSALS)
def _refusal(pattern: str, is_bounded: bool) -> str | None:
    """Why a pattern is refused; None if it can be read."""
    try:
        read = _read(pattern, is_bounded)
    except (re2.error, UnicodeEncodeError) as reason:
        return _description(reason)
    return _TOO_LARGE if is_bounded and read.instructions > MAX_INSTRUCTIONS else None


def _description(reason: Exception) -> str:
    """What RE2/J calls the mistake that RE2 has found."""
    text = reason.args[0].decode(errors="replace") if isinstance(reason, re2.error) else "invalid UTF-8"
    mistake, _, _ = text.partition(": ")
    return DESCRIPTIONS.get(mistake, mistake)


@lru_cache(KEPT_PATTERNS)
def _read(pattern: str, is_bounded: bool) -> Pattern:
    """The pattern. It remembers names: a heartbeat asks for each one three times."""
    compiled = _compiled_for_names(pattern) if is_bounded else _compiled(pattern, _EARLIER_OPTIONS)
    matches = compiled.fullmatch

    def is_match(name: str) -> bool:
        may_match = not is_bounded or (len(name) <= MAX_TOPIC_NAME_LENGTH and name.isascii())
        return may_match and matches(name.encode()) is not None

    return Pattern(lru_cache(KEPT_NAMES)(is_match), compiled.programsize)


def _compiled_for_names(pattern: str) -> Any:
    """Compile a pattern for names in ASCII. The program for bytes is a tenth of that for characters of any alphabet."""
    if pattern.isascii():
        try:
            return _compiled(pattern, _OPTIONS_OF_BYTES)
        except re2.error as reason:
            if _description(reason) == _TOO_LARGE:
                raise
            # It may name a character of another alphabet by its number. Otherwise it fails again.
    return _compiled(pattern, _OPTIONS)


def _compiled(pattern: str, options: Any) -> Any:
    try:
        compiled = re2.compile(pattern.encode(), options)
        if compiled.groups:
            # With a name, a group captures in spite of the options.
            unnamed = _NAME_OF_GROUP.sub(lambda found: found["other"] or "(", pattern)
            compiled = re2.compile(unnamed.encode(), options)
        return compiled
    finally:
        # RE2's own cache keeps 128 patterns, which can take a gigabyte.
        re2.purge()
