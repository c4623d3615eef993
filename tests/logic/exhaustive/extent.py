"""How much the searches cover.

By default, they cover the scopes that together reach every state, answer, timer and record. ``EXHAUSTIVE=wide`` adds
scopes that take a minute or two together, as ``make properties`` does, and ``EXHAUSTIVE=large`` others that take many.
"""

import os
from collections.abc import Mapping
from typing import TypeVar

ScopeT = TypeVar("ScopeT")

EXTENT = os.environ.get("EXHAUSTIVE", "default")


def covered(
    default: Mapping[str, ScopeT], wide: Mapping[str, ScopeT], large: Mapping[str, ScopeT] | None = None
) -> dict[str, ScopeT]:
    """The scopes to search, by their names."""
    scopes = dict(default)
    if EXTENT in ("wide", "large"):
        scopes.update(wide)
    if EXTENT == "large":
        scopes.update(large or {})
    return scopes
