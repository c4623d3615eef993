"""The interface of a type of group: what it does in a turn, and the tables in which the types are found.

The model is the interface ``Group`` of Kafka's group coordinator. What follows from a group's data alone is in
:class:`~coordinator_logic.group.part.GroupPart`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from coordinator_logic.apis import APIS, Api
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.deleted_topics import DeletedTopics
from coordinator_logic.errors import Error, Refusal
from coordinator_logic.events import Request
from coordinator_logic.group import Group
from coordinator_logic.group.part import FORMATIONS, PARTS, GroupPart
from coordinator_logic.group.record import Record, add_records
from coordinator_logic.group.timer import Timer
from coordinator_logic.handler import HANDLERS, Handler
from coordinator_logic.messages import TopicDescription
from coordinator_logic.turn import Turn

Answer = Callable[[Turn, Request, Any], bool]
"""Answers a request to a group of the type; False leaves the request to the API's own handler."""


class Formation(NamedTuple):
    """A record that makes a group one of the type, and how: ``form(part before, record, timestamp)``."""

    record: type[Record]
    form: Callable[[GroupPart, Any, int], GroupPart]


class GroupType(ABC):
    """A type of group."""

    part: ClassVar[type[GroupPart]]
    """The data of a group of the type; its ``type_name`` is the type's name."""
    formation: ClassVar[Formation | None] = None
    """How a group that exists becomes one of the type; None if only new groups are of it."""
    handlers: ClassVar[Sequence[tuple[Api[Any, Any], Handler]]] = ()
    """The APIs that belong to the type. Their handlers also answer for a group that does not exist or is of another
    type."""
    answers: ClassVar[Mapping[str, Answer]] = {}
    """What groups of the type answer to APIs that belong to another type, by the API's name."""

    def settings(self, config: CoordinatorConfig) -> Mapping[str, range]:
        """The configuration that a group of the type can have, by name: the values that the coordinator allows."""
        return {}

    def default_settings(self, config: CoordinatorConfig) -> Mapping[str, int]:
        """The coordinator's values for the names of :meth:`settings`."""
        return {}

    def check_settings(self, values: Mapping[str, int], config: CoordinatorConfig) -> str | None:
        """Why a group cannot have these values together; None if it can."""
        return None

    def note_commit(self, turn: Turn, member_id: str) -> None:
        """React to a commit of a member that was accepted."""
        return

    def learn_topics(self, turn: Turn, described: Sequence[TopicDescription]) -> Error:
        """Remember topics that appeared or changed, as far as they matter to the group."""
        return Error.NONE

    def forget_topics(self, turn: Turn, deleted: DeletedTopics) -> None:
        """Forget topics that were deleted. The offsets of the topics are deleted already."""
        return

    @abstractmethod
    def restart_members(self, turn: Turn, because: str) -> None:
        """Make every member give up its partitions and fetch its offsets again: they were reset."""

    @abstractmethod
    def fire(self, turn: Turn, timer: Timer) -> None:
        """Carry out the effect of a timer, which is no longer among the group's timers.

        A timer of another type, which the group was before, has no effect.
        """

    @abstractmethod
    def load(self, turn: Turn) -> None:
        """Give a group that was folded from its journal its working memory: sessions and timers begin now."""


class Conversion(Protocol):
    """How a group of one type becomes one of another when a member of the other type joins."""

    def plan(self, group: Group, body: Any, config: CoordinatorConfig) -> GroupPart | Refusal:
        """What the group would become, or why it cannot; ``body`` is the request of the member. Changes nothing."""

    def carry_out(self, turn: Turn, planned: Any) -> None:
        """Make the turn's group what :meth:`plan` returned."""


TYPES: dict[str, GroupType] = {}
"""Every type, by its name. The first one is the type of a group of which nothing is known but its id."""

CONVERSIONS: dict[tuple[str, str], Conversion] = {}
"""Every conversion, by the names of the types before and after it."""


def register(group_type: GroupType) -> None:
    """Make a type known. Raises ``ValueError`` for a name of a type or of a record that is taken."""
    name = group_type.part.type_name
    if name in TYPES:
        raise ValueError(f"there is a type of group {name!r} already")
    PARTS[name] = group_type.part
    add_records(group_type.part.records)
    if group_type.formation is not None:
        add_records((group_type.formation.record,))
        FORMATIONS[group_type.formation.record] = group_type.formation.form
    for api, handler in group_type.handlers:
        APIS.setdefault(api.name, api)
        HANDLERS[api.name] = handler
    TYPES[name] = group_type


def type_of(group: Group) -> GroupType:
    """The type of a group."""
    return TYPES[group.part.type_name]
