"""A point in time, as people write it."""

import re
from datetime import UTC, datetime, timedelta

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_AGO = re.compile(rf"(\d+)({'|'.join(_UNITS)})")

FORMATS = "an ISO 8601 time such as 2026-11-24T10:00:00Z (without a zone: UTC), or an age such as 90s, 15m, 2h or 3d"


def point_in_time(text: str, now: datetime) -> int:
    """The time that ``text`` names, in ms since the epoch; an age counts back from ``now``.

    Raises ValueError, which says what a time looks like.
    """
    age = _AGO.fullmatch(text.strip())
    try:
        if age is not None:
            then = now - timedelta(**{_UNITS[age[2]]: int(age[1])})
        else:
            then = datetime.fromisoformat(text.strip())
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is no time: give {FORMATS}") from None
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    return (then - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
