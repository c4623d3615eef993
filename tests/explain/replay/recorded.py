"""Makes cases: two clients in a group, one of which restarts without leaving."""

from pathlib import Path
from typing import Any

import msgspec

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.messages import JoinGroupResponse
from streaming.contract.errors import BadOptions
from streaming.explain.replay.case import Case, RecordedRequest
from streaming.explain.replay.world import World
from tests.support.request_events import dumped, envelope

GROUP = "billing"
START = 1_700_000_000_000
SESSION_MS = 10_000
CONFIG = CoordinatorConfig(group_initial_rebalance_delay_ms=3_000, requests_partitions=1)


class Recorder:
    """Writes down the requests of clients that act on the answers of a real group."""

    def __init__(self) -> None:
        self.now = START
        self.requests: list[RecordedRequest] = []
        self.answers: dict[str, Any] = {}
        self._world = World(GROUP, CONFIG, 0)

    @property
    def case(self) -> Case:
        return Case(GROUP, list(self.requests), config=CONFIG)

    def pass_time(self, ms: int) -> None:
        self.now += ms
        self._note(self._world.wait(self.now))

    def send(self, host: str, api: str, version: int, body: dict[str, object]) -> str:
        """Send a request; returns its correlation id, by which ``answers`` has its answer."""
        sent = envelope(api, version, {"groupId": GROUP, **body}, clientId="worker", clientHost=host)
        value = msgspec.Raw(dumped(sent))
        self.requests.append(RecordedRequest(self.now, 0, len(self.requests), value))
        one = Case(GROUP, self.requests[-1:], config=CONFIG).readable()[0]
        self._note(self._world.handle(one))
        return str(sent["correlationId"])

    def join(self, host: str, member_id: str = "") -> str:
        protocols = [{"name": "range", "metadata": ""}]
        body = {"sessionTimeoutMs": SESSION_MS, "rebalanceTimeoutMs": 60_000, "protocolType": "consumer"}
        return self.send(host, "JoinGroup", 5, body | {"protocols": protocols, "memberId": member_id})

    def join_new(self, host: str) -> str:
        """Join as a new client does: once without a member id, and with the given one."""
        return self.join(host, self.answers[self.join(host)].member_id)

    def sync(self, host: str, joined: str) -> None:
        answer: JoinGroupResponse = self.answers[joined]
        assignments = [{"memberId": member.member_id, "assignment": ""} for member in answer.members]
        body = {"generationId": answer.generation_id, "memberId": answer.member_id, "assignments": assignments}
        self.send(host, "SyncGroup", 3, body)

    def heartbeat(self, host: str, joined: str) -> None:
        answer: JoinGroupResponse = self.answers[joined]
        self.send(host, "Heartbeat", 3, {"generationId": answer.generation_id, "memberId": answer.member_id})

    def _note(self, responses: Any) -> None:
        self.answers.update({response.address.correlation_id: response.body for response in responses})


def restarted_client() -> Case:
    """Two clients form a group; one leaves, starts again, and causes two rebalances."""
    log = Recorder()
    first, second = log.join_new("a"), log.join_new("b")
    log.pass_time(7_000)
    log.sync("a", first)
    log.sync("b", second)
    for _ in range(3):
        log.pass_time(2_000)
        log.heartbeat("a", first)
        log.heartbeat("b", second)
    log.send("b", "LeaveGroup", 1, {"memberId": log.answers[second].member_id})
    log.pass_time(1_000)
    log.heartbeat("a", first)
    first = log.join("a", log.answers[first].member_id)
    log.sync("a", first)
    log.pass_time(2_000)
    log.heartbeat("a", first)
    second = log.join_new("b")
    log.pass_time(1_000)
    log.heartbeat("a", first)
    first = log.join("a", log.answers[first].member_id)
    log.sync("a", first)
    log.sync("b", second)
    for _ in range(3):
        log.pass_time(2_000)
        log.heartbeat("a", first)
        log.heartbeat("b", second)
    return log.case


def load_case(path: Path) -> Case:
    """Read a case file.

    Raises:
        BadOptions: the file cannot be read, or is no case.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Case)
    except (OSError, msgspec.DecodeError) as error:
        raise BadOptions(f"{path} is no case: {error}") from error
