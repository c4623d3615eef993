"""The base class of records, and the records that a journal can hold.

A group's journal has records of what every group has and records of the group's type. The decoder of an entry must know
all of them, so each type adds its own when it is registered.
"""

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any, ClassVar

from coordinator_logic.messages.base import Message


class Record(Message, frozen=True, tag_field="type"):
    """A change of a group. ``changes_retention``: whether it can change from when the group's offsets are retained."""

    changes_retention: ClassVar[bool] = False


_known: dict[str, type[Record]] = {}


def add_records(records: Iterable[type[Record]]) -> None:
    """Make records known to the decoders that are made from now on. Raises ``ValueError`` for a name that is taken."""
    for record in records:
        if _known.setdefault(record.__name__, record) is not record:
            raise ValueError(f"two records have the name {record.__name__!r}")


def known_records() -> Any:
    """The union of all records that were added."""
    return reduce(or_, _known.values())
