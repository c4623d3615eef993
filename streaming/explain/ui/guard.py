"""Which requests are refused, whatever they ask for.

The server has no login: it answers whoever reaches its address. A page of another site that its reader has open reaches
it through the reader's browser, so its requests are refused: by the name of the host, which a site can make point to
this address (DNS rebinding), and by what browsers say of the site that sends them (Fetch Metadata).
"""

import ipaddress
import re
from collections.abc import Collection
from http import HTTPStatus
from typing import NamedTuple

from streaming.explain.ui.elements import MAX_TARGET

METHODS = ("GET", "HEAD")

_HOST = re.compile(r"(?:\[(?P<v6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9._-]+))(?::\d{1,5})?", re.IGNORECASE)

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class HttpRequest(NamedTuple):
    """A request. ``path`` and ``query`` are as sent; ``local_address`` is the IP address that it reached.

    The other fields are headers, empty if there is none.
    """

    method: str
    path: str
    query: str = ""
    host: str = ""
    local_address: str = "127.0.0.1"
    fetch_site: str = ""
    fetch_mode: str = ""
    fetch_destination: str = ""


class HttpRefusal(NamedTuple):
    """Why a request is refused."""

    status: HTTPStatus
    text: str


def refusal(request: HttpRequest, names: Collection[str]) -> HttpRefusal | None:
    """Why the request is refused; None if it is not. ``names``: those of the host besides its address and localhost."""
    if request.method not in METHODS:
        return HttpRefusal(HTTPStatus.METHOD_NOT_ALLOWED, "This server only answers GET and HEAD: it changes nothing.")
    if len(request.path) + len(request.query) >= MAX_TARGET:
        return HttpRefusal(HTTPStatus.REQUEST_URI_TOO_LONG, f"An address has at most {MAX_TARGET:,} characters.")
    if not _is_own(request.host, request.local_address, names):
        return HttpRefusal(
            HTTPStatus.MISDIRECTED_REQUEST,
            "This server does not answer to this host name. Open it by its address, or start it with --allow-host.",
        )
    is_followed_link = request.fetch_mode == "navigate" and request.fetch_destination == "document"
    if request.fetch_site not in ("", "none", "same-origin") and not is_followed_link:
        return HttpRefusal(HTTPStatus.FORBIDDEN, "A page of another site may link to this server, but not read it.")
    return None


def is_loopback(address: str) -> bool:
    """Whether only this machine reaches an address: an IP address or ``localhost``."""
    found = _address(address)
    return address.lower() == "localhost" or (found is not None and found.is_loopback)


def _is_own(host: str, local_address: str, names: Collection[str]) -> bool:
    """Whether a Host header names this server. Its port does not matter: a forwarded port is another one."""
    parts = _HOST.fullmatch(host)
    if parts is None:
        return False
    name = (parts["v6"] or parts["name"]).lower()
    local = _address(local_address)
    if local is not None and (_address(name) == local or (name == "localhost" and local.is_loopback)):
        return True
    return name in {each.lower() for each in names}


def _address(text: str) -> _Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
