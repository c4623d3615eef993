"""A proxy in front of an S3 server, which counts requests, holds some of them back, or answers 503."""

import http.client
import re
import threading
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

HELD_LIMIT_SECONDS = 300.0

TOO_MANY_REQUESTS = (
    b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.'
    b"</Message></Error>"
)


class HeldRequest:
    """The next request that matches, ``METHOD /PATH``: it does not reach the server before :meth:`release`."""

    def __init__(self, pattern: str) -> None:
        self.pattern = re.compile(pattern)
        self.arrived = threading.Event()
        self._released = threading.Event()
        self.status = 0
        """How the server has answered; 0 before that."""

    def release(self) -> None:
        """Let the request go on."""
        self._released.set()

    def wait(self) -> None:
        """Hold the request back."""
        self.arrived.set()
        self._released.wait(HELD_LIMIT_SECONDS)


class S3Proxy:
    """Passes requests to the server at ``target``, as a context manager."""

    def __init__(self, target: str) -> None:
        self.requests: Counter[str] = Counter()
        """The requests that have come, by method."""
        self.is_refusing = False
        """Whether each request is answered with 503."""
        self.refused = 0
        """How many requests were answered so."""
        self.held: HeldRequest | None = None
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, target))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="S3 proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def address(self) -> str:
        """Where it listens, ``host:port``."""
        return f"127.0.0.1:{self._server.server_address[1]}"

    def hold(self, pattern: str) -> HeldRequest:
        """Hold back the next request that begins with this pattern."""
        self.held = HeldRequest(pattern)
        return self.held

    def note(self, method: str, path: str) -> HeldRequest | None:
        """Count a request; returns how it is held, if it is the one."""
        with self._lock:
            self.requests[method] += 1
            held = self.held
            if held is None or held.pattern.match(f"{method} {path}") is None:
                return None
            self.held = None
            return held


def _handler(proxy: S3Proxy, target: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            held = proxy.note(self.command, self.path)
            if proxy.is_refusing:
                proxy.refused += 1
                self._answer(503, {"Content-Type": "application/xml"}, TOO_MANY_REQUESTS)
                return
            if held is not None:
                held.wait()
            connection = http.client.HTTPConnection(target)
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                # The proxy has answered it.
                if name.lower() != "expect":
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            content = answer.read()
            if held is not None:
                held.status = answer.status
            self._answer(answer.status, dict(answer.getheaders()), content)
            connection.close()

        def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
            # The client may have given up.
            with suppress(OSError):
                self.send_response_only(status)
                for name, value in headers.items():
                    if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                        self.send_header(name, value)
                is_of_head = self.command == "HEAD"
                length = headers.get("Content-Length", "0") if is_of_head else str(len(content))
                if status != 204:
                    self.send_header("Content-Length", length)
                self.end_headers()
                if not is_of_head:
                    self.wfile.write(content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Nothing: the server has a log."""

    return Handler
