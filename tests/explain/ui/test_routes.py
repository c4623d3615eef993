"""Which requests are refused, and how the rest is limited."""

import threading
from collections.abc import Mapping
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.explain.live.fleet import FleetRow
from streaming.explain.live.group import GroupNow
from streaming.explain.ui.elements import MAX_TARGET
from streaming.explain.ui.guard import HttpRequest, is_loopback, refusal
from streaming.explain.ui.routes import MAX_READINGS, Site
from tests.explain.live.given import THREE
from tests.explain.ui.given import GivenSource, get, respond
from tests.support.waiting import LIMIT_SECONDS


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get"])
def test_only_get_and_head_are_answered(method: str) -> None:
    response = respond(GivenSource(*THREE), HttpRequest(method, "/", host="localhost"))
    assert response.status == HTTPStatus.METHOD_NOT_ALLOWED
    assert ("Allow", "GET, HEAD") in response.headers


@pytest.mark.parametrize(
    ("host", "local_address"),
    [
        ("127.0.0.1:8080", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1"),
        ("localhost:9000", "127.0.0.1"),
        ("LocalHost", "::1"),
        ("[::1]:8080", "::1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("10.1.2.3:80", "10.1.2.3"),
        ("10.1.2.3", "::ffff:10.1.2.3"),
        ("Groups.example:443", "10.1.2.3"),
    ],
)
def test_the_hosts_own_names_are_accepted(host: str, local_address: str) -> None:
    assert refusal(HttpRequest("GET", "/", host=host, local_address=local_address), ["groups.Example"]) is None


@pytest.mark.parametrize(
    ("host", "local_address"),
    [
        ("", "127.0.0.1"),
        ("evil.example", "127.0.0.1"),
        ("evil.example:8080", "127.0.0.1"),
        ("127.0.0.1.evil.example", "127.0.0.1"),
        ("localhost.evil.example", "127.0.0.1"),
        ("localhost", "10.1.2.3"),
        ("10.1.2.4", "10.1.2.3"),
        ("0.0.0.0", "127.0.0.1"),
        ("[::1", "::1"),
        ("127.0.0.1:8080,evil.example", "127.0.0.1"),
        ("user@127.0.0.1", "127.0.0.1"),
        ("127.0.0.1/x", "127.0.0.1"),
    ],
)
def test_another_hosts_name_is_refused(host: str, local_address: str) -> None:
    found = refusal(HttpRequest("GET", "/", host=host, local_address=local_address), [])
    assert found is not None
    assert found.status == HTTPStatus.MISDIRECTED_REQUEST


@given(st.text(max_size=40))
def test_no_host_header_breaks_the_check(host: str) -> None:
    refusal(HttpRequest("GET", "/", host=host), [])


@pytest.mark.parametrize(
    ("site", "mode", "destination", "is_refused"),
    [
        ("", "", "", False),
        ("none", "navigate", "document", False),
        ("same-origin", "cors", "empty", False),
        ("cross-site", "navigate", "document", False),
        ("cross-site", "navigate", "iframe", True),
        ("cross-site", "no-cors", "image", True),
        ("same-site", "cors", "empty", True),
    ],
)
def test_a_page_of_another_site_may_link_here_but_not_load(
    site: str, mode: str, destination: str, is_refused: bool
) -> None:
    request = HttpRequest("GET", "/", host="localhost")
    request = request._replace(fetch_site=site, fetch_mode=mode, fetch_destination=destination)
    response = respond(GivenSource(*THREE), request)
    assert response.status == (HTTPStatus.FORBIDDEN if is_refused else HTTPStatus.OK)


def test_a_long_address_is_refused() -> None:
    response = get(GivenSource(*THREE), "/search", q="x" * MAX_TARGET)
    assert response.status == HTTPStatus.REQUEST_URI_TOO_LONG


@pytest.mark.parametrize("path", ["", "/favicon.ico", "/group/", "/Groups", "//", "/../etc/passwd", "http://x/"])
def test_a_page_that_does_not_exist_is_not_found(path: str) -> None:
    response = get(GivenSource(*THREE), path)
    assert response.status == HTTPStatus.NOT_FOUND
    assert "There is no such page." in response.page


@pytest.mark.parametrize("query", ["id=%ff", "&".join(f"a{number}=1" for number in range(20)), ""])
def test_an_address_that_names_no_group_is_a_bad_request(query: str) -> None:
    response = respond(GivenSource(*THREE), HttpRequest("GET", "/group", query, host="localhost"))
    assert response.status == HTTPStatus.BAD_REQUEST


def test_every_page_forbids_what_it_does_not_need() -> None:
    for path, query in (("/", ""), ("/search", "q=x"), ("/group", "id=audit"), ("/nothing", "")):
        policy = respond(GivenSource(*THREE), HttpRequest("GET", path, query, host="localhost")).policy
        for part in ("default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'"):
            assert part in policy
        assert "unsafe" not in policy


def test_an_error_of_the_program_is_a_page_without_its_details(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(GivenSource):
        def rows(self) -> list[FleetRow]:
            raise ZeroDivisionError("a secret")

    response = get(Broken(), "/")
    assert response.status == HTTPStatus.INTERNAL_SERVER_ERROR
    assert "secret" not in response.page
    assert "a secret" in caplog.text


def test_so_many_pages_read_at_a_time_and_the_list_needs_no_place() -> None:
    started, go_on = threading.Semaphore(0), threading.Event()

    class Slow(GivenSource):
        def members(self, rows: Mapping[str, FleetRow]) -> Mapping[str, GroupNow]:
            started.release()
            assert go_on.wait(LIMIT_SECONDS)
            return super().members(rows)

    site = Site(Slow(*THREE))
    search = HttpRequest("GET", "/search", "q=x", host="localhost")
    statuses: list[HTTPStatus] = []
    threads = [
        threading.Thread(target=lambda: statuses.append(site.respond(search).status)) for _ in range(MAX_READINGS)
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert started.acquire(timeout=LIMIT_SECONDS)
    refused = site.respond(search)
    assert refused.status == HTTPStatus.SERVICE_UNAVAILABLE
    assert ("Retry-After", "2") in refused.headers
    assert site.respond(HttpRequest("GET", "/", host="localhost")).status == HTTPStatus.OK
    go_on.set()
    for thread in threads:
        thread.join(LIMIT_SECONDS)
    assert statuses == [HTTPStatus.OK] * MAX_READINGS
    assert site.respond(search).status == HTTPStatus.OK


def test_addresses_of_this_machine_alone_are_known() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.9.9.9", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "10.1.2.3", "groups.example")))
