"""The HTTP server of the project: one thread reads and writes all connections, and a few make the answers.

Each connection carries one request. Tornado limits the time and the size of what a client sends; the number of
connections and the time for a whole exchange are limited here, because no library was found that limits all of them.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from queue import SimpleQueue
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

from tornado.http1connection import HTTP1Connection, HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPHeaders, HTTPServerRequest, ResponseStartLine
from tornado.ioloop import IOLoop
from tornado.iostream import IOStream
from tornado.wsgi import WSGIContainer

log = logging.getLogger(__name__)


class Limits(NamedTuple):
    """The limits of a server.

    connections: how many there may be at a time. One more takes the place of the one that has been sending its request
    the longest. answers: how many complete requests there may be whose answers are made, or on their way; an answer may
    have megabytes. One more gets the status 503. request_seconds: how long a client may take to send its request, from
    its connection to the last byte; browsers connect in advance. whole_seconds: how long a connection may last, with
    the time to make the answer and to take it.
    """

    connections: int = 256
    answers: int = 32
    request_seconds: float = 10.0
    whole_seconds: float = 60.0


THREADS = 8
"""How many answers are made at a time."""

MAX_HEADER_SIZE, MAX_BODY_SIZE = 128 * 1024, 1024
"""The sizes of a request in bytes. No page takes a body."""

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
"""A WSGI application. Of the environment it gets the method, the path, the query and the headers, and as
``LOCAL_ADDR`` the address that the request has reached."""


@contextmanager
def serving_http(
    app: Application,
    host: str,
    port: int,
    name: str,
    limits: Limits = Limits(),  # noqa: B008 - it is immutable
) -> Iterator[int]:
    """Serve an application until the block ends; yields the port, which 0 lets the system choose.

    The application is called on threads that end with the process, ``THREADS`` at most. Raises OSError or
    OverflowError when the address cannot be opened.
    """
    listener = _listener(host, port, limits.connections)
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(
        target=_run, args=(loop, _serve(app, listener, name, limits, stop)), name=name, daemon=True
    )
    served = int(listener.getsockname()[1])
    thread.start()
    try:
        yield served
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def _listener(host: str, port: int, backlog: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    listener = socket.create_server((host, port), family=family, backlog=backlog, dualstack_ipv6=both)
    listener.setblocking(False)
    return listener


def _run(loop: asyncio.AbstractEventLoop, serve: Coroutine[Any, Any, None]) -> None:
    try:
        loop.run_until_complete(serve)
    finally:
        loop.close()


async def _serve(app: Application, listener: socket.socket, name: str, limits: Limits, stop: asyncio.Event) -> None:
    # Tornado writes a line for each refused request, with the path that its client chose.
    logging.getLogger("tornado.access").setLevel(logging.CRITICAL)
    threads = _DaemonThreads(THREADS, name)
    connections = _Connections(limits)
    server = _Server(connections, _Answers(app, threads, connections))
    server.add_sockets([listener])
    await stop.wait()
    server.stop()
    await server.close_all_connections()
    threads.shutdown()
    # Of answers that are still being made: a thread that ends later would otherwise call a loop that is closed.
    answers = asyncio.all_tasks() - {asyncio.current_task()}
    for answer in answers:
        answer.cancel()
    await asyncio.gather(*answers, return_exceptions=True)


class _Connections:
    """The open connections, each with the call that closes it, and in their order those without a complete request."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.ends: dict[IOStream, object] = {}
        self.incomplete: dict[IOStream, None] = {}

    @property
    def complete(self) -> int:
        """The number of connections whose request is complete."""
        return len(self.ends) - len(self.incomplete)


