"""What the HTTP servers of the project share; they are the standard library's."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer


class QuietHandler(WSGIRequestHandler):
    """Does not log every request."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the base class
        """Log nothing."""


def family_of(host: str) -> socket.AddressFamily:
    """The family of an address to serve at."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


@contextmanager
def running(server: WSGIServer, name: str) -> Iterator[int]:
    """Serve on a thread of this name until the block ends, then close; yields the port."""
    thread = threading.Thread(target=server.serve_forever, name=name, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
