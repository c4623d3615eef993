"""The pages of docs/console, in the order in which a reader plays them."""

from tests.docs.markdown import ROOT

PAGES = tuple(ROOT / "docs" / "console" / f"{name}.md" for name in ("first-day", "a-stuck-group", "an-undo-at-night"))
"""Each goes on where the one before it ends."""
