"""The server, over HTTP on this machine."""

import http.client
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from streaming.contract.errors import CannotRun
from streaming.explain.ui.routes import Site
from streaming.explain.ui.server import serving
from tests.explain.live.given import THREE
from tests.explain.ui.given import GivenSource
from tests.support.waiting import LIMIT_SECONDS


@pytest.fixture
def port() -> Iterator[int]:
    with serving(Site(GivenSource(*THREE)), "127.0.0.1", 0) as port:
        yield port


def asked(port: int, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_SECONDS)
    connection.request(method, path, headers=headers)
    return connection.getresponse()


def test_a_page_comes_with_its_headers(port: int) -> None:
    response = asked(port, "GET", "/?filter=audit")
    body = response.read()
    assert response.status == 200
    assert b'href="/group?id=audit"' in body
    assert b"billing" not in body
    assert response.getheader("Content-Type") == "text/html; charset=utf-8"
    assert response.getheader("Cache-Control") == "no-store"
    assert response.getheader("X-Content-Type-Options") == "nosniff"
    assert response.getheader("Server") == "group-coordinator"
    assert "frame-ancestors 'none'" in (response.getheader("Content-Security-Policy") or "")


def test_head_has_the_headers_of_get_and_no_body(port: int) -> None:
    head, get = asked(port, "HEAD", "/search"), asked(port, "GET", "/search")
    assert (head.status, head.read()) == (200, b"")
    assert head.getheader("Content-Length") == str(len(get.read()))


def test_requests_are_refused_by_method_host_and_length(port: int) -> None:
    refused = asked(port, "POST", "/")
    assert (refused.status, refused.getheader("Allow")) == (405, "GET, HEAD")
    assert asked(port, "GET", "/", Host="evil.example").status == 421
    assert asked(port, "GET", "/" + "x" * 10_000).status == 414
    assert asked(port, "GET", "/" + "x" * 100_000).status == 414
    assert asked(port, "GET", "/", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}).status == 403


def test_two_host_headers_are_refused(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), LIMIT_SECONDS) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: evil.example\r\nHost: 127.0.0.1\r\n\r\n")
        assert connection.makefile("rb").readline().split()[1] == b"400"


def test_40_clients_that_do_not_finish_their_requests_prevent_no_answer(port: int) -> None:
    with ExitStack() as stack:
        for _ in range(40):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), LIMIT_SECONDS))
            connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
        assert asked(port, "GET", "/").status == 200


def test_a_port_that_is_taken_is_named(port: int) -> None:
    with pytest.raises(CannotRun, match=str(port)), serving(Site(GivenSource()), "127.0.0.1", port):
        pass


def test_an_address_of_version_6_is_served() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6")
    with serving(Site(GivenSource(*THREE)), "::1", 0) as port:
        connection = http.client.HTTPConnection("::1", port, timeout=LIMIT_SECONDS)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
