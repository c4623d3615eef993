"""What is told in another way of each type of group: the one place of the story that looks it up by the type's name."""

from collections.abc import Mapping

from coordinator_logic.group.record import Record
from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE
from streaming.explain.story.group_types.classic import ClassicTelling
from streaming.explain.story.group_types.consumer import ConsumerTelling
from streaming.explain.story.group_types.telling import TypeTelling, TypeWords

TELLINGS: Mapping[str, type[TypeTelling]] = {CLASSIC_TYPE: ClassicTelling, CONSUMER_TYPE: ConsumerTelling}

FIRST_TYPE = CLASSIC_TYPE
"""The type of a group with which its entries begin."""

_BY_RECORD = {record: name for name, telling in TELLINGS.items() for record in telling.RECORDS}


def words_of(group_type: str) -> TypeWords:
    """The words for a type of group."""
    return TELLINGS[group_type].WORDS


def type_after(record: Record, group_type: str | None) -> str | None:
    """The type of a group after a record, before which it was of this type; None if it is not known."""
    return _BY_RECORD.get(type(record), group_type)
