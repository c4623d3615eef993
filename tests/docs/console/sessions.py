"""The console sessions in a Markdown page: what is typed in which terminal, and what it printed.

A session is a fenced block ``console``. A line such as ``$ command`` was typed in the terminal that is at hand, and the
lines below it are what the command printed. ``billing-1$ command`` begins a terminal named billing-1, in which the
command goes on, and ``billing-1$ ^C`` is Ctrl-C there. A comment in front of a block says what a reader need not see:

    <!-- until: TEXT -->          a command that goes on prints this before the session continues, or further output of
                                  its terminal has this before Ctrl-C
    <!-- repeated until: TEXT --> the last command of the block is typed again until it prints this; may come repeatedly
    <!-- repeated while: TEXT --> and as long as it prints this
    <!-- ends with: 1 -->         the exit code of the commands, 0 unless given
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

CONTROL_C = "^C"

_BLOCK = re.compile(r"((?:<!-- [^\n]+ -->\n)*)```console\n(.*?)```\n", re.DOTALL)
_DIRECTIVE = re.compile(r"<!-- (until|repeated until|repeated while|ends with): (.+) -->")
_PROMPT = re.compile(r"([a-z][\w-]*)?\$ (.+)")


@dataclass
class Typed:
    """A line that was typed, and what it printed.

    terminal: its name; empty for the one at hand.
    """

    terminal: str
    line: str
    printed: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([f"{self.terminal}$ {self.line}", *self.printed]) + "\n"


@dataclass
class Block:
    """A block of a session.

    directives: the comments in front of it, each with its text.
    """

    directives: list[tuple[str, str]]
    typed: list[Typed]

    @property
    def exit_code(self) -> int:
        """The exit code of its commands."""
        return int(next(self._texts("ends with"), "0"))

    @property
    def until(self) -> str:
        """What a command that goes on prints before the session continues."""
        return next(self._texts("until"), "")

    def is_enough(self, typed: Typed, printed: str) -> bool:
        """Whether a command need not be repeated after it has printed this."""
        if typed is not self.typed[-1]:
            return True
        text = " ".join(printed.split())
        has_all = all(until in text for until in self._texts("repeated until"))
        return has_all and not any(unlike in text for unlike in self._texts("repeated while"))

    def _texts(self, directive: str) -> Iterator[str]:
        return (text for name, text in self.directives if name == directive)


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page, in order."""
    for match in _BLOCK.finditer(page):
        yield _block(match)


def without_blocks(page: str) -> str:
    """The text of a page around its blocks."""
    return _BLOCK.sub("", page)


def with_output(page: str, played: Iterator[Block]) -> str:
    """A page with the output of other blocks in place of its own."""
    return _BLOCK.sub(lambda match: f"{match[1]}```console\n{''.join(map(str, next(played).typed))}```\n", page)


def _block(match: re.Match[str]) -> Block:
    typed: list[Typed] = []
    for line in match[2].splitlines():
        prompt = _PROMPT.fullmatch(line)
        if prompt is not None:
            typed.append(Typed(prompt[1] or "", prompt[2]))
        elif typed:
            typed[-1].printed.append(line)
        else:
            raise ValueError(f"a session begins without a command: {line!r}")
    return Block(_DIRECTIVE.findall(match[1]), typed)
