"""A client of Kafka's protocol without a library, which can send anything, valid or not."""

import contextlib
import socket
import ssl
from typing import Any

from kio.static.protocol import RequestPayload

from streaming.gateway.wire.codec import decode_response, encode_request
from streaming.gateway.wire.frames import LENGTH_SIZE
from tests.support.waiting import LIMIT_SECONDS

CLIENT_ID = "test"


class ClosedByPeer(Exception):
    """The gateway or broker closed the connection instead of answering."""


class WireClient:
    """One connection. ``local_buffer``: the size of its receive buffer in bytes, None for the system's default."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None, local_buffer: int | None = None) -> None:
        self._socket = socket.socket()
        if local_buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, local_buffer)
        self._socket.settimeout(LIMIT_SECONDS)
        self._socket.connect(("127.0.0.1", port))
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname="localhost")
        self._correlation_id = 0

    def __enter__(self) -> "WireClient":
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def send_bytes(self, data: bytes) -> None:
        """Send any bytes; ignored if the connection is already closed."""
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(data)

    def send(self, payload: RequestPayload, client_id: str = CLIENT_ID) -> int:
        """Send a request and return its correlation id."""
        self._correlation_id += 1
        self.send_bytes(encode_request(payload, self._correlation_id, client_id))
        return self._correlation_id

    def receive_frame(self) -> bytes:
        """Receive the next response frame, its length included. Raises :class:`ClosedByPeer`."""
        begin = self._receive(LENGTH_SIZE)
        return begin + self._receive(int.from_bytes(begin, "big"))

    def receive(self, request: RequestPayload) -> tuple[int, Any]:
        """Receive the next response, to a request like this one; returns its correlation id and payload."""
        frame = self.receive_frame()
        correlation_id = int.from_bytes(frame[LENGTH_SIZE : LENGTH_SIZE + 4], "big", signed=True)
        return correlation_id, decode_response(frame, request.__api_key__, request.__version__)

    def ask(self, request: RequestPayload, client_id: str = CLIENT_ID) -> Any:
        """Send a request and return its response."""
        sent = self.send(request, client_id)
        correlation_id, answer = self.receive(request)
        assert correlation_id == sent
        return answer

    def is_closed_by_peer(self) -> bool:
        """Whether the peer closes the connection within the limit; ignores what it still sends."""
        try:
            while self._socket.recv(65536):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Close the connection, even if responses are outstanding."""
        self._socket.close()

    def shut_down(self) -> None:
        """End the connection in both directions, so that a thread that waits for a response stops waiting."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            try:
                piece = self._socket.recv(size - len(received))
            except ConnectionError as failure:
                raise ClosedByPeer from failure
            if not piece:
                raise ClosedByPeer
            received += piece
        return bytes(received)
