"""Reads a page as a browser does."""

from collections.abc import Sequence
from html.parser import HTMLParser


class ReadPage(HTMLParser):
    """The elements of a page in their order, its texts by element, and the addresses of its links."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self._open: list[str] = []
        self._texts: list[tuple[str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.links += [value or "" for name, value in attrs if name == "href"]
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._open and data:
            self._texts.append((self._open[-1], data))

    def texts(self, *tags: str) -> Sequence[str]:
        """The texts in elements of these names."""
        return [text for tag, text in self._texts if tag in tags]

    @property
    def shown(self) -> str:
        """All text but that of style and script."""
        return "\n".join(text for tag, text in self._texts if tag not in ("style", "script"))
