"""The tables of all options, generated from the types that hold them: keys, defaults, and the fields' docstrings."""

import ast
import inspect
import re
from enum import Enum
from itertools import pairwise
from typing import Any, NamedTuple, get_origin

import msgspec

from coordinator_logic.config import CoordinatorConfig
from streaming.gateway.limits import GatewayLimits
from streaming.gateway.options import GatewayOptions
from streaming.job.options import SET_BY_THE_JOB, JobOptions

KAFKAS = "as in Kafka's broker"
NOT_KAFKAS = "Not a key of Kafka's. "
"""The beginning of the docstring of an option that a broker lacks; its other options have no docstring."""

TABLES: dict[str, type[msgspec.Struct]] = {
    "job options": JobOptions,
    "protocol options": CoordinatorConfig,
    "gateway options": GatewayOptions,
    "gateway limits": GatewayLimits,
}
"""The type of each table, by the name of its place in docs/options.md."""


class Option(NamedTuple):
    """A row: the option's key, its default, and the first paragraph of the field's docstring, as Markdown."""

    key: str
    default: str
    meaning: str


def tables() -> dict[str, str]:
    """All tables in Markdown, by their places."""
    return {place: _table(options_type) for place, options_type in TABLES.items()}


def _table(options_type: type[msgspec.Struct]) -> str:
    rows = [f"| `{option.key}` | {option.default} | {option.meaning} |\n" for option in options_of(options_type)]
    return "".join(["| option | default | meaning |\n", "|---|---|---|\n", *rows])


def options_of(options_type: type[msgspec.Struct]) -> list[Option]:
    """The options of a type, without those of nested types."""
    docstrings = _docstrings(options_type)
    return [
        _option(field, docstrings.get(field.name))
        for field in msgspec.structs.fields(options_type)
        if field.encode_name not in SET_BY_THE_JOB and not _is_nested(field)
    ]


def _option(field: Any, docstring: str | None) -> Option:
    key = f"{field.encode_name}.<key>" if get_origin(field.type) is dict else field.encode_name
    if docstring is None:
        return Option(key, _default(field), KAFKAS)
    meaning = " ".join(docstring.split("\n\n")[0].removeprefix(NOT_KAFKAS).split())
    without = re.search(r" ?(?:``None``|Empty): ([^.]*)\.", meaning)
    if without is None:
        return Option(key, _default(field), _as_markdown(meaning))
    return Option(key, _as_markdown(without[1]), _as_markdown(meaning.replace(without[0], "")))


def _is_nested(field: Any) -> bool:
    return isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)


def _default(field: Any) -> str:
    default = field.default
    if field.required:
        return "required"
    if default in (None, "", msgspec.NODEFAULT):
        return "none"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, Enum):
        default = default.value
    if isinstance(default, str):
        return f"`{default}`"
    for size, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if field.name.endswith("_bytes") and default >= size and default % size == 0:
            return f"{default // size} {unit}"
    return f"{default:,}"


def _docstrings(options_type: type[msgspec.Struct]) -> dict[str, str]:
    """The docstring of each field that has one."""
    (definition,) = ast.parse(inspect.getsource(options_type)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, statement in pairwise(definition.body):
        match field, statement:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(docstring))):
                found[name] = inspect.cleandoc(docstring)
    return found


def _as_markdown(text: str) -> str:
    return re.sub(r"(?::\w+:)?`+~?([^`]+)`+", r"`\1`", text).replace("|", r"\|")
