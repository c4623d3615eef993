"""What a described group of each type says: the one place of the room that looks it up by the type."""

from collections.abc import Mapping

from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE
from streaming.explain.live.group_types.classic import ClassicDescription
from streaming.explain.live.group_types.consumer import ConsumerDescription
from streaming.explain.live.group_types.description import AnyDescribedGroup, TypeDescription

__all__ = ["DESCRIPTIONS", "description_of", "type_of"]

DESCRIPTIONS: Mapping[str, TypeDescription] = {CLASSIC_TYPE: ClassicDescription(), CONSUMER_TYPE: ConsumerDescription()}

_TYPES = {description.ANSWER: name for name, description in DESCRIPTIONS.items()}


def type_of(group: AnyDescribedGroup) -> str:
    """The type of a group by the answer that describes it."""
    return _TYPES[type(group)]


def description_of(group_type: str) -> TypeDescription:
    """What describes groups of a type. A type that is not known is described as Kafka's first one."""
    return DESCRIPTIONS.get(group_type, DESCRIPTIONS[CLASSIC_TYPE])
