"""The columns of a table, and which of them a terminal has room for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: Its title.
        rank: What a terminal that is too narrow leaves out: the highest rank first, and columns of rank 0 never.
        least: The width, in characters, to which it may be narrowed before a column is left out; its cells then have
            several lines. None: it is not narrowed.
    """

    title: str
    rank: int = 0
    least: int | None = None


def fitted(
    columns: Sequence[Column], widths: Sequence[int], has_text: Sequence[bool], room: int, around: int
) -> Mapping[int, int]:
    """The columns that have room, by their places, with their widths.

    A column gets room if there is some beside all that are more important; one that cannot be narrowed itself also
    leaves their cells in one line. If there is too little for those of rank 0, the widest ones are narrowed.

    Args:
        columns: The columns.
        widths: The width of each one's longest line.
        has_text: Whether a column has anything to show but its title. What has not is left out before all others.
        room: The width of the terminal, without what it has around all columns.
        around: What each column takes besides its width.
    """
    if sum(widths) + around * len(widths) <= room:
        return dict(enumerate(widths))
    shown: dict[int, int] = {}

    def spare() -> int:
        return room - sum(shown.values()) - around * len(shown)

    def spare_beside_whole_lines() -> int:
        return room - sum(widths[place] + around for place in shown)

    for place in sorted(range(len(columns)), key=lambda each: columns[each].rank):
        column = columns[place]
        least = min(widths[place], max(column.least or widths[place], len(column.title)))
        breaks_lines = column.least is None and 0 <= spare_beside_whole_lines() < least + around
        if not column.rank or (has_text[place] and least + around <= spare() and not breaks_lines):
            shown[place] = least
    while spare() > 0 and (narrowed := [place for place, width in shown.items() if width < widths[place]]):
        # The one that makes the table longest.
        shown[max(narrowed, key=lambda place: widths[place] / shown[place])] += 1
    while spare() < 0 and max(shown.values()) > 1:
        shown[max(shown, key=lambda place: shown[place])] -= 1
    return dict(sorted(shown.items()))
