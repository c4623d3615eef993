"""Durations and points in time, as people write them."""

import re
from datetime import UTC, datetime, timedelta

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(rf"(\d+)({'|'.join(_UNITS)})")

FORMATS = "an ISO 8601 time such as 2026-11-24T10:00:00Z (without a zone: UTC), or an age such as 90s, 15m, 2h or 3d"


def milliseconds(text: str) -> int:
    """Parse a duration such as ``60s``; raises ValueError."""
    parsed = _DURATION.fullmatch(text)
    if parsed is None:
        raise ValueError(f"{text!r} is not a duration such as 500ms, 60s, 10m, 2h or 1d")
    return int(parsed[1]) * _UNITS[parsed[2]]


def point_in_time(text: str, now: datetime) -> int:
    """The time that ``text`` names, in ms since the epoch; an age counts back from ``now``.

    Raises ValueError, which says what a time looks like.
    """
    text_alone = text.strip()
    try:
        if _DURATION.fullmatch(text_alone):
            then = now - timedelta(milliseconds=milliseconds(text_alone))
        else:
            then = datetime.fromisoformat(text_alone)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a time: give {FORMATS}") from None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return (then - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
