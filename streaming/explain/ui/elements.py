"""Elements of HTML. What clients have chosen becomes text or the value of an attribute, always escaped.

The standard library's ElementTree escapes; :func:`printable` shows characters that would change the direction of
writing.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple
from urllib.parse import urlencode
from xml.etree.ElementTree import Element, tostring

from streaming.contract.output.text import printable
from streaming.explain.page.writing import base_style, content_policy

GROUPS, GROUP, TIMELINE, SEARCH = "/", "/group", "/timeline", "/search"
"""The paths of the pages."""

MAX_TARGET = 8_192
"""The longest path and query that a request may have; a group whose id makes a longer one has no link."""

MAX_SHOWN = 200
"""The longest part of an id in a list: a group id may have 32 kB."""

OWN_SERVER_ONLY = "form-action 'self'; connect-src 'self'; frame-ancestors 'none'"


class Look(NamedTuple):
    """The style and the script of all pages, and the policy that allows these and requests to this server."""

    style: str
    script: str
    policy: str


@cache
def look() -> Look:
    """The pages' style and script."""
    files = resources.files("streaming.explain.ui") / "template"
    style = base_style() + (files / "ui.css").read_text("utf-8")
    script = (files / "ui.js").read_text("utf-8")
    return Look(style, script, f"{content_policy(style, script)}; {OWN_SERVER_ONLY}")


def element(tag: str, attributes: Mapping[str, str], *children: Element | str) -> Element:
    """An element with its attributes, and its children in their order."""
    made = Element(tag, {name: printable(value) for name, value in attributes.items()})
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            made.append(child)
            last = child
        elif last is None:
            made.text = (made.text or "") + printable(child)
        else:
            last.tail = (last.tail or "") + printable(child)
    return made


def lines(text: Iterable[str]) -> Element:
    """Lines as they are, with their indentation."""
    made = Element("pre")
    made.text = "\n".join(printable(line) for line in text)
    return made


def dim(text: str) -> Element:
    """A remark."""
    return element("p", {"class": "dim"}, text)


def page_address(path: str, **values: str) -> str:
    """The path and query of a page. Ids are in the query: a path of ``..`` would be another one."""
    return f"{path}?{urlencode(values, errors='replace')}" if values else path


def link(address: str, text: str) -> Element | str:
    """A link; only its text if the server would refuse the address as too long."""
    shown = shortened(text) or "(the empty id)"
    return element("a", {"href": address}, shown) if len(address) <= MAX_TARGET else shown


def group_link(group_id: str) -> Element | str:
    """A link to the page of a group."""
    return link(page_address(GROUP, id=group_id), group_id)


def shortened(text: str) -> str:
    """The beginning of a text that is too long for a list."""
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} ... ({len(text):,} characters)"


def table(
    heads: Iterable[Element | str],
    rows: Iterable[Iterable[Element | str]],
    numbers: Iterable[int] = (),
    order: Mapping[int, str] | None = None,
) -> Element:
    """A table; the columns ``numbers`` are aligned to the right. Text with line breaks becomes lines.

    ``order`` has the direction of columns by which the rows are sorted: ``ascending`` or ``descending``.
    """
    right, directions = frozenset(numbers), order or {}

    def cell(tag: str, place: int, attributes: Mapping[str, str], *content: Element | str) -> Element:
        return element(tag, {**attributes, **({"class": "number"} if place in right else {})}, *content)

    def head_cell(place: int, content: Element | str) -> Element:
        sorting = {"aria-sort": directions[place]} if place in directions else {}
        return cell("th", place, {"scope": "col", **sorting}, content)

    head = element("tr", {}, *(head_cell(place, one) for place, one in enumerate(heads)))
    body = [element("tr", {}, *(cell("td", place, {}, *_lines(one)) for place, one in enumerate(row))) for row in rows]
    return element(
        "div", {"class": "scrolling"}, element("table", {}, element("thead", {}, head), element("tbody", {}, *body))
    )


def document(title: str, *content: Element, query: str = "") -> str:
    """A whole page, whose search field has the text ``query``."""
    style, script, _ = look()
    head = element(
        "head",
        {},
        element("meta", {"charset": "utf-8"}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("title", {}, title),
        _raw("style", style),
    )
    body = element("body", {}, _navigation(query), element("main", {}, *content), _raw("script", script))
    return f"<!doctype html>\n{tostring(element('html', {'lang': 'en'}, head, body), 'unicode', 'html')}\n"


def _navigation(query: str) -> Element:
    field = {"id": "search", "type": "search", "name": "q", "value": query, "spellcheck": "false"}
    hints = {"placeholder": "Group, member, client or host", "aria-label": "Search groups, members, clients and hosts"}
    return element(
        "nav",
        {"aria-label": "Pages"},
        element("a", {"href": GROUPS}, "Groups"),
        element(
            "form",
            {"action": SEARCH, "role": "search"},
            element("input", field | hints),
            element("button", {}, "Search"),
        ),
    )


def _raw(tag: str, text: str) -> Element:
    """A style or script, which HTML does not escape."""
    made = Element(tag)
    made.text = text
    return made


def _lines(content: Element | str) -> list[Element | str]:
    if isinstance(content, Element) or "\n" not in content:
        return [content]
    return [element("div", {}, line) for line in content.splitlines()]
