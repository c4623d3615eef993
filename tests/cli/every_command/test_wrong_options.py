"""Every option of every command with values that are wrong for its kind: one line that names the option or the value.

Commands and options come from the application, and the kind of an option from its placeholder in ``--help``, so that a
new one is tried without being listed here.
"""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streaming.cli.exit_codes import REFUSED, USAGE
from tests.cli.every_command.test_mistakes import LEAVES, assert_one_line, tried
from tests.cli.test_commands import UNREACHABLE

NO_FILE = "/proc/nope/x"
"""Neither a file nor a place for one, also for root."""

ANY_TEXT = {
    "--member": "a client chooses its ids as it likes",
    "--reason": "text for a person",
    "--metadata": "text for a person",
}
"""Options for which any text is right, each with the reason."""

ANY_TEXT_OF: dict[tuple[str, ...], dict[str, str]] = {
    ("acls",): {
        "--topic": "a name to be, which the brokers check with the ACL",
        "--group": "a client chooses its ids as it likes",
        "--transactional-id": "a client chooses its ids as it likes",
        "--command-config": "a file on the host where the printed commands run",
    }
}
"""The same for options of one command."""

WRONG = {
    "HOST:PORT,...": ("localhost", "localhost:http", "127.0.0.1:9092,localhost", "127.0.0.1:70000", ""),
    "HOST:PORT": ("localhost", "127.0.0.1:70000"),
    "HOST": ("0.0.0.0",),
    "ADDRESS": ("256.0.0.1",),
    "PREFIX": ("a prefix", "x" * 201),
    "FILE": (NO_FILE,),
    "FOLDER": (NO_FILE,),
    "BACKUP": (NO_FILE,),
    "TIME": ("yesterday", "2026-13-01", "2 h"),
    "AGE": ("yesterday", "2026-11-24", "2"),
    "SIZE": ("lots", "512", "-1g"),
    "KEY=VALUE": ("no.such.key=1", "no.such.key"),
    "TOPIC[:PARTITIONS]": ("orders:x", "orders:1-"),
    "NAME": ("no:such",),
}
"""Values that are wrong for an option, by its placeholder; of any other one, :data:`UNKNOWN` is none."""

UNKNOWN = ("no such value",)

RIGHT = {"TOPIC[:PARTITIONS]": "orders", "TIME": "1h", "COUNT": "1", "FILE": "written.csv", "RELEASE": "0.1.0"}
"""Values of required options, by their placeholders."""

NEEDS = {
    ("run",): {"--checkpoint": ["--checkpoint", "checkpoint"]},
    ("gateway",): {"--tls-cert": ["--tls-cert", "offsets.csv"], "--listen": ["--listen", "127.0.0.1:0"]},
    ("acls",): {"--principal": ["--apply"]},
    ("offsets", "apply"): {"": ["--execute"]},
    ("offsets", "reset"): {
        "--topic": ["--all-topics"],
        "--to-offset --to-datetime --shift-by --by-duration --from-file": ["--to-latest"],
    },
}
"""What else commands need, unless one of the options is tried that is named before it."""

WITHOUT_BROKERS = {(("drill",), "--set"), (("doctor",), "--checkpoint")}
"""Commands that do something else with brokers before they look at the option."""

ARGUMENTS = {"TOPIC:PARTITION=OFFSET...": "orders:0=1", "FILE": "offsets.csv", "PLAN": "plan.json", "DRILL": "kill"}
"""Values of arguments, by their placeholders."""

FINDS_PROBLEMS = {("doctor",)}
"""Commands whose output is what is wrong: an option too."""

VALIDATORS_WORDS = re.compile(r"Expected `|Invalid enum|matching regex|is not a valid|\[Errno")

Words = tuple[str, ...]


def wrong_values() -> Iterator[tuple[Words, str, str]]:
    """Each command with each option that takes a text, and each value that is wrong for it."""
    for words, command in LEAVES.items():
        for option in command.params:
            if option.param_type_name != "option" or getattr(option, "is_flag", False) or takes_number(option):
                continue
            for value in (
                () if option.opts[0] in {*ANY_TEXT, *ANY_TEXT_OF.get(words, ())} else WRONG.get(option.metavar, UNKNOWN)
            ):
                yield words, option.opts[0], value


def takes_number(option: Any) -> bool:
    """Whether an option takes a number: wrong ones are tried in test_mistakes.py."""
    return getattr(getattr(option, "type_descriptor", None), "annotation", None) is int


def command_line(words: Words, tried_option: str) -> list[str]:
    """A command with what it needs, so that only the option that follows is wrong."""
    params = LEAVES[words].params
    line = list(words)
    line += [
        ARGUMENTS.get(each.metavar, "x") for each in params if each.param_type_name == "argument" and each.required
    ]
    options = {each.opts[0]: each for each in params if each.param_type_name == "option"}
    if "--bootstrap-servers" in options and (words, tried_option) not in WITHOUT_BROKERS:
        line += ["-b", UNREACHABLE]
    if "--timeout" in options and tried_option != "--timeout":
        line += ["--timeout", "1"]
    for names, more in NEEDS.get(words, {}).items():
        line += [] if tried_option in names.split() else more
    for name, option in options.items():
        if option.required and name not in ("--bootstrap-servers", tried_option):
            line += [name, RIGHT[option.metavar]]
    return line


def quieted_loggers() -> list[str]:
    """Loggers of the project that keep a level of their own: a later use in the same process would log less."""
    known = logging.root.manager.loggerDict.items()
    return [
        name for name, each in known if name.startswith("streaming") and isinstance(each, logging.Logger) and each.level
    ]


def write_files(folder: Path) -> None:
    """Write the files that the command lines name."""
    (folder / "offsets.csv").write_text('"orders",0,1\n')
    (folder / "plan.json").write_text('{"groupId": "g", "topics": []}')


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the files that commands read."""
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("words", "option", "value"), list(wrong_values()))
def test_a_wrong_value_is_one_line_that_names_it(folder: Path, words: Words, option: str, value: str) -> None:
    before = sorted(folder.rglob("*"))
    result = tried(*command_line(words, option), option, value)
    said = result.stderr
    if words in FINDS_PROBLEMS and not said:
        assert result.exit_code == REFUSED
        said = next(line for line in result.stdout.splitlines() if line.startswith("problem"))
    else:
        assert_one_line(result, result.exit_code)
        assert result.exit_code in (REFUSED, USAGE)
        assert result.stdout == ""
    assert option in said or value.removesuffix("=1") in said, said
    assert not VALIDATORS_WORDS.search(said), said
    assert "this should not happen" not in said
    assert sorted(folder.rglob("*")) == before
    assert quieted_loggers() == []


def test_the_options_for_which_any_text_is_right_exist() -> None:
    names = {name for command in LEAVES.values() for each in command.params for name in each.opts}
    assert ANY_TEXT.keys() <= names
    for words, options in ANY_TEXT_OF.items():
        assert options.keys() <= {name for each in LEAVES[words].params for name in each.opts}
