"""Elements of HTML. What clients have chosen becomes text or the value of an attribute, always escaped.

The standard library's ElementTree escapes; :func:`printable` shows characters that would change the direction of
writing.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple
from urllib.parse import urlencode
from xml.etree.ElementTree import Comment, Element, tostring

from streaming.contract.output.text import printable
from streaming.explain.page.writing import Picture, base_style, content_policy, times_script
from streaming.explain.story.words import clock

GROUPS, GROUP, TIMELINE, SEARCH = "/", "/group", "/timeline", "/search"
"""The paths of the pages."""

MAX_TARGET = 8_192
"""The longest path and query that a request may have; a group whose id makes a longer one has no link."""

MAX_SHOWN = 200
"""The longest part of an id in a list: a group id may have 32 kB."""

_PICTURE = "picture"

OWN_SERVER_ONLY = "form-action 'self'; connect-src 'self'; frame-ancestors 'none'"


class Look(NamedTuple):
    """The style and the script of a page, and the policy that allows these and requests to this server."""

    style: str
    script: str

    @property
    def policy(self) -> str:
        return f"{content_policy(self.style, self.script)}; {OWN_SERVER_ONLY}"


class HtmlPage(NamedTuple):
    """A page, with the policy of what it may load and run."""

    text: str
    policy: str


@cache
def _template(name: str) -> str:
    return (resources.files("streaming.explain.ui") / "template" / name).read_text("utf-8")


def _look(picture: Picture | None) -> Look:
    style = base_style() + _template("ui.css")
    if picture is None:
        return Look(style, times_script() + _template("ui.js"))
    return Look(style + picture.style, picture.script)


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


def dim(*content: Element | str) -> Element:
    """A remark."""
    return element("p", {"class": "dim"}, *content)


def moment(time: int) -> Element:
    """A time (ms since the epoch), to the second; the script of the page shows it in the reader's time zone."""
    exact = clock(time)
    return element("time", {"datetime": exact, "title": exact}, f"{exact[:10]} {exact[11:19]} UTC")


def place_of_picture() -> Element:
    """Where :func:`document` puts the picture."""
    return element("div", {}, Comment(_PICTURE))  # type: ignore[arg-type]


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
    words: Iterable[int] = (),
) -> Element:
    """A table; the columns ``numbers`` are aligned to the right. Text with line breaks becomes lines.

    ``words`` are the columns of single words, such as states. Neither these nor numbers are broken across lines.

    ``order`` has the direction of columns by which the rows are sorted: ``ascending`` or ``descending``.
    """
    directions = order or {}
    classes = {**dict.fromkeys(words, "word"), **dict.fromkeys(numbers, "number")}

    def cell(tag: str, place: int, attributes: Mapping[str, str], *content: Element | str) -> Element:
        return element(tag, {**attributes, **({"class": classes[place]} if place in classes else {})}, *content)

    def head_cell(place: int, content: Element | str) -> Element:
        sorting = {"aria-sort": directions[place]} if place in directions else {}
        return cell("th", place, {"scope": "col", **sorting}, content)

    head = element("tr", {}, *(head_cell(place, one) for place, one in enumerate(heads)))
    body = [element("tr", {}, *(cell("td", place, {}, *_lines(one)) for place, one in enumerate(row))) for row in rows]
    return element(
        "div", {"class": "scrolling"}, element("table", {}, element("thead", {}, head), element("tbody", {}, *body))
    )


def document(title: str, *content: Element, query: str = "", picture: Picture | None = None) -> HtmlPage:
    """A whole page, whose search field has the text ``query``."""
    look = _look(picture)
    head = element(
        "head",
        {},
        element("meta", {"charset": "utf-8"}),
        element("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        element("title", {}, title),
        _raw("style", look.style),
    )
    body = element("body", {}, _navigation(query), element("main", {}, *content), _raw("script", look.script))
    text = tostring(element("html", {"lang": "en"}, head, body), "unicode", "html")
    if picture is not None:
        # No text of a client has this comment: it is escaped.
        text = text.replace(f"<!--{_PICTURE}-->", picture.markup)
    return HtmlPage(f"<!doctype html>\n{text}\n", look.policy)


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
