"""Writes the picture of the documents, of a generated incident: ``python -m tests.explain.page.picture``."""

import tempfile
from pathlib import Path

from PIL import Image

from tests.explain.page.chromium import picture_of
from tests.explain.page.pages import html_page
from tests.explain.page.scripted import incident

PICTURE = Path(__file__).resolve().parents[3] / "docs" / "explain" / "billing.png"
SIZE = (1280, 580)
EXPELLED = "#rebalance=23&from=0&to=7521000"
"""The whole time, with the details of the rebalance that began when a host was lost."""


def main() -> None:
    """Draw the page, and write its picture without transparency."""
    PICTURE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        page, drawn = folder / "page.html", folder / "page.png"
        page.write_text(html_page(incident()))
        picture_of(page, folder / "profile", drawn, SIZE, EXPELLED)
        with Image.open(drawn) as picture:
            picture.convert("RGB").save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
