"""Serves metrics and health over HTTP: ``/metrics``, ``/health/live``, ``/health/ready`` and a job's ``/health/warm``.

A health page is JSON with every check, and has the status 200 if all hold, else 503. Any other path is not found (404).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import msgspec
from prometheus_client import CollectorRegistry, make_wsgi_app

from streaming.contract.http_server import Application, serving_http
from streaming.contract.ports import cannot_listen

METRICS_PATH, LIVE_PATH, READY_PATH, WARM_PATH = "/metrics", "/health/live", "/health/ready", "/health/warm"


class Check(NamedTuple):
    """One check of a health page; ``detail`` says what was found."""

    name: str
    ok: bool
    detail: str


class Health(NamedTuple):
    """The checks of a process. They run on the threads of the server, and must not block.

    ``live``: the process works, or should be restarted. ``ready``: it serves requests now. ``warm``: it serves them
    about as fast as later; None for a process that does so from its start.
    """

    live: Callable[[], Sequence[Check]]
    ready: Callable[[], Sequence[Check]]
    warm: Callable[[], Sequence[Check]] | None = None


@contextmanager
def serving_monitoring(host: str, port: int, registry: CollectorRegistry, health: Health) -> Iterator[int]:
    """Serve on threads of this process until the block ends; yields the port, which 0 lets the system choose.

    Raises :class:`~streaming.contract.errors.CannotRun` when the address cannot be opened.
    """
    with ExitStack() as stack:
        try:
            served = stack.enter_context(serving_http(_app(registry, health), host, port, "monitoring"))
        except OSError as error:
            raise cannot_listen(host, port, "--metrics-port", error) from error
        yield served


def _app(registry: CollectorRegistry, health: Health) -> Application:
    metrics: Callable[..., list[bytes]] = make_wsgi_app(registry)
    pages = {LIVE_PATH: health.live, READY_PATH: health.ready}
    if health.warm is not None:
        pages[WARM_PATH] = health.warm
    *others, last = (METRICS_PATH, *pages)
    served = f"{', '.join(others)} and {last}"

    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        path = environ["PATH_INFO"]
        if path == METRICS_PATH:
            return metrics(environ, start_response)
        checks = pages.get(path)
        if checks is None:
            start_response("404 Not Found", [("Content-Type", "text/plain; charset=utf-8")])
            return [f"not found; served are {served}\n".encode()]
        found = checks()
        ok = all(check.ok for check in found)
        start_response("200 OK" if ok else "503 Service Unavailable", [("Content-Type", "application/json")])
        return [msgspec.json.encode({"ok": ok, "checks": [check._asdict() for check in found]}) + b"\n"]

    return app
