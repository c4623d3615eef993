"""Reads the file of the ACLs of groups: TOML, with a table ``[[acls]]`` for each rule."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

from streaming.contract.errors import CannotRun
from streaming.contract.option_values import converted, one_of
from streaming.contract.rights.group_acls import GroupAcl, GroupAcls, GroupOperation

RULES = "acls"

MAX_RULES_BYTES = 256 * 1024
"""The most bytes of all rules as JSON: each start of the job is a record of a topic, and has them."""

_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(GroupAcl)}
_OPERATIONS = "operations"


def read_group_acls(file: str) -> GroupAcls:
    """Read the rules.

    Raises:
        CannotRun: the file cannot be read, or rules are wrong; with a line for each problem.
    """
    where = f"group-acl-file {file}"
    try:
        content = tomllib.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise CannotRun(f"{where} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CannotRun(f"{where} is not TOML: {error}") from error
    begin = f"begin each rule with [[{RULES}]]"
    problems = [f"{where}: there is no key {key!r}; {begin}" for key in content if key != RULES]
    tables = content.get(RULES)
    if not isinstance(tables, list) or not tables or not all(isinstance(table, dict) for table in tables):
        raise CannotRun("\n".join(problems) or f"{where} has no rules; {begin}")
    for number, table in enumerate(tables, 1):
        problems += (f"{where}: rule {number}: {problem}" for problem in _problems(table))
    if problems:
        raise CannotRun("\n".join(problems))
    acls = GroupAcls(tuple(msgspec.convert(table, GroupAcl) for table in tables))
    if (size := len(msgspec.json.encode(acls))) > MAX_RULES_BYTES:
        raise CannotRun(
            f"{where}: its {len(tables)} rules take {size} bytes as JSON, at most {MAX_RULES_BYTES} are possible; "
            "give groups of one principal a common prefix, and it one rule"
        )
    return acls


def _problems(table: dict[str, Any]) -> Iterator[str]:
    yield from (f"there is no key {key!r}, only {', '.join(_FIELDS)}" for key in table if key not in _FIELDS)
    for key, field in _FIELDS.items():
        if key not in table:
            if field.required:
                yield f"{key} is missing"
        elif key == _OPERATIONS:
            yield from _problems_of_operations(table[key])
        else:
            try:
                converted(table[key], field.type)
            except ValueError as error:
                yield f"{key}: {error}"


def _problems_of_operations(value: object) -> Iterator[str]:
    allowed = one_of(get_args(GroupOperation))
    if not isinstance(value, list) or not value:
        yield f"{_OPERATIONS}: {value!r} is not a list of operations, {allowed}"
        return
    yield from (f"{_OPERATIONS}: {each!r} is not {allowed}" for each in value if each not in get_args(GroupOperation))
