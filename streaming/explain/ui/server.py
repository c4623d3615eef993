"""Serves a site over HTTP, on threads of this process."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from streaming.contract.http_server import Application, serving_http
from streaming.contract.ports import cannot_listen
from streaming.explain.ui.guard import HttpRequest
from streaming.explain.ui.routes import Site

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


@contextmanager
def serving(site: Site, host: str, port: int) -> Iterator[int]:
    """Serve until the block ends; yields the port, which 0 lets the system choose.

    Raises :class:`~streaming.contract.errors.CannotRun` when the address cannot be opened.
    """
    with ExitStack() as stack:
        try:
            served = stack.enter_context(serving_http(_app(site), host, port, "ui"))
        except (OSError, OverflowError) as error:
            raise cannot_listen(host, port, "--port", error) from error
        yield served


def _app(site: Site) -> Application:
    def app(environ: dict[str, Any], start_response: Callable[..., object]) -> Iterable[bytes]:
        response = site.respond(_request(environ))
        page = response.page.encode("utf-8", "replace")
        headers = [*HEADERS, *response.headers, ("Content-Security-Policy", response.policy)]
        headers.append(("Content-Length", str(len(page))))
        start_response(f"{response.status.value} {response.status.phrase}", headers)
        return [page]

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
