"""Request events as a program in any language would write them: plain JSON."""

import json
import uuid
from typing import Any


def correlation_id() -> str:
    """A correlation id that no other request has."""
    return uuid.uuid4().hex


def envelope(api: str, version: int, body: object, **fields: object) -> dict[str, Any]:
    """A request envelope; ``fields`` replace or add envelope fields."""
    return {
        "api": api,
        "version": version,
        "correlationId": correlation_id(),
        "clientId": "test",
        "clientHost": "/127.0.0.1",
        "replyPartition": 0,
        "body": body,
        **fields,
    }


def commit(group_id: str, offset: int, **fields: object) -> dict[str, Any]:
    """An OffsetCommit from outside the group's membership, for partition 0 of ``payments``."""
    partition = {"partitionIndex": 0, "committedOffset": offset}
    body = {
        "groupId": group_id,
        "generationIdOrMemberEpoch": -1,
        "memberId": "",
        "topics": [{"name": "payments", "partitions": [partition]}],
    }
    return envelope("OffsetCommit", 5, body, **fields)


def dumped(request: object) -> bytes:
    """The JSON of a request, as bytes."""
    return json.dumps(request).encode()
