"""Generate the public contract of the topics from the message types, as a JSON Schema.

The types in :mod:`coordinator_logic.messages` and :mod:`coordinator_logic.records` are the only source. Each field
name has one description, because Kafka uses the same name for the same thing in every API. Topics that are written in
the rooms above bring their own types and descriptions.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from coordinator_logic.apis import APIS
from coordinator_logic.messages import RequestEnvelope, ResponseEnvelope
from coordinator_logic.records import GroupDirectoryEntry, JournalEntry

FIELDS = {
    "api": "Kafka's name of the API, e.g. `JoinGroup`.",
    "assignment": "The member's assignment, in the format of the protocol type; empty if it has none.",
    "assignmentsTooLarge": "True in place of assignments that are too large for a record of the requests.",
    "assignments": "The assignment of each member. In SyncGroup the leader sends it; followers send an empty list.",
    "authorizedOperations": "Always -2147483648, Kafka's value for unknown: brokers authorize access to the topics.",
    "body": "The API's own fields, see the sections below.",
    "cause": "The cause of the change: a request, or a timer that fired.",
    "claimed": "Whether client id, host and principal are only what the sender says. False: a gateway has signed them, "
    "or the principal itself.",
    "clientHost": "The host of the client, as free text; appears in DescribeGroups and in the journal.",
    "clientId": "The client id; generated member ids begin with it.",
    "commitTimestamp": "The time of the commit, ms since the epoch. In a request: v1 only, -1 for the current time.",
    "committedLeaderEpoch": "The leader epoch of the last processed record, -1 if unknown (KIP-320).",
    "committedMetadata": "Free text of the client, at most `offset.metadata.max.bytes` UTF-16 code units.",
    "committedOffset": "The position: the offset of the next record to read. In a response, -1 if none is committed.",
    "committed": "Whether the transaction was committed. If false, it was aborted and its offsets were discarded.",
    "coordinatorEpoch": "The epoch of the transaction coordinator; ignored.",
    "isDeletion": "Whether the group was deleted: the line is a tombstone.",
    "jobEpoch": "Grows with every start of the query, of this job or another one for these topics; 0 if not known.",
    "coordinatorKeys": "The group ids to find (v4+).",
    "coordinators": "One entry for each key (v4+), in the order of the request.",
    "correlationId": "An id that the sender chooses, unique across all senders; the response repeats it.",
    "data": "The page of the stored state.",
    "deadline": "The time at which the timer was due, ms since the epoch.",
    "endsTurn": "Whether no further entry of the same turn follows; entries of earlier releases lack it.",
    "errorCode": "Kafka's error code; 0 for success.",
    "defaults": "The coordinator's values, which hold where the group has none of its own.",
    "directoryChange": "The change that the group's line in `group-directory` shows, which is written with this "
    "response; absent if the line stays as it is.",
    "errorMessage": "A description of the error; null on success.",
    "expectedOffset": "The committed offset that the sender has seen, -1 for none; null accepts any.",
    "expireTimestamp": "The time at which the offset may expire, ms since the epoch; null for the coordinator's "
    "`offsets.retention.minutes`.",
    "formatVersion": "The first byte of the stored state: the version of its format; -1 if there is none.",
    "force": "Whether to reset a group with members, too. They lose their generation, and join again.",
    "fromState": "The state before the transition.",
    "generation": "The group's generation; it increases by 1 with every completed rebalance, and with a forced reset.",
    "generationId": "The member's generation. In the response of JoinGroup, the new generation.",
    "generationIdOrMemberEpoch": "The member's generation; -1 for a commit that is not a member's.",
    "groupId": "The group id. In a request it must equal the record's key.",
    "groupInstanceId": "The instance id of a static member (KIP-345); null for a dynamic member.",
    "groupState": "`Empty`, `PreparingRebalance`, `CompletingRebalance`, `Stable` or `Dead`; of a consumer "
    "group `Empty`, `Assigning`, `Reconciling` or `Stable`. In a line of the "
    "directory also `Quarantined`: the group's stored state cannot be read.",
    "groupType": "The type of the group: `classic`, or `consumer` for the consumer group protocol (KIP-848).",
    "groups": "One entry for each group.",
    "groupsNames": "The ids of the groups to delete.",
    "host": "The name of the request topic.",
    "incarnation": "The log position of the request that created the group. It differs if a group with the same id is "
    "created again after its deletion.",
    "includeAuthorizedOperations": "Ignored, see `authorizedOperations`.",
    "key": "The group id to find.",
    "keyType": "The type of the keys; only 0 (group) is supported.",
    "leader": "The member id of the group's leader.",
    "leaderEpoch": "The leader epoch that was committed; null if none.",
    "length": "The number of bytes to read.",
    "listsAll": "Whether to refuse the request if the group has an offset of a partition that it does not list.",
    "markers": "One entry for each transaction that has ended.",
    "memberAssignment": "The member's current assignment.",
    "memberId": "The member id, which the coordinator generates; empty on a first join.",
    "memberMetadata": "The member's metadata for the group's protocol; empty unless the group is Stable.",
    "members": "One entry for each member. In a line of the directory, the number of members.",
    "metadata": "Of a protocol: the member's metadata, e.g. its subscription. Of an offset: the free text that was "
    "committed with it.",
    "name": "The name of a protocol or of a topic.",
    "newMemberId": "The new member id of the static member.",
    "nodeId": "The partition of the request topic that holds the group; -1 on an error.",
    "offset": "The committed position; in ResetOffsets, -1 deletes it. In a cause, the offset of the request in "
    "`group-requests`. Of a stored state, the first byte to read.",
    "offsets": "The positions that were committed or deleted. In a line of the directory, their number.",
    "oldMemberId": "The previous member id of the static member.",
    "partition": "The partition number. In a cause, the partition of the request in `group-requests`.",
    "partitionIndex": "The partition number.",
    "partitionIndexes": "The partition numbers.",
    "partitions": "One entry for each partition.",
    "port": "The partition of the request topic that holds the group; -1 on an error.",
    "principal": "The client as authenticated by the gateway, e.g. `User:alice`; null if it was not authenticated.",
    "producerEpoch": "The producer's epoch; it fences older producers with the same transactional id.",
    "producerId": "The id of the transactional producer.",
    "protocolData": "The protocol of a Stable group; empty in other states.",
    "protocolName": "The protocol that the members voted for; null if there is none.",
    "protocolType": "The protocol type of the group, e.g. `consumer` or `connect`; empty or null if it has none yet.",
    "protocols": "The protocols that the member supports, in order of preference.",
    "reason": "The reason, as free text for the journal.",
    "rebalanceTimeoutMs": "The time that the member may take to rejoin, ms; -1 for its session timeout.",
    "record": "The change.",
    "rejoining": "The number of members that have to join again.",
    "replyPartition": "The partition of `group-responses` that the sender reads.",
    "requireStable": "Whether to answer UNSTABLE_OFFSET_COMMIT for offsets of open transactions (KIP-447).",
    "results": "One entry for each group.",
    "retentionTimeMs": "The retention time of the offsets, ms (v2-4); -1 for the coordinator's "
    "`offsets.retention.minutes`.",
    "sequence": "The number of the change: 1, 2, 3, ... within an incarnation of the group.",
    "sessionTimeoutMs": "The session timeout, ms: a member that sends no request for this time is expelled.",
    "signature": "The signature of a gateway, or of the principal with a key of its own, which vouches for client id, "
    "host and principal; others leave it out.",
    "size": "The size of the stored state, bytes.",
    "skipAssignment": "Whether the leader must keep the existing assignment instead of computing a new one (KIP-814).",
    "statesFilter": "List only groups in these states; empty for all.",
    "storedBytes": "The size of the stored group, rounded up to a power of two; absent below 256 KiB.",
    "takenOver": "Whether the group has the offsets of the request; false if it existed already.",
    "timer": "The timer: `heartbeat`, `initial-join`, `join`, `sync`, `revocation`, `member-join`, `member-sync` or "
    "`expiry`.",
    "timestamp": "The group's time of the change, ms since the epoch.",
    "toState": "The state after the transition.",
    "topic": "The name of the topic.",
    "topics": "One entry for each topic. In OffsetFetch, null selects all topics with committed offsets.",
    "transactionResult": "True if the transaction was committed, false if it was aborted.",
    "transactionalId": "The transactional id of the producer; recorded in the journal.",
    "groupIds": "The ids of the groups to describe.",
    "configs": "Values of the group's own, by Kafka's names of a group's configuration. In a line of the directory, "
    "their number.",
    "memberEpoch": "The member epoch of KIP-848. In a heartbeat 0 joins, -1 leaves, -2 leaves for a while.",
    "instanceId": "The instance id of a static member (KIP-345); null for a dynamic member.",
    "rackId": "The rack of the member; null if it has none.",
    "subscribedTopicNames": "The topics to which the member subscribes by name. In a heartbeat, null means unchanged.",
    "subscribedTopicRegex": "The pattern to which the member subscribes, in RE2's syntax; null: unchanged.",
    "serverAssignor": "The assignor for which the member votes: `uniform` or `range`; null for none.",
    "topicPartitions": "One entry for each topic. In a heartbeat, what the member owns; null means unchanged.",
    "topicIds": "The ids of the deleted topics, by name; for a name without ids, every topic of the name was deleted.",
    "topicId": "The id of the topic in Kafka's text form: URL-safe base64 of its 16 bytes, without padding.",
    "topicName": "The name of the topic.",
    "heartbeatIntervalMs": "How often the member is to send heartbeats, ms.",
    "groupEpoch": "The group epoch: a higher one than the assignment epoch means that a new target is needed.",
    "assignmentEpoch": "The group epoch for which the target assignment was computed.",
    "assignorName": "The assignor that the group uses.",
    "targetAssignment": "The partitions that the member is to have.",
    "memberType": "0: the member speaks the classic protocol; 1: the consumer group protocol; -1: not said (v0).",
    "epoch": "An epoch of the group or of the member.",
    "previousEpoch": "The member's epoch before this one.",
    "classic": "What a member that speaks the classic protocol has brought; null in the consumer group protocol.",
    "described": "The topics that exist, or have changed.",
    "deleted": "The names of the topics that no longer exist.",
    "patterns": "By pattern, the topics that it matches.",
    "metadataHash": "A hash of the topics to which the group subscribes.",
    "assignor": "The assignor that computed the target.",
    "targets": "By member id and topic id, the partitions of the members whose target changed.",
    "state": "How far the member is: `stable`, `unrevoked-partitions` or `unreleased-partitions`.",
    "assigned": "By topic id and partition, the member epoch at which the member got the partition.",
    "pendingRevocation": "By topic id and partition, what the member has yet to revoke.",
    "type": "The type of the entry.",
    "typesFilter": "List only groups of these types; empty for all.",
    "why": "Why the stored state cannot be read.",
    "validateOnly": "Whether to check the change only.",
    "version": "The version of the API.",
}
"""The description of each JSON field, by its name."""


class FurtherTopic(NamedTuple):
    """A topic that another room describes: its name, the type of its records, and the fields' descriptions by name."""

    name: str
    record: Any
    fields: Mapping[str, str]


