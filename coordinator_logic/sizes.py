"""The sizes of texts, and how long the texts of clients may be.

Every batch with a request reads and writes the whole group, so its size is a cost for all other groups, too.
"""

from collections.abc import Iterable

from coordinator_logic.config import CoordinatorConfig

GENERATED_SUFFIX_LENGTH = 37
"""A generated member id is an identifier, a hyphen and a UUID."""

LONGEST_REASON = 1_000
"""How many characters of an operator's reason the journal keeps."""

LONGEST_CHARACTER = 4
"""Bytes of a character in UTF-8 at most."""


def utf8_length(text: str) -> int:
    """The number of bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def any_longer(identifiers: Iterable[str], max_bytes: int) -> bool:
    """Whether an identifier has more bytes in UTF-8."""
    for identifier in identifiers:
        if len(identifier) * LONGEST_CHARACTER > max_bytes and utf8_length(identifier) > max_bytes:
            return True
    return False


def shortened(identifier: str, config: CoordinatorConfig) -> str:
    """An identifier for the journal; one that is longer than a group stores is cut and ends in an ellipsis."""
    longest = config.group_max_identifier_bytes + GENERATED_SUFFIX_LENGTH
    return identifier if len(identifier) <= longest else f"{identifier[:longest]}…"
