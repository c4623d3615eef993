"""README and the pages of docs/console, played as a reader would: their commands print what the pages show.

A page that differs is written anew by ``make console-pages``.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.embedded.ports import HOST, free_ports
from tests.docs.console.comparison import what_stays
from tests.docs.console.pages import PAGES
from tests.docs.console.playing import Player
from tests.docs.console.sessions import Block, Typed, blocks
from tests.docs.markdown import ROOT, name_of
from tests.support.parameters.long_tests import mostly_long

README = ROOT / "README.md"

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(900)]

Pair = tuple[Typed, Typed]
"""A line as a document shows it and as it was played."""


class Reader:
    """Plays README, and then each page up to the one that is asked for, with one coordinator.

    The first page begins with README's lines; those that were typed there are not typed again.
    """

    def __init__(self, folder: Path, player: Player) -> None:
        self.folder = folder
        self._player = player
        self._unread = iter((README, *PAGES))
        self._read: dict[Path, list[Pair]] = {}
        self._known: dict[tuple[str, str], list[str]] = {}

    def read(self, document: Path) -> list[Pair]:
        """The lines of a document, as it shows them and as they were played."""
        while document not in self._read:
            each = next(self._unread, None)
            assert each is not None, f"{document} could not be played to its end"
            self._read[each] = [pair for block in blocks(each.read_text()) for pair in self._play(block)]
            if each == README:
                self._known = {_key(played): played.printed for _, played in self._read[each]}
        return self._read[document]

    def _play(self, block: Block) -> Iterator[Pair]:
        if all(_key(typed) in self._known for typed in block.typed):
            for typed in block.typed:
                yield typed, Typed(typed.terminal, typed.line, self._known[_key(typed)])
        else:
            # From here on, the page goes on where README ends.
            self._known = {}
            yield from zip(block.typed, self._player.play(block).typed, strict=True)


def _key(typed: Typed) -> tuple[str, str]:
    """Terminal and command; README calls a command by its path, since its reader has not activated the environment."""
    return typed.terminal, typed.line.removeprefix(".venv/bin/")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("console")
    broker, gateway = free_ports(2)
    replaced = {
        "--embedded-port 9092": f"--embedded-port {broker}",
        "127.0.0.1:9092": f"{HOST}:{broker}",
        "127.0.0.1:19092": f"{HOST}:{gateway}",
        "/tmp/coordinator": str(folder / "state"),
    }
    environment = {"GROUP_COORDINATOR_GATEWAY_LISTEN": f"{HOST}:{gateway}"}
    with Player(folder / "checkout", replaced, environment) as player:
        yield Reader(folder / "checkout", player)


def test_the_lines_of_readme_do_what_it_says(reader: Reader) -> None:
    played = reader.read(README)
    for shown, typed in played:
        assert not shown.printed or what_stays(typed.printed) == what_stays(shown.printed), shown.line
    printed = {typed.line: "\n".join(typed.printed) for _, typed in played}
    described = printed[".venv/bin/group-coordinator groups describe billing"]
    assert described.startswith("billing: Stable (consumer, range), 1 member\n")
    explained = printed[".venv/bin/group-coordinator explain billing --html billing.html"]
    assert explained.startswith("wrote billing.html, ")
    assert explained.endswith(" bytes: 1 rebalance, 1 member")
    assert "member joined" in (reader.folder / "billing.html").read_text()


@pytest.mark.parametrize("page", mostly_long(PAGES, PAGES[:1]), ids=name_of)
def test_the_commands_of_a_page_print_what_it_shows(page: Path, reader: Reader) -> None:
    for shown, typed in reader.read(page):
        assert what_stays(typed.printed) == what_stays(shown.printed), f"{typed.terminal}$ {typed.line}"
