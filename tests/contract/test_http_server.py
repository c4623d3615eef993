"""The HTTP server under clients that send nothing, or slowly, or take nothing."""

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from streaming.contract.http_server import Limits, serving_http
from tests.support.waiting import LIMIT_SECONDS, wait_until

LOOPBACK = "127.0.0.1"
ROOT = Path(__file__).resolve().parents[2]
QUICK = Limits(request_seconds=1.0, whole_seconds=2.0)
PIECE_SECONDS = 0.1


def greeting(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["PATH_INFO"].encode("latin-1")]


def answer_to(port: int, path: str = "/page", method: str = "GET") -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection(LOOPBACK, port, timeout=LIMIT_SECONDS)) as connection:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()


def connected(port: int) -> socket.socket:
    return socket.create_connection((LOOPBACK, port), LIMIT_SECONDS)


def test_300_idle_connections_keep_no_threads_and_the_next_client_is_answered() -> None:
    with serving_http(greeting, LOOPBACK, 0, "test") as port, ExitStack() as stack:
        answer_to(port)
        before = threading.active_count()
        for _ in range(300):
            stack.enter_context(connected(port))
        assert answer_to(port) == (200, b"/page")
        assert threading.active_count() == before


def test_of_too_many_connections_the_oldest_without_a_request_is_closed() -> None:
    with serving_http(greeting, LOOPBACK, 0, "test", Limits(connections=3)) as port, ExitStack() as stack:
        idle = [stack.enter_context(connected(port)) for _ in range(4)]
        assert idle[0].recv(1) == b""
        idle[1].sendall(b"GET /later HTTP/1.0\r\n\r\n")
        assert idle[1].makefile("rb").readline().split()[1] == b"200"


@contextmanager
def slow_clients(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Clients that send a byte of a header every 0.1 s, until the block ends."""
    with ExitStack() as stack:
        clients = [stack.enter_context(connected(port)) for _ in range(count)]
        for client in clients:
            client.sendall(b"GET /slow HTTP/1.1\r\nHost: ")
        stop = threading.Event()

        def send() -> None:
            while not stop.wait(PIECE_SECONDS):
                for client in clients:
                    # The server has closed it, as it should.
                    with ExitStack() as ignored:
                        ignored.push(lambda kind, _error, _trace: kind is not None and issubclass(kind, OSError))
                        client.sendall(b"a")

        sender = threading.Thread(target=send)
        sender.start()
        try:
            yield clients
        finally:
            stop.set()
            sender.join()


def ended(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_40_slow_clients_delay_nobody_and_are_closed_within_the_limit() -> None:
    with serving_http(greeting, LOOPBACK, 0, "test", QUICK) as port, slow_clients(port, 40) as clients:
        began = time.monotonic()
        assert answer_to(port) == (200, b"/page")
        assert time.monotonic() - began < QUICK.request_seconds
        assert all(ended(client) for client in clients)
        assert QUICK.request_seconds * 0.5 < time.monotonic() - began < QUICK.request_seconds * 5


def test_a_client_that_does_not_take_its_answer_is_closed_within_the_limit() -> None:
    def large(_environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        start_response("200 OK", [])
        return [bytes(50_000_000)]

    with serving_http(large, LOOPBACK, 0, "test", QUICK) as port, connected(port) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        time.sleep(QUICK.whole_seconds + 0.5)
        received = 0
        while piece := client.recv(1_000_000):
            received += len(piece)
        assert received < 50_000_000


def test_answers_beyond_the_limit_are_refused_also_when_their_clients_have_left() -> None:
    may_answer = threading.Event()

    def waiting(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        may_answer.wait(LIMIT_SECONDS)
        return greeting(environ, start_response)

    with serving_http(waiting, LOOPBACK, 0, "test", Limits(answers=2)) as port:
        for _ in range(2):
            with connected(port) as client:
                client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        wait_until(lambda: answer_to(port)[0] == 503, "two answers are made")
        may_answer.set()
        wait_until(lambda: answer_to(port)[0] == 200, "there is place again")


def test_an_application_that_fails_is_answered_with_500() -> None:
    def failing(_environ: dict[str, Any], _start_response: Callable[..., Any]) -> list[bytes]:
        raise RuntimeError("as the test says")

    with serving_http(failing, LOOPBACK, 0, "test") as port:
        assert answer_to(port) == (500, b"")


@pytest.mark.parametrize("host", [b"localhost", b"my_job:9090", b"[::1]:9090", b"10.0.0.1", b"a:"])
def test_the_name_by_which_a_client_knows_the_server_does_not_matter(host: bytes) -> None:
    with serving_http(greeting, LOOPBACK, 0, "test") as port, connected(port) as client:
        client.sendall(b"GET /a HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
        assert client.makefile("rb").readline().split()[1] == b"200"


def test_what_is_no_request_is_refused_and_head_has_no_body() -> None:
    with serving_http(greeting, LOOPBACK, 0, "test") as port:
        with connected(port) as client:
            client.sendall(b"nonsense\r\n\r\n")
            assert client.makefile("rb").readline().split()[1] == b"400"
        assert answer_to(port, method="HEAD") == (200, b"")


def test_the_end_waits_for_no_answer_and_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    asked, may_answer, answered = threading.Event(), threading.Event(), threading.Event()

    def waiting(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        asked.set()
        may_answer.wait(LIMIT_SECONDS)
        answered.set()
        return greeting(environ, start_response)

    with serving_http(waiting, LOOPBACK, 0, "test") as port, connected(port) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert asked.wait(LIMIT_SECONDS)
    may_answer.set()
    assert answered.wait(LIMIT_SECONDS)
    wait_until(lambda: not any(thread.name.startswith("test-") for thread in threading.enumerate()), "threads end")
    assert caplog.records == []


SERVERS = (
    "http.server",
    "socketserver",
    "wsgiref",
    "tornado",
    "start_http_server",
    "make_server",
    "ThreadingWSGIServer",
)


def test_there_is_no_other_http_server() -> None:
    files = {path: path.read_text() for path in (ROOT / "streaming").rglob("*.py")}
    serving = {str(path.relative_to(ROOT)) for path, text in files.items() if any(name in text for name in SERVERS)}
    assert serving == {"streaming/contract/http_server.py", "streaming/cli/extras.py"}
