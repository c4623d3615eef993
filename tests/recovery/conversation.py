"""Requests and responses of single groups as JSON: what the script and the test of the kept checkpoint share."""

import base64
from collections.abc import Iterable
from typing import Any

from streaming.contract.topics import TopicNames
from tests.support.kafka_io import TopicReader, append
from tests.support.request_events import dumped, envelope

Body = dict[str, Any]


class Conversation:
    """Appends requests to a coordinator's topic and reads the responses."""

    def __init__(self, bootstrap_servers: str, topics: TopicNames, responses: TopicReader) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topics = topics
        self._responses = responses

    def send(self, group_id: str, api: str, version: int, body: Body, *, partition: int = 0) -> str:
        """Append a request to this partition; returns its correlation id."""
        (correlation_id,) = self._append(api, version, [(group_id, body)], partition)
        return correlation_id

    def response(self, correlation_id: str) -> Body:
        """Wait for the response to a request."""
        key = correlation_id.encode()
        found: Body = self._responses.first(lambda record: record.key == key, f"response {correlation_id}").value
        return found

    def ask(self, group_id: str, api: str, version: int, body: Body, *, partition: int = 0) -> Body:
        """Append a request and wait for its response."""
        return self.response(self.send(group_id, api, version, body, partition=partition))

    def ask_all(self, api: str, version: int, bodies: Iterable[Body], *, partition: int = 0) -> list[Body]:
        """Append a request of each body's group, all at once, and wait for the responses, in the same order."""
        requests = [(body["groupId"], body) for body in bodies]
        return list(map(self.response, self._append(api, version, requests, partition)))

    def heartbeat(self, group_id: str, generation_id: int, member_id: str, *, partition: int = 0) -> int:
        """The error code of a member's heartbeat."""
        body = {"groupId": group_id, "generationId": generation_id, "memberId": member_id}
        return int(self.ask(group_id, "Heartbeat", 4, body, partition=partition)["errorCode"])

    def _append(self, api: str, version: int, bodies: Iterable[tuple[str, Body]], partition: int) -> list[str]:
        """Append a request for each group's body; returns the correlation ids."""
        requests = [(group_id, envelope(api, version, body)) for group_id, body in bodies]
        records = [(group_id.encode(), dumped(request)) for group_id, request in requests]
        append(self._bootstrap_servers, self._topics.requests, *records, partition=partition)
        return [str(request["correlationId"]) for _, request in requests]


def join_request(group_id: str, member_id: str = "", instance_id: str | None = None) -> Body:
    """A JoinGroup's body with sessions that outlast a slow test."""
    return {
        "groupId": group_id,
        "sessionTimeoutMs": 300_000,
        "rebalanceTimeoutMs": 300_000,
        "memberId": member_id,
        "groupInstanceId": instance_id,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": base64.b64encode(b"subscription").decode()}],
    }


def sync_request(group_id: str, generation_id: int, member_id: str, assignments: dict[str, bytes]) -> Body:
    """A SyncGroup's body; only a leader's has assignments, by member id."""
    return {
        "groupId": group_id,
        "generationId": generation_id,
        "memberId": member_id,
        "protocolType": "consumer",
        "protocolName": "range",
        "assignments": [
            {"memberId": assigned, "assignment": base64.b64encode(assignment).decode()}
            for assigned, assignment in assignments.items()
        ],
    }


def offsets(*committed: int) -> list[Body]:
    """The topics of a commit: these offsets for the first partitions of ``payments``."""
    partitions = [{"partitionIndex": index, "committedOffset": offset} for index, offset in enumerate(committed)]
    return [{"name": "payments", "partitions": partitions}]
