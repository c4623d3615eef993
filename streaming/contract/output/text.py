"""Texts of others, made harmless for those who read them."""

import html
import json
import re
from typing import Any

import msgspec

_MAY_BE_UNPRINTABLE = re.compile(r"[^\x20-\x7e\n]")

LARGEST_OF_FOUR_DIGITS = 0xFFFF


def printable(text: str) -> str:
    r"""A line with escapes, such as ``\u001b``, for characters that control a terminal or the direction of writing.

    These are all that Unicode calls other or a separator, line breaks among them, but not the space.
    """
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escaped(one) for one in text)


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\u{number:04x}" if number <= LARGEST_OF_FOUR_DIGITS else f"\\U{number:08x}"


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number with its noun: ``1 member``, ``2 members``. ``plural`` is for nouns that take more than an ``s``."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def html_text(text: str) -> str:
    """A text as the content of an element or the value of an attribute in HTML or SVG."""
    return html.escape(printable(text))


def label_text(text: str) -> str:
    """A text as the value of a metric's label. Two texts have two values: a scrape with a series twice is refused."""
    return printable(text.replace("\\", "\\\\"))


def json_text(value: Any, indent: int | None = None) -> str:
    """A value as JSON, in one line without ``indent``; messages are objects. Ends without a line break."""
    plain = msgspec.to_builtins(value, str_keys=True)
    # Not msgspec's encoder: an argument of the command line may have bytes that are no UTF-8, as lone surrogates.
    separators = (",", ":") if indent is None else None
    return escaped_json(json.dumps(plain, indent=indent, separators=separators, ensure_ascii=False))


def escaped_json(text: str) -> str:
    """The same JSON with escapes for the characters that :func:`printable` escapes; line breaks between values stay."""
    return _MAY_BE_UNPRINTABLE.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    character = found.group()
    return character if character.isprintable() else json.dumps(character)[1:-1]
