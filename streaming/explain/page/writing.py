"""Writes a page: one file with its style, its script and its data, which loads nothing."""

import base64
import hashlib
from importlib import resources
from string import Template
from typing import NamedTuple

from streaming.contract.output.text import html_text, json_text
from streaming.explain.page.data import Page

SCRIPTS = ("times.js", "model.js", "view.js", "drawing.js", "details.js", "lag.js", "main.js")
"""In the order in which they use each other."""


class Picture(NamedTuple):
    """A picture as a part of a page: its markup with its data, and the style and the script that it needs."""

    markup: str
    style: str
    script: str


UTC, LOCAL = "UTC", "local"
"""The zones in which a page shows times: the same for all who get a file, or that of its reader."""


def html_of(page: Page, zone: str = UTC) -> str:
    """The page as HTML.

    What clients choose, such as ids and reasons, is only in the title, where it is escaped, and in the data, where it
    cannot end the element; the script shows it as text. The page's policy allows its own script and style, and no
    request.
    """
    style, script = _style(), _script()
    return Template(_file("page.html")).substitute(
        title=f"{html_text(page.group)}: rebalances",
        policy=content_policy(style, script),
        style=style,
        picture=_markup(page, zone),
        script=script,
    )


def picture_of(page: Page) -> Picture:
    """The same picture for a page of a server, with times in the time zone of its reader."""
    return Picture(_markup(page, LOCAL), _file("picture.css"), _script())


def page_policy() -> str:
    """The Content-Security-Policy that is in each page."""
    return content_policy(_style(), _script())


def content_policy(style: str, script: str) -> str:
    """A Content-Security-Policy that allows a page this style and this script, and no request."""
    parts = [
        "default-src 'none'",
        f"style-src 'sha256-{_hash(style)}'",
        f"script-src 'sha256-{_hash(script)}'",
        "base-uri 'none'",
    ]
    return "; ".join(parts)


def base_style() -> str:
    """The colours, light and dark, and how text and controls look."""
    return _file("base.css")


def times_script() -> str:
    """What shows the times of a server's page in the time zone of its reader."""
    return _file("times.js")


def _markup(page: Page, zone: str) -> str:
    return Template(_file("picture.html")).substitute(zone=zone, data=json_text(page).replace("<", "\\u003c"))


def _style() -> str:
    return base_style() + _file("page.css") + _file("picture.css")


def _script() -> str:
    return '"use strict";\n' + "\n".join(_file(name) for name in SCRIPTS)


def _file(name: str) -> str:
    return (resources.files("streaming.explain.page") / "template" / name).read_text("utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
