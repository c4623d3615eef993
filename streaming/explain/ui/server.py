"""Serves a site over HTTP, on threads of this process."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIServer

from streaming.contract.errors import CannotRun
from streaming.contract.http_server import QuietHandler, family_of, running
from streaming.explain.ui.guard import HttpRequest
from streaming.explain.ui.routes import Site

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 32
"""How many connections there may be at a time; a connection carries one request."""

IDLE_SECONDS = 10
"""How long a connection may be silent: browsers open some in advance."""

HEADERS = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Server", "group-coordinator"),
)

TOO_MANY = b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\n\r\n"


class _Handler(QuietHandler):
    """Adds the address that a request has reached."""

    timeout = IDLE_SECONDS

    def get_environ(self) -> dict[str, Any]:
        """What WSGI gives to the application, and the address."""
        return {**super().get_environ(), "LOCAL_ADDR": self.connection.getsockname()[0]}


class _Server(ThreadingMixIn, WSGIServer):
    """Threads that end with the process, for so many connections at a time."""

    daemon_threads = True
    request_queue_size = MAX_CONNECTIONS

    def __init__(self, host: str, port: int) -> None:
        self.address_family = family_of(host)
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind, without the look-up of the host's name in DNS, which may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection on a thread, or refuse it if there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        try:
            request.sendall(TOO_MANY)
        finally:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, and make place for another one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Note that a connection broke, as connections do when a page is left."""
        log.debug("the connection of %s broke", client_address, exc_info=True)


@contextmanager
def serving(site: Site, host: str, port: int) -> Iterator[int]:
    """Serve until the block ends; yields the port, which 0 lets the system choose.

    Raises :class:`CannotRun` when the address cannot be opened.
    """
    try:
        server = _Server(host, port)
    except (OSError, OverflowError) as error:
        raise CannotRun(f"port {port} cannot be used at {host}: {error}") from error
    server.set_app(_app(site))
    with running(server, "ui") as served:
        yield served


def _app(site: Site) -> Callable[[dict[str, Any], Callable[..., object]], Iterable[bytes]]:
    def app(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        response = site.respond(_request(environ))
        page = response.page.encode("utf-8", "replace")
        headers = [*HEADERS, *response.headers, ("Content-Security-Policy", response.policy)]
        headers.append(("Content-Length", str(len(page))))
        start_response(f"{response.status.value} {response.status.phrase}", headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [page]

    return app


def _request(environ: dict[str, Any]) -> HttpRequest:
    return HttpRequest(
        environ["REQUEST_METHOD"],
        environ["PATH_INFO"],
        environ["QUERY_STRING"],
        environ.get("HTTP_HOST", ""),
        environ["LOCAL_ADDR"],
        environ.get("HTTP_SEC_FETCH_SITE", ""),
        environ.get("HTTP_SEC_FETCH_MODE", ""),
        environ.get("HTTP_SEC_FETCH_DEST", ""),
    )
