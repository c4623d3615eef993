"""Which entries of a group hold if two coordinators have told different histories."""

from collections.abc import Iterable
from zlib import crc32

import msgspec

from coordinator_logic.records import JournalEntry

_encode = msgspec.json.Encoder().encode


def content_of(entry: JournalEntry) -> int:
    """A number that two entries share if they tell the same, whichever coordinator wrote them."""
    return crc32(_encode((entry.timestamp, entry.record, entry.cause)))


def last_history(entries: Iterable[JournalEntry]) -> list[JournalEntry]:
    """The entries of one group that hold, if two coordinators have told different histories.

    They do after a copy of a checkpoint was started without the requests since it, and while one that is paused does
    not know that another has taken over. The entry of the later epoch holds, of the same epoch the later entry; what
    followed the other is void.
    """
    kept: list[JournalEntry] = []
    places: dict[tuple[str, int], int] = {}
    for entry in entries:
        place = entry.incarnation, entry.sequence
        index = places.get(place)
        if index is None:
            if kept and entry.job_epoch < kept[-1].job_epoch:
                continue
        elif content_of(kept[index]) == content_of(entry) or entry.job_epoch < kept[index].job_epoch:
            continue
        else:
            for void in kept[index:]:
                del places[void.incarnation, void.sequence]
            del kept[index:]
        places[place] = len(kept)
        kept.append(entry)
    return kept
