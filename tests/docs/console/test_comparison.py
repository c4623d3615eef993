"""The comparison of a page with a run: what varies is left out, and every other word counts."""

import pytest

from tests.docs.console.comparison import what_stays

TABLE = """\
┏━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━┓
┃ TIME             ┃ BY          ┃
┡━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━┩
│ 2026-11-28       │ group-coord │
│ 02:48:25.787Z    │ inator-cli  │
│                  │ at vm as    │
│                  │ User:root   │
│                  │ (claimed)   │
└──────────────────┴─────────────┘
"""


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (
            "2026-11-28T02:48:10.483Z  member joined -> generation 4",
            "2027-01-01T00:00:00.000Z  member joined -> generation 4",
        ),
        ("  joining took 0.4 s, the assignment 0.5 s", "  joining took 12.0 s, the assignment 7.1 s"),
        (
            "  because: b-d5e12206-176f-5a49-ab71-d6ee41bf2ec2: joined [certain; entries 2 to 4 of the journal]",
            "  because: b-00000000-176f-5a49-ab71-d6ee41bf2ec2: joined [certain; entry 7 of the journal]",
        ),
        (
            "hand-over since 2026-11-28T12:04:31.402+00:00: batch complete 85 ms, announced 31 ms",
            "hand-over since 2027-01-01T00:00:00.000+00:00: batch complete 7 ms, announced 310 ms",
        ),
        (TABLE, TABLE.replace("vm as    ", "host-1 as").replace("02:48", "11:59")),
        ("gateway: stopped\nstopped", "stopped\ngateway: stopped"),
    ],
)
def test_what_varies_by_nature_does_not_count(shown: str, printed: str) -> None:
    assert shown != printed
    assert what_stays(shown.splitlines()) == what_stays(printed.splitlines())


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("-> generation 4", "-> generation 5"),
        ("1 member", "2 members"),
        ("group-coordinator-cli at vm: test", "group-coordinator-cli at vm: other test"),
        (TABLE, TABLE.replace("BY", "OF")),
        (TABLE, TABLE.replace("claimed", "vouched")),
    ],
)
def test_every_other_word_counts(shown: str, printed: str) -> None:
    assert what_stays(shown.splitlines()) != what_stays(printed.splitlines())
