"""A client of Kafka's protocol without a library: what is sent is what the test says, legal or not."""

import contextlib
import socket
import ssl
from typing import Any

from kio.static.protocol import RequestPayload

from streaming.gateway.codec import decode_response, encode_request
from streaming.gateway.frames import LENGTH_SIZE

LIMIT_SECONDS = 20.0
CLIENT_ID = "test"


class ClosedByPeer(Exception):
    """The other end closed the connection instead of answering."""


class WireClient:
    """One connection. ``local_buffer``: bytes that the system may take for it before it reads, None for the usual."""

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
        """Send anything; a connection that was closed already swallows it."""
        with contextlib.suppress(ConnectionError):
            self._socket.sendall(data)

    def send(self, payload: RequestPayload, client_id: str = CLIENT_ID) -> int:
        """Send a request; its correlation id."""
        self._correlation_id += 1
        self.send_bytes(encode_request(payload, self._correlation_id, client_id))
        return self._correlation_id

    def receive_frame(self) -> bytes:
        """The next response, its length included. Raises :class:`ClosedByPeer`."""
        begin = self._receive(LENGTH_SIZE)
        return begin + self._receive(int.from_bytes(begin, "big"))

    def receive(self, request: RequestPayload) -> tuple[int, Any]:
        """The correlation id and the payload of the next response, which is one to such a request."""
        frame = self.receive_frame()
        correlation_id = int.from_bytes(frame[LENGTH_SIZE : LENGTH_SIZE + 4], "big", signed=True)
        return correlation_id, decode_response(frame, request.__api_key__, request.__version__)

    def ask(self, request: RequestPayload, client_id: str = CLIENT_ID) -> Any:
        """Send a request and return its answer."""
        sent = self.send(request, client_id)
        correlation_id, answer = self.receive(request)
        assert correlation_id == sent
        return answer

    def is_closed_by_peer(self) -> bool:
        """Whether the other end closes the connection, whatever it still sends, within the limit."""
        try:
            while self._socket.recv(65536):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Close it, whatever is still owed."""
        self._socket.close()

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
