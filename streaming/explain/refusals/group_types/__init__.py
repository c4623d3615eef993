"""What a refusal looks up in a group of each type: the one place of the room that does so by the type."""

from collections.abc import Mapping

from coordinator_logic.group import Group
from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE
from streaming.explain.refusals.group_types.classic import ClassicLookup
from streaming.explain.refusals.group_types.consumer import ConsumerLookup
from streaming.explain.refusals.group_types.type_lookup import TypeLookup

__all__ = ["TypeLookup", "lookup_in"]

_BY_TYPE: Mapping[str, TypeLookup] = {CLASSIC_TYPE: ClassicLookup(), CONSUMER_TYPE: ConsumerLookup()}
_ANY = TypeLookup()


def lookup_in(group: Group) -> TypeLookup:
    """What looks things up in groups of this one's type."""
    return _BY_TYPE.get(group.group_type, _ANY)
