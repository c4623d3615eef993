from datetime import UTC, datetime

import pytest

from streaming.explain.time_travel.point_in_time import point_in_time

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)


def ms(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp() * 1000)  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-24T10:00:00Z", ms(2026, 11, 24, 10)),
        ("2026-11-24T10:00:00+02:00", ms(2026, 11, 24, 8)),
        ("2026-11-24 10:00", ms(2026, 11, 24, 10)),
        ("2026-11-24", ms(2026, 11, 24)),
        ("2026-11-24T10:00:00.123Z", ms(2026, 11, 24, 10) + 123),
        ("250ms", ms(2026, 11, 24, 12) - 250),
        ("90s", ms(2026, 11, 24, 11, 58, 30)),
        ("15m", ms(2026, 11, 24, 11, 45)),
        ("2h", ms(2026, 11, 24, 10)),
        ("3d", ms(2026, 11, 21, 12)),
    ],
)
def test_a_time_or_an_age_is_a_point_in_time(text: str, expected: int) -> None:
    assert point_in_time(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "2 hours", "-2h", "2026-13-01", "99999999999999d"])
def test_what_is_no_time_is_refused_with_the_formats(text: str) -> None:
    with pytest.raises(ValueError, match="ISO 8601"):
        point_in_time(text, NOW)
