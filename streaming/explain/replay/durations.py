"""Durations as people write them: ``60s``, ``10m``, ``2h``, ``1d``."""

import re

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def milliseconds(text: str) -> int:
    """Parse a duration; raises ValueError."""
    parsed = re.fullmatch(r"(\d+)(ms|s|m|h|d)", text)
    if parsed is None:
        raise ValueError(f"{text!r} is no duration such as 500ms, 60s, 10m, 2h or 1d")
    return int(parsed[1]) * _UNITS[parsed[2]]
