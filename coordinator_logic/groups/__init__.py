"""The types of groups, one room for each, and the conversions between them. This is the only list of the types.

A type's room may import the rest of the logic except other types' rooms, the conversions, the handlers and
:mod:`coordinator_logic.step`. The conversions import the rooms of both types.
"""

from coordinator_logic.groups.classic.data import ClassicGroup
from coordinator_logic.groups.classic.group_type import ClassicType
from coordinator_logic.groups.consumer.conversion import DOWNGRADES
from coordinator_logic.groups.consumer.data import ConsumerGroup
from coordinator_logic.groups.consumer.group_type import ConsumerType
from coordinator_logic.groups.conversions import classic_to_consumer, consumer_to_classic
from coordinator_logic.groups.group_type import CONVERSIONS, TYPES, GroupType, register, type_of

__all__ = ["TYPES", "GroupType", "register", "type_of"]

# A group of which nothing is known but its id is of the first type, as in Kafka.
register(ClassicType())
register(ConsumerType())

_CLASSIC, _CONSUMER = ClassicGroup.type_name, ConsumerGroup.type_name
CONVERSIONS[_CLASSIC, _CONSUMER] = classic_to_consumer
CONVERSIONS[_CONSUMER, _CLASSIC] = consumer_to_classic
DOWNGRADES.append(consumer_to_classic)