def described_types(types: list[Any], fields: Mapping[str, str] = FIELDS) -> dict[str, Any]:
    """The JSON Schema of these types and of those that they use, by name, with a description of each field."""
    _, components = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    for component in components.values():
        component["description"] = _in_json_names(component["description"])
        for name, field in component.get("properties", {}).items():
            field["description"] = fields[name]
    return components


def _in_json_names(docstring: str) -> str:
    """Convert a type's docstring for readers of JSON: one line for each paragraph, field names in camelCase."""
    paragraphs = inspect.cleandoc(docstring).split("\n\n")
    text = "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)
    return re.sub(r"``([^`]+)``", lambda code: "`" + re.sub(r"_(\w)", lambda c: c[1].upper(), code[1]) + "`", text)


def json_schema(further: Sequence[FurtherTopic]) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the records of all topics, also of ``further`` ones.

    ``$defs`` has every type. The ``oneOf`` has an entry for each API and direction: an envelope whose ``api`` is the
    API's name and whose ``body`` is ``$defs/<Api>Request`` or ``$defs/<Api>Response``.
    """
    bodies = [t for api in APIS.values() for t in (api.request_type, api.response_type)]
    components = described_types([RequestEnvelope, ResponseEnvelope, JournalEntry, GroupDirectoryEntry, *bodies])
    for topic in further:
        components |= described_types([topic.record], topic.fields)
    lines = [JournalEntry, GroupDirectoryEntry, *(topic.record for topic in further)]
    names = [
        "group-requests",
        "group-responses",
        "group-journal",
        "group-directory",
        *(topic.name for topic in further),
    ]
    by_api = [
        {
            "title": f"{api.name} {kind.lower()}",
            "allOf": [{"$ref": f"#/$defs/{kind}Envelope"}],
            "properties": {
                "api": {"const": api.name},
                "version": {"minimum": api.min_version, "maximum": api.max_version},
                "body": _body(api, kind),
            },
        }
        for api in APIS.values()
        for kind in ("Request", "Response")
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Topics of the group coordinator",
        "description": f"Records of {', '.join(names)}.",
        "oneOf": [*by_api, *({"$ref": f"#/$defs/{line.__name__}"} for line in lines)],
        "$defs": components,
    }


def _body(api: Any, kind: str) -> dict[str, Any]:
    if kind == "Request":
        return {"$ref": f"#/$defs/{api.request_type.__name__}"}
    return {"anyOf": [{"$ref": f"#/$defs/{api.response_type.__name__}"}, {"type": "null"}]}