class _Server(HTTPServer):
    """Closes connections that are too many or last too long."""

    def initialize(self, connections: _Connections, answers: "_Answers") -> None:  # type: ignore[override]
        """Set up, with the limits of the connections."""
        limits = connections.limits
        super().initialize(
            answers,
            no_keep_alive=True,
            max_header_size=MAX_HEADER_SIZE,
            idle_connection_timeout=limits.request_seconds,
            body_timeout=limits.request_seconds,
            max_body_size=MAX_BODY_SIZE,
        )
        self._streams = connections

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        """Serve a connection, if need be in the place of the one that has been sending its request the longest."""
        if len(self._streams.ends) >= self._streams.limits.connections:
            oldest = next(iter(self._streams.incomplete), None)
            if oldest is None:
                stream.close()
                return
            del self._streams.incomplete[oldest]
            oldest.close()
        self._streams.ends[stream] = IOLoop.current().call_later(self._streams.limits.whole_seconds, stream.close)
        self._streams.incomplete[stream] = None
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        """Make place for another connection."""
        stream = cast("HTTP1ServerConnection", server_conn).stream
        self._streams.incomplete.pop(stream, None)
        IOLoop.current().remove_timeout(self._streams.ends.pop(stream))
        super().on_close(server_conn)


class _Answers(WSGIContainer):
    """Answers complete requests with a WSGI application, as many at a time as the limits allow."""

    def __init__(self, app: Application, threads: Executor, connections: _Connections) -> None:
        super().__init__(partial(_without_body_of_head, app), threads)
        self._streams = connections
        self._in_the_making = 0

    async def handle_request(self, request: HTTPServerRequest) -> None:
        """Answer a request; if that fails, with the status 500 and a line in the log."""
        connection = cast("HTTP1Connection", request.connection)
        self._streams.incomplete.pop(connection.stream, None)
        # A client may have left whose answer is still being made.
        if max(self._in_the_making + 1, self._streams.complete) > self._streams.limits.answers:
            _refuse(connection, HTTPStatus.SERVICE_UNAVAILABLE)
            return
        self._in_the_making += 1
        try:
            await super().handle_request(request)
        except Exception:
            log.exception("a request over HTTP cannot be answered")
            _refuse(connection, HTTPStatus.INTERNAL_SERVER_ERROR)
        finally:
            self._in_the_making -= 1

    def environ(self, request: HTTPServerRequest) -> dict[str, Any]:
        """What the applications read of WSGI's environment. Tornado's raises for a Host that ends in a colon."""
        connected = cast("HTTP1Connection", request.connection).stream.socket
        headers = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in request.headers.get_all()}
        return {
            "REQUEST_METHOD": request.method,
            "PATH_INFO": unquote(request.path, "latin-1"),
            "QUERY_STRING": request.query,
            # A client that has left gets no answer; its request is refused as any host's is.
            "LOCAL_ADDR": "" if connected is None else connected.getsockname()[0],
            **headers,
        }


def _without_body_of_head(
    app: Application, environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    body = app(environ, start_response)
    return [] if environ["REQUEST_METHOD"] == "HEAD" else body


def _refuse(connection: HTTP1Connection, status: HTTPStatus) -> None:
    headers = HTTPHeaders({"Content-Length": "0", "Retry-After": "2"})
    connection.write_headers(ResponseStartLine("HTTP/1.1", status.value, status.phrase), headers)
    connection.finish()


class _DaemonThreads(Executor):
    """Threads that do not keep the process alive, as those of ThreadPoolExecutor do."""

    def __init__(self, count: int, name: str) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._count = count
        for number in range(count):
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True).start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call the function on one of the threads."""
        future: Future[Any] = Future()
        self._calls.put((future, partial(fn, *args, **kwargs)))
        return future

    def shutdown(self, wait: bool = False, *, cancel_futures: bool = False) -> None:
        """End each thread after the calls that were made before."""
        for _ in range(self._count):
            self._calls.put(None)

    def _run(self) -> None:
        while (call := self._calls.get()) is not None:
            future, function = call
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function())
                except BaseException as error:
                    future.set_exception(error)
