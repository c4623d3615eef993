"""Invalid frames close their own connection and affect no other."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kio.index import load_request_schema

from streaming.gateway.wire.api_keys import api_name
from streaming.gateway.wire.client_request import ServedApi
from streaming.gateway.wire.codec import KNOWN_VERSIONS, encode_request
from tests.gateway.conftest import NewGateway
from tests.gateway.support.entities import filled_entity
from tests.gateway.support.heartbeat_handlers import answer_at_once
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.requests import heartbeat, metadata
from tests.gateway.support.wire_client import WireClient
from tests.support.waiting import LIMIT_SECONDS

FRAMES = 3000
CONNECTIONS = 20
PRODUCE = 0
DANGEROUS = {19, 20, 29, 30, 31, 33, 37, 44, 45, 57, *range(50, 60), 64, 66, 74, 80, 81, 82}
"""APIs that change the broker's state: a mutated request could happen to be valid."""

HTTP = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
TLS_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(500)
ABSURD = [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\x00\x00\x00", bytes(4), b"\x00\x00\x00\x09" + bytes(9)]


class Garbage:
    """Seeded invalid requests of many kinds. The gateway itself decodes the APIs of ``served``."""

    def __init__(self, seed: int, served: dict[int, ServedApi]) -> None:
        self._random = random.Random(seed)
        self._served = served
        self._keys = [key for key in KNOWN_VERSIONS if key not in DANGEROUS]

    def frame(self) -> bytes:
        make = self._random.choice(
            (
                self.noise,
                self.framed_noise,
                self.noise_after_a_header,
                self.truncated,
                self.mutated,
                self.other_protocol,
            )
        )
        return make()

    def noise(self) -> bytes:
        return self._random.randbytes(self._random.randint(1, 300))

    def framed_noise(self) -> bytes:
        return framed(self.noise())

    def noise_after_a_header(self) -> bytes:
        """A request of an offered version with random content."""
        key = self._random.choice([*self._served, 3, 10, 17, 18, 36, 60])
        lowest, highest = KNOWN_VERSIONS[key]
        version = self._random.randint(lowest, highest)
        return framed(key.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\x00\x01x" + self.noise())

    def valid(self) -> bytes:
        key = self._random.choice(self._keys)
        request: Any = filled_entity(load_request_schema(key, self._random.randint(*KNOWN_VERSIONS[key])))
        return encode_request(request, self._random.getrandbits(31), "garbage")

    def truncated(self) -> bytes:
        """A valid request that ends too early, with its original or with a matching length."""
        whole = self.valid()
        cut = whole[: self._random.randint(5, len(whole))]
        return cut if self._random.random() < 0.5 else framed(cut[4:])

    def mutated(self) -> bytes:
        """A valid request with some bytes changed."""
        frame = bytearray(self.valid())
        for _ in range(self._random.randint(1, 4)):
            frame[self._random.randrange(4, len(frame))] = self._random.getrandbits(8)
        key = int.from_bytes(frame[4:6], "big")
        return bytes(frame) if key not in DANGEROUS else self.noise()

    def other_protocol(self) -> bytes:
        return self._random.choice((HTTP, TLS_HELLO, *ABSURD))


def framed(content: bytes) -> bytes:
    return len(content).to_bytes(4, "big") + content


class Bystander:
    """A client that sends requests to broker and handler in turn over one connection, and counts the responses."""

    def __init__(self, port: int, topic: str) -> None:
        self.responses = 0
        self.failure: Exception | None = None
        self._client = WireClient(port)
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @contextmanager
    def sending(self) -> Iterator[None]:
        self._thread.start()
        yield
        self._stop.set()
        self._thread.join()
        self._client.close()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                self._client.ask(metadata(self._topic))
                self._client.ask(heartbeat())
                self.responses += 2
        except Exception as failure:
            self.failure = failure


@pytest.fixture
def running(new_gateway: NewGateway) -> RunningGateway:
    served = {
        key: ServedApi(api_name(key), key, *KNOWN_VERSIONS[key], handle=answer_at_once)
        for key in (8, 9, 11, 12, 14, 15, 16, 28)
    }
    return new_gateway(served)


def test_invalid_frames_close_their_own_connection_only(running: RunningGateway, topic: str) -> None:
    garbage = Garbage(20260101, dict(running.server.served))
    bystander = Bystander(running.port, topic)
    with bystander.sending():
        clients: list[WireClient] = []
        for _ in range(FRAMES):
            client = WireClient(running.port)
            clients.append(client)
            client.send_bytes(garbage.frame())
            if len(clients) == CONNECTIONS:
                clients.pop(0).close()
        for client in clients:
            client.close()
        received = bystander.responses
        deadline = time.monotonic() + LIMIT_SECONDS
        while bystander.responses < received + 10 and bystander.failure is None:
            assert time.monotonic() < deadline, "the bystander gets no more responses"
            time.sleep(0.01)
        while len(running.server.connections) > 1:
            assert time.monotonic() < deadline, "connections with invalid frames are still open"
            time.sleep(0.01)
    assert bystander.failure is None
    counted = {reason: running.metric("refused_frames_total", reason=reason) for reason in REASONS}
    assert all(counted.values()), counted


REASONS = ("frame-length", "frame-too-large", "header", "unknown-api", "unsupported-version", "undecodable")


@pytest.mark.parametrize("begin", [HTTP, TLS_HELLO, *ABSURD])
def test_bytes_that_cannot_begin_a_request_close_the_connection(running: RunningGateway, begin: bytes) -> None:
    with WireClient(running.port) as client:
        client.send_bytes(begin)
        assert client.is_closed_by_peer()


def test_a_request_may_arrive_byte_by_byte(running: RunningGateway, topic: str) -> None:
    with WireClient(running.port) as client:
        for request in (metadata(topic), heartbeat()):
            for byte in encode_request(request, 5, "slow"):
                client.send_bytes(bytes([byte]))
            assert client.receive(request)[0] == 5


def test_requests_beyond_the_size_limits_close_their_connection(new_gateway: NewGateway) -> None:
    limited = new_gateway(None, {"max-frame-bytes": 2_000_000, "max-request-bytes": 50_000})
    too_large = {"request-too-large": (3, 50_001), "frame-too-large": (0, 2_000_001)}
    for reason, (key, length) in too_large.items():
        with WireClient(limited.port) as client:
            client.send_bytes(length.to_bytes(4, "big") + key.to_bytes(2, "big") + b"\x00\x09" + bytes(4) + b"\xff\xff")
            assert client.is_closed_by_peer()
        assert limited.metric("refused_frames_total", reason=reason) == 1
    with WireClient(limited.port) as client:
        client.send_bytes((2_000_000).to_bytes(4, "big") + b"\x00\x00\x00\x09" + bytes(4) + b"\xff\xff")
        with WireClient(limited.port) as other:
            assert other.ask(metadata()).brokers
    assert limited.metric("refused_frames_total", reason="frame-too-large") == 1
