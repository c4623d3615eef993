"""The rows and the description of a group of each type: the one place of the room that looks them up by the type."""

from collections.abc import Mapping

from coordinator_logic.group import Group
from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE
from streaming.explain.time_travel.group_types.classic import ClassicRows
from streaming.explain.time_travel.group_types.consumer import ConsumerRows
from streaming.explain.time_travel.group_types.type_rows import TypeRows

__all__ = ["TypeRows", "rows_of_type"]

_BY_TYPE: Mapping[str, TypeRows] = {CLASSIC_TYPE: ClassicRows(), CONSUMER_TYPE: ConsumerRows()}
_ANY = TypeRows()


def rows_of_type(group: Group) -> TypeRows:
    """What makes the rows of groups of this one's type."""
    return _BY_TYPE.get(group.group_type, _ANY)
