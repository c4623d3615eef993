"""How each command is run, or its output made, with texts that would do harm on a terminal.

A test compares the commands in the two tables with those that there are.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.contract.output.hostile_texts import HOSTILE

CONSUMERS, LEFT, UNUSED = f"{HOSTILE} consumers", f"{HOSTILE} left", f"{HOSTILE} unused"
"""Group ids besides HOSTILE, whose group has a member and offsets: a consumer group, one without its member, and one to
delete."""

TOPIC = f"{HOSTILE} topic"

NO_EQUALS_SIGN = HOSTILE.replace("=", "")

Arguments = Sequence[str]


class Run(NamedTuple):
    """A command line after the words of its command, and its exit code. ``{folder}`` is a folder for files."""

    arguments: Arguments
    exit_code: int = 0


REFUSED, USAGE = 1, 2
CSV, JSON, PLAN = "{folder}/offsets.csv", "{folder}/offsets.json", "{folder}/plan.json"
NO_BROKER = ("-b", "127.0.0.1:1")

ON_COORDINATOR: Mapping[tuple[str, ...], Sequence[Run]] = {
    ("groups", "list"): (Run([]), Run(["--json"]), Run(["--at", "0s"]), Run(["--at", HOSTILE], USAGE)),
    ("groups", "describe"): (
        Run([HOSTILE, CONSUMERS]),
        Run([HOSTILE, CONSUMERS, "--json"]),
        Run([HOSTILE, "--at", "0s"]),
        Run([f"{HOSTILE} missing"], REFUSED),
        Run([f"--{HOSTILE}"], USAGE),
    ),
    ("groups", "configure"): (
        Run([CONSUMERS, "consumer.session.timeout.ms=50000"]),
        Run([CONSUMERS, f"{NO_EQUALS_SIGN}=1"], REFUSED),
        Run([CONSUMERS, NO_EQUALS_SIGN], USAGE),
    ),
    ("groups", "quarantine", "list"): (Run([]), Run(["--json"])),
    ("groups", "quarantine", "show"): (Run([HOSTILE], REFUSED),),
    ("groups", "quarantine", "export"): (Run([HOSTILE, "-o", "{folder}/state"], REFUSED),),
    ("groups", "quarantine", "drop"): (Run([HOSTILE, "--reason", HOSTILE], REFUSED),),
    ("offsets", "list"): (Run([HOSTILE]), Run([HOSTILE, "--json"])),
    ("offsets", "commit"): (
        Run([UNUSED, f"{TOPIC}:0=5", "--metadata", HOSTILE], REFUSED),
        Run([UNUSED, HOSTILE], USAGE),
    ),
    ("offsets", "history"): (Run([HOSTILE]), Run([HOSTILE, "--json"]), Run([f"{HOSTILE} missing"], REFUSED)),
    ("offsets", "delete"): (
        # A topic's name has no colon in these arguments.
        Run([HOSTILE, "--topic", "orders"], REFUSED),
        Run([UNUSED, "--topic", HOSTILE], USAGE),
    ),
    ("offsets", "diff"): (Run([HOSTILE, "--from", "1h"]), Run([HOSTILE, "--from", "1h", "--json"])),
    ("offsets", "export"): (Run([HOSTILE]), Run([HOSTILE, "-o", CSV]), Run([HOSTILE, "-o", JSON, "--json"])),
    ("offsets", "import"): (Run([HOSTILE, CSV], REFUSED), Run([HOSTILE, HOSTILE], USAGE)),
    ("offsets", "reset"): (Run([HOSTILE, "--all-topics", "--to-earliest", "--save-plan", PLAN], REFUSED),),
    ("offsets", "restore"): (Run([HOSTILE, "--as-of", "0s"]),),
    ("offsets", "undo"): (Run([HOSTILE], REFUSED),),
    ("offsets", "clone"): (Run([HOSTILE, f"{HOSTILE} clone"]), Run([HOSTILE, UNUSED], REFUSED)),
    ("offsets", "apply"): (Run([f"{HOSTILE}/plan", "--execute"], REFUSED),),
    ("explain",): (
        Run([LEFT, "--refused"]),
        Run([LEFT, "--json"]),
        Run([LEFT, "--member", HOSTILE]),
        Run([LEFT, "--html", "{folder}/story.html", "--trace", "{folder}/story.json"]),
        Run([f"{HOSTILE} missing"], REFUSED),
    ),
    ("events",): (Run([]), Run(["--json"])),
    ("replay",): (
        Run([LEFT]),
        Run([LEFT, "--static", "--json"]),
        Run([LEFT, "--case", "{folder}/case.json"]),
        Run([LEFT, "--set", f"{NO_EQUALS_SIGN}=1"], USAGE),
    ),
    ("doctor",): (Run(["--set", f"{NO_EQUALS_SIGN}=1"], REFUSED), Run([*NO_BROKER, "--timeout", "1"], REFUSED)),
    ("acls",): (
        Run(["client", "--topic", HOSTILE, "--group", HOSTILE, "--principal", f"client={HOSTILE}"]),
        Run(["client", "--topic", HOSTILE, "--apply"]),
        Run([HOSTILE], USAGE),
    ),
    ("run",): (Run([*NO_BROKER, "--checkpoint", "/tmp/c", "--set", f"{NO_EQUALS_SIGN}=1"], USAGE),),
    ("gateway",): (Run([*NO_BROKER, "--set", f"{NO_EQUALS_SIGN}=1"], USAGE),),
    ("drill",): (Run([HOSTILE], USAGE),),
    ("checkpoint", "backup"): (Run([f"{{folder}}/{HOSTILE}", "{folder}/backups"], REFUSED),),
    ("checkpoint", "list"): (Run([f"{{folder}}/{HOSTILE}"], REFUSED),),
    ("checkpoint", "verify"): (Run([f"{{folder}}/{HOSTILE}"], REFUSED),),
    ("checkpoint", "restore"): (Run([f"{{folder}}/{HOSTILE}", "{folder}/restored"], REFUSED),),
    ("checkpoint", "rebuild"): (Run(["{folder}/rebuilt", "--backup", f"{{folder}}/{HOSTILE}"], REFUSED),),
    ("checkpoint", "repartition"): (Run([f"{{folder}}/{HOSTILE}", "--state-partitions", "2"], REFUSED),),
    ("checkpoint", "migrate"): (Run([f"{{folder}}/{HOSTILE}", "{folder}/migrated"], REFUSED),),
    ("checkpoint", "downgrade"): (
        Run([f"{{folder}}/{HOSTILE}", "--to", "0.1.0"], REFUSED),
        Run(["{folder}/checkpoint", "--to", HOSTILE], USAGE),
    ),
    ("version",): (Run([]), Run(["--json"])),
    ("schema",): (Run([]),),
    # The last one: it deletes what the others show.
    ("groups", "delete"): (Run([UNUSED]), Run([HOSTILE], REFUSED), Run([HOSTILE, "--json"], REFUSED)),
}

ELSEWHERE: Mapping[tuple[str, ...], str] = {
    ("broker",): "tests/contract/output/test_printing.py",
    ("demo",): "tests/drills/test_console_output.py",
    ("sql",): "tests/contract/output/test_printing.py",
    ("top",): "tests/explain/live/test_screen.py",
    ("ui",): "tests/explain/ui/test_pages.py",
}
"""Commands that are not run here, with the test of how they print."""
