"""Records of requests, and how they are read."""

import json
from typing import Any

from coordinator_logic.events import Request
from streaming.job.rows.reading import Rejection, read_request
from streaming.job.rows.records import KafkaRecord

RESPONSE_PARTITIONS = 4
HEARTBEAT = {"groupId": "g", "generationId": 1, "memberId": "m"}


def a_request(**fields: object) -> dict[str, Any]:
    return {
        "api": "Heartbeat",
        "version": 4,
        "correlationId": "c1",
        "replyPartition": 3,
        "body": HEARTBEAT,
    } | fields


def read(value: object, key: bytes | None = b"g") -> Request | Rejection:
    raw = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
    return read_request(KafkaRecord(1_000, 2, 7, key, raw), RESPONSE_PARTITIONS)


def rejected(value: object, key: bytes | None = b"g") -> Rejection:
    request = read(value, key)
    assert isinstance(request, Rejection)
    return request
