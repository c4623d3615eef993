"""The public contract of the topics, generated from the types: JSON Schema, and tables for a reader.

The types in :mod:`coordinator_logic.messages` and :mod:`coordinator_logic.records` are the one source. What a
field means is said once for each name, because Kafka gives the same thing the same name in every API.
"""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from coordinator_logic.handlers import APIS
from coordinator_logic.messages import RequestEnvelope, ResponseEnvelope
from coordinator_logic.records import GroupDirectoryEntry, JournalEntry

FIELDS = {
    "api": "Kafka's name of the API, e.g. `JoinGroup`.",
    "assignment": "What the leader assigned to the member, in the protocol type's own format; zero bytes: nothing.",
    "assignments": "Assignments by member. In SyncGroup the leader brings them; followers send an empty list.",
    "authorizedOperations": "Always -2147483648 (not asked): authorisation over topics is the broker's, by topic ACLs.",
    "body": "The API's own fields, see below.",
    "cause": "What brought the change about: a request, or a timer that fired.",
    "clientHost": "Where the sender runs; free text, shown by DescribeGroups and the journal.",
    "clientId": "The sender's name; the prefix of the member ids it is given.",
    "commitTimestamp": "When it was committed, ms since the epoch. In a request: v1 only, -1 for now.",
    "committedLeaderEpoch": "The leader epoch of the last record that was processed, -1 if unknown (KIP-320).",
    "committedMetadata": "Free text of the client's, at most `offset.metadata.max.bytes` UTF-16 code units.",
    "committedOffset": "The position: the offset of the next record to read; -1 in an answer: none is committed.",
    "committed": "Whether the transaction was committed; false: it was aborted, and what it committed is dropped.",
    "coordinatorEpoch": "Of the transaction's coordinator; accepted and ignored.",
    "coordinatorKeys": "The group ids asked for (v4+).",
    "coordinators": "One entry per key (v4+), in the request's order.",
    "correlationId": "Chosen by the sender, unique over all senders; comes back in the response.",
    "deadline": "When the timer was due, ms since the epoch.",
    "errorCode": "Kafka's error code; 0 is success.",
    "errorMessage": "What was wrong, for a person; null on success.",
    "expireTimestamp": "When the offset may be forgotten, ms since the epoch; null: the coordinator's retention.",
    "fromState": "The state before.",
    "generation": "The group's generation: counts up with every rebalance that completes.",
    "generationId": "The generation the sender believes in; in JoinGroup's answer, the one that begins.",
    "generationIdOrMemberEpoch": "The generation the sender believes in; -1: not as a member.",
    "groupId": "The group. In a request it must be the record's key.",
    "groupInstanceId": "The instance id of a static member (KIP-345), null for a dynamic one.",
    "groupState": "`Empty`, `PreparingRebalance`, `CompletingRebalance`, `Stable` or `Dead`.",
    "groupType": "The protocol generation of the group: `classic`.",
    "groups": "The groups, an entry for each.",
    "groupsNames": "The ids of the groups to delete.",
    "host": "The request topic's name.",
    "incarnation": "The place in the log of the request that created the group: tells a group from a later one of "
    "the same id.",
    "includeAuthorizedOperations": "Accepted and ignored, see `authorizedOperations`.",
    "key": "A group id (FindCoordinator).",
    "keyType": "What the keys are: 0, groups, is the only type served.",
    "leader": "The member id of the group's leader.",
    "leaderEpoch": "The leader epoch that was committed, null if none.",
    "markers": "One entry per transaction that has ended.",
    "memberAssignment": "The member's stored assignment.",
    "memberEpoch": "Of KIP-848; ignored for classic groups.",
    "memberId": "The id the coordinator gave the member; empty on a first join.",
    "memberMetadata": "The member's metadata for the group's protocol; empty unless the group is Stable.",
    "members": "The members: their entries, or in a directory line their number.",
    "metadata": "For a protocol: what the member says of itself, e.g. its subscription. For an offset: the free text "
    "that was committed with it.",
    "name": "The name: of a protocol, or of a topic.",
    "newMemberId": "The member id that a static member has from here on.",
    "nodeId": "The partition of the request topic that holds the group; -1 on an error.",
    "offset": "The committed position; in a cause, the request's offset in `group-requests`.",
    "offsets": "The positions that one request committed or that are forgotten; in a directory line, their number.",
    "oldMemberId": "The member id that a static member had.",
    "partition": "The partition; in a cause, the request's in `group-requests`.",
    "partitionIndex": "The partition's number.",
    "partitionIndexes": "The partitions' numbers.",
    "partitions": "The partitions, an entry for each.",
    "port": "The partition of the request topic that holds the group; -1 on an error.",
    "principal": "Who the client is, as authenticated by the gateway (`User:alice`); null where nobody asked.",
    "producerEpoch": "The producer's epoch: fences an older producer of the same transactional id.",
    "producerId": "The transactional producer's id.",
    "protocolData": "The chosen protocol of a Stable group, else empty.",
    "protocolName": "The protocol that the members voted for; null while there is none.",
    "protocolType": "What kind of group it is: `consumer`, `connect`, ...; empty or null: none yet.",
    "protocols": "The protocols a member can follow, best first.",
    "reason": "Why, for a person and the journal.",
    "rebalanceTimeoutMs": "How long the member may take to rejoin, ms; -1: its session timeout.",
    "record": "What changed.",
    "replyPartition": "The partition of `group-responses` that the sender reads.",
    "requireStable": "Whether offsets of open transactions must be waited for (KIP-447).",
    "results": "One entry per group.",
    "retentionTimeMs": "How long the offsets are kept, ms (v2-4); -1: the coordinator's retention.",
    "sequence": "Counts a group's changes 1, 2, 3, ... within its incarnation.",
    "sessionTimeoutMs": "How long the member may be silent, ms.",
    "skipAssignment": "Tells a leader that came back not to assign again (KIP-814).",
    "statesFilter": "Only groups in these states; empty: all.",
    "timer": "Which timer: `heartbeat`, `initial-join`, `join`, `sync` or `expiry`.",
    "timestamp": "When it happened by the group's own time, ms since the epoch.",
    "toState": "The state after.",
    "topic": "The topic's name.",
    "topics": "The topics, an entry for each; null in OffsetFetch: all that the group has committed.",
    "transactionResult": "True to commit the transaction's offsets, false to abort it.",
    "transactionalId": "The producer's transactional id; kept for the journal.",
    "type": "Which of the alternatives this is.",
    "typesFilter": "Only groups of these types; empty: all.",
    "version": "The version of the API that the body is of.",
}
"""What each JSON field means, by its name."""


