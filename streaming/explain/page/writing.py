"""Writes a page: one file with its style, its script and its data, which loads nothing."""

import base64
import hashlib
import html
from importlib import resources
from string import Template

import msgspec

from streaming.explain.page.data import Page

SCRIPTS = ("model.js", "view.js", "drawing.js", "details.js", "main.js")
"""In the order in which they use each other."""


def html_of(page: Page) -> str:
    """The page as HTML.

    What clients choose, such as ids and reasons, is only in the title, where it is escaped, and in the data, where it
    cannot end the element; the script shows it as text. The page's policy allows its own script and style, and no
    request.
    """
    style = _file("page.css")
    script = '"use strict";\n' + "\n".join(_file(name) for name in SCRIPTS)
    return Template(_file("page.html")).substitute(
        title=f"{html.escape(page.group)}: rebalances",
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        data=msgspec.json.encode(page).decode().replace("<", "\\u003c"),
    )


def _file(name: str) -> str:
    return (resources.files("streaming.explain.page") / "template" / name).read_text("utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
