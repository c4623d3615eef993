"""The reference of all messages: a Markdown table of the fields for each type."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from coordinator_logic.apis import APIS
from coordinator_logic.messages import RequestEnvelope, ResponseEnvelope
from coordinator_logic.records import GroupDirectoryEntry, JournalEntry
from streaming.contract.schema import FIELDS, FurtherTopic, described_types


def markdown(further: Sequence[FurtherTopic]) -> str:
    """Return the reference of all messages, with a Markdown table of the fields for each type."""
    lines = ["## Envelopes", ""]
    lines += _section("Request", RequestEnvelope, "###")
    lines += _section("Response", ResponseEnvelope, "###")
    lines += ["## APIs", ""]
    for api in APIS.values():
        key = "Not an API of Kafka" if api.key is None else f"API key {api.key}"
        lines += [f"### {api.name}", "", f"{key}, versions {api.min_version} to {api.max_version}.", ""]
        lines += _section("Request", api.request_type, "####")
        lines += _section("Response", api.response_type, "####")
    lines += ["## Journal and directory", ""]
    lines += _section("Journal", JournalEntry, "###")
    lines += _section("Directory", GroupDirectoryEntry, "###")
    for topic in further:
        lines += _section(f"`{topic.name}`", topic.record, "##", topic.fields)
    return "\n".join(lines).rstrip() + "\n"


def _section(title: str, root: Any, heading: str, fields: Mapping[str, str] = FIELDS) -> list[str]:
    components = described_types([root], fields)
    names = [root.__name__, *sorted(set(components) - {root.__name__})]
    lines = [f"{heading} {title}", ""]
    for name in names:
        component = components[name]
        before = "" if name == root.__name__ else f"`{name}`: "
        lines += [before + component["description"], ""]
        lines += _table(component)
    return lines


def _table(component: dict[str, Any]) -> list[str]:
    if not component.get("properties"):
        return []
    required = set(component.get("required", ()))
    rows = [
        f"| `{name}` | {_type_name(field)} | {'yes' if name in required else _default(field)} "
        f"| {field['description']} |"
        for name, field in component["properties"].items()
    ]
    return ["| field | type | required | meaning |", "|---|---|---|---|", *rows, ""]


def _default(field: dict[str, Any]) -> str:
    return f"no: `{msgspec.json.encode(field['default']).decode()}`" if "default" in field else "no"


_INTEGERS = {2**15 - 1: "int16", 2**31 - 1: "int32", 2**63 - 1: "int64"}


def _type_name(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return f"`{field['$ref'].removeprefix('#/$defs/')}`"
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type_name(option) for option in field["anyOf"]))
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    match field.get("type"):
        case "array":
            return f"list of {_type_name(field['items'])}"
        case "object":
            return f"object of {_type_name(field.get('additionalProperties', {}))}"
        case "integer":
            return _INTEGERS.get(field.get("maximum", 0), "integer")
        case "string":
            return "bytes, base64" if field.get("contentEncoding") == "base64" else "string"
        case str(name):
            return name
        case _:
            return "object"