def _components(types: list[Any]) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    schemas, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    for component in components.values():
        component["description"] = _in_json_names(component["description"])
        for name, field in component.get("properties", {}).items():
            field["description"] = FIELDS[name]
    return schemas, components


def _in_json_names(docstring: str) -> str:
    """A type's docstring for a reader of JSON: one line per paragraph, fields in camelCase."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)
    return re.sub(r"``([^`]+)``", lambda code: "`" + re.sub(r"_(\w)", lambda c: c[1].upper(), code[1]) + "`", text)


def json_schema() -> dict[str, Any]:
    """One JSON Schema (2020-12) of all that travels over the topics.

    ``$defs`` has every type; a request and its response are ``$defs/<Api>Request`` and ``$defs/<Api>Response``
    inside ``RequestEnvelope`` and ``ResponseEnvelope``, which ``oneOf`` binds together by the ``api`` field.
    """
    bodies = [t for api in APIS.values() for t in (api.request_type, api.response_type)]
    _, components = _components([RequestEnvelope, ResponseEnvelope, JournalEntry, GroupDirectoryEntry, *bodies])
    by_api = [
        {
            "title": f"{api.name} {kind.lower()}",
            "allOf": [{"$ref": f"#/$defs/{kind}Envelope"}],
            "properties": {"api": {"const": api.name}, "version": _versions(api), "body": _body(api, kind)},
        }
        for api in APIS.values()
        for kind in ("Request", "Response")
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Topics of the group coordinator",
        "description": "Records of group-requests, group-responses, group-journal and group-directory.",
        "oneOf": [*by_api, {"$ref": "#/$defs/JournalEntry"}, {"$ref": "#/$defs/GroupDirectoryEntry"}],
        "$defs": components,
    }


def _versions(api: Any) -> dict[str, int]:
    return {"minimum": api.min_version, "maximum": api.max_version}


def _body(api: Any, kind: str) -> dict[str, Any]:
    if kind == "Request":
        return {"$ref": f"#/$defs/{api.request_type.__name__}"}
    return {"anyOf": [{"$ref": f"#/$defs/{api.response_type.__name__}"}, {"type": "null"}]}


def markdown_reference() -> str:
    """Every message, field by field, as Markdown tables."""
    lines = ["## Envelopes", ""]
    lines += _section("Request", RequestEnvelope, "###")
    lines += _section("Response", ResponseEnvelope, "###")
    lines += ["## APIs", ""]
    for api in APIS.values():
        key = "No API of Kafka's" if api.key is None else f"API key {api.key}"
        lines += [f"### {api.name}", "", f"{key}, versions {api.min_version} to {api.max_version}.", ""]
        lines += _section("Request", api.request_type, "####")
        lines += _section("Response", api.response_type, "####")
    lines += ["## Journal and directory", ""]
    lines += _section("Journal", JournalEntry, "###")
    lines += _section("Directory", GroupDirectoryEntry, "###")
    return "\n".join(lines).rstrip() + "\n"


def _section(title: str, root: Any, heading: str) -> list[str]:
    _, components = _components([root])
    names = [root.__name__, *sorted(set(components) - {root.__name__})]
    lines = [f"{heading} {title}", ""]
    for name in names:
        component = components[name]
        if name != root.__name__:
            lines += [f"`{name}`: {component['description']}", ""]
        else:
            lines += [component["description"], ""]
        lines += _table(component)
    return lines


def _table(component: dict[str, Any]) -> list[str]:
    if not component.get("properties"):
        return []
    required = set(component.get("required", ()))
    rows = [
        f"| `{name}` | {_type_name(field)} | {'yes' if name in required else _default(field)} | {FIELDS[name]} |"
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
        return " or ".join(_distinct(_type_name(option) for option in field["anyOf"]))
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


def _distinct(names: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(names))
