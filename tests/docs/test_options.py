"""Every option is documented, and no document states another default than the code has."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from docs.generate import ROOT
from docs.option_tables import KAFKAS, TABLES, options_of
from streaming.gateway.limits import GatewayLimits
from streaming.gateway.options import GatewayOptions
from streaming.job.options import JobOptions
from tests.docs.markdown import DOCUMENTS

DEFAULTS = {option.key: option.default for options_type in TABLES.values() for option in options_of(options_type)}

STATED_IN_BRACKETS = re.compile(r"`([\w.-]+)`\s+\(([\d,]+(?: (?:ms|s|min|kB|KiB|MiB))?)\)")
STATED_BEFORE = re.compile(r"\b([\d,]+(?: (?:ms|s|min|kB|KiB|MiB)\b)?)(?: \w+){0,3}\s+\(`([\w.-]+)`\)")
STATED_IN_A_TABLE = re.compile(r"^\|(?: [^|]*:)? `([\w.-]+)` \| ([\d,]+(?: [KM]iB)?) \|", re.MULTILINE)
UNITS = {"": 1, "ms": 1, "s": 1_000, "min": 60_000, "KiB": 1 << 10, "MiB": 1 << 20}


def number(text: str) -> int:
    """A size in bytes, a time in milliseconds, or a count."""
    digits, _, unit = text.partition(" ")
    return int(digits.replace(",", "")) * UNITS[unit]


def stated_defaults() -> Iterator[tuple[Path, str, str]]:
    """Each document, option and number where a document puts a number behind an option's key."""
    for document in DOCUMENTS:
        text = document.read_text()
        before = [(key, value) for value, key in STATED_BEFORE.findall(text)]
        for key, value in [*STATED_IN_BRACKETS.findall(text), *before, *STATED_IN_A_TABLE.findall(text)]:
            if key in DEFAULTS:
                yield document, key, value


@pytest.mark.parametrize("options_type", TABLES.values(), ids=lambda options_type: options_type.__name__)
def test_every_option_has_a_row_with_its_meaning(options_type: type[msgspec.Struct]) -> None:
    text = (ROOT / "docs" / "options.md").read_text()
    for option in options_of(options_type):
        assert f"| `{option.key}` | {option.default} | {option.meaning} |\n" in text
        # Only a broker's own options, which have a broker's keys, may leave the meaning to Kafka's documents.
        assert option.meaning != KAFKAS or "." in option.key


def test_no_type_of_options_lacks_a_table() -> None:
    nested = {
        field.type
        for options_type in (JobOptions, GatewayOptions)
        for field in msgspec.structs.fields(options_type)
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)
    }
    assert {JobOptions, GatewayOptions, *nested} == set(TABLES.values())
    assert GatewayLimits in nested


def test_the_documents_state_the_defaults_of_the_code() -> None:
    stated = list(stated_defaults())
    assert len({document for document, _, _ in stated}) >= 3
    wrong = [
        f"{document.name}: {key} is {DEFAULTS[key]}, not {value}"
        for document, key, value in stated
        if number(value) != number(DEFAULTS[key])
    ]
    assert wrong == []
