"""The hostile clients of a soak: through the gateway and over the topics, one attack after the other."""

import random
import socket
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress

from confluent_kafka import Producer
from kio.schema.describe_groups.v5.request import DescribeGroupsRequest
from kio.schema.find_coordinator.v4.request import FindCoordinatorRequest
from kio.schema.types import GroupId
from kio.static.primitive import i8

from streaming.contract.topics import TopicNames
from streaming.gateway.wire.codec import encode_request
from tests.gateway.support.requests import api_versions
from tests.soak.members import Findings
from tests.support.request_events import dumped, envelope

PAUSE_SECONDS = 2.0
SECONDS_TO_ANSWER = 5.0
LISTED_IDS = 20_000
TRICKLES = 20
UNUSED_IDS = 500
ZEROS = 30_000_000


class HostileClients:
    """Attacks in turn. ``gateway`` is a port of this machine; the topics are at ``bootstrap_servers``."""

    def __init__(self, gateway: int, bootstrap_servers: str, topics: TopicNames, findings: Findings, seed: int) -> None:
        self._gateway = gateway
        self._topics = topics
        self._findings = findings
        self._random = random.Random(seed)
        settings = {"compression.type": "zstd", "message.max.bytes": 64_000_000, "log_level": 0}
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, **settings})

    def through_the_gateway(self, ended: threading.Event) -> None:
        """Attack the gateway until the end."""
        attacks = (self._garbage, self._invented_versions, self._endless_array, self._lists, self._trickles)
        self._attack(attacks, ended)

    def over_the_topics(self, ended: threading.Event) -> None:
        """Attack the job until the end."""
        self._attack((self._zeros, self._not_requests, self._unused_ids, self._large_members), ended)
        self._producer.flush(SECONDS_TO_ANSWER)

    def _attack(self, attacks: tuple[Callable[[], None], ...], ended: threading.Event) -> None:
        while not ended.wait(PAUSE_SECONDS):
            attack = self._random.choice(attacks)
            # The gateway closes connections, and is away while it restarts.
            with suppress(OSError, BufferError):
                attack()
                self._findings.count(f"attack: {attack.__name__.lstrip('_').replace('_', ' ')}")

    # ---- through the gateway -------------------------------------------------------------------------------------

    def _garbage(self) -> None:
        self._send(self._random.randbytes(self._random.randint(1, 4_000)))

    def _invented_versions(self) -> None:
        for _ in range(20):
            key, version = self._random.getrandbits(15), self._random.getrandbits(15)
            self._send(_framed(key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(6)))

    def _endless_array(self) -> None:
        """JoinGroup v7 that announces 2^32 protocols in a few bytes."""
        head = bytes.fromhex("000b0007000000070000")
        self._send(_framed(head + bytes.fromhex("00 02 67 00000001 00000001 01 01 01 0000000001 ff ff ff ff 0f")))

    def _lists(self) -> None:
        """DescribeGroups and FindCoordinator for many groups that do not exist."""
        names = [f"no-such-group-{number}" for number in range(LISTED_IDS)]
        groups = tuple(map(GroupId, names))
        describe = DescribeGroupsRequest(groups=groups, include_authorized_operations=False)
        find = FindCoordinatorRequest(key_type=i8(0), coordinator_keys=tuple(names))
        for request in (describe, find):
            self._send(encode_request(request, 1, "hostile"), awaits_answer=True)

    def _trickles(self) -> None:
        """Connections whose request never ends, a byte at a time."""
        frame = encode_request(api_versions(), 1, "hostile")
        connections = [socket.create_connection(("127.0.0.1", self._gateway)) for _ in range(TRICKLES)]
        try:
            for byte in frame[:8]:
                for connection in connections:
                    connection.sendall(bytes((byte,)))
                time.sleep(0.2)
        finally:
            for connection in connections:
                connection.close()

    def _send(self, data: bytes, *, awaits_answer: bool = False) -> None:
        with socket.create_connection(("127.0.0.1", self._gateway)) as connection:
            connection.settimeout(SECONDS_TO_ANSWER)
            connection.sendall(data)
            if awaits_answer:
                connection.recv(65_536)

    # ---- over the topics -----------------------------------------------------------------------------------------

    def _zeros(self) -> None:
        """A record that the topic's limit of compressed bytes admits, and that is 30 MB long."""
        assert len(zlib.compress(bytes(1_000_000))) < 10_000
        self._append(b"hostile", bytes(ZEROS))

    def _not_requests(self) -> None:
        for value in (None, b"", b"[" * 100_000, b"\xff\xfe", b'{"api":"Heartbeat"}', self._random.randbytes(1_000)):
            self._append(self._random.randbytes(8), value)

    def _unused_ids(self) -> None:
        """First joins whose member ids nobody uses."""
        for _ in range(UNUSED_IDS):
            self._append(b"hostile-ids", dumped(envelope("JoinGroup", 9, _join("hostile-ids"))))

    def _large_members(self) -> None:
        """First joins with large client ids and metadata."""
        for _ in range(10):
            request = envelope("JoinGroup", 3, _join("hostile-large"), clientId="c" * 300_000)
            self._append(b"hostile-large", dumped(request))

    def _append(self, key: bytes, value: bytes | None) -> None:
        self._producer.produce(self._topics.requests, key=key, value=value)
        self._producer.poll(0)


def _framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


def _join(group_id: str) -> dict[str, object]:
    return {
        "groupId": group_id,
        "sessionTimeoutMs": 10_000,
        "rebalanceTimeoutMs": 10_000,
        "memberId": "",
        "protocolType": "soak",
        "protocols": [{"name": "any", "metadata": ""}],
    }
