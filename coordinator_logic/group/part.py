"""The part of a group that its type decides: the data, and what follows from the data alone.

Each type has a struct that derives from :class:`GroupPart`. What a type does in a turn is in its
:class:`~coordinator_logic.groups.group_type.GroupType`. The model of both is the interface ``Group`` of Kafka's group
coordinator.

The structs are ``array_like`` and tagged with the type's name: a snapshot holds the tag and no field names. A new field
takes a new format, see :mod:`coordinator_logic.snapshot`.
"""

from collections.abc import Callable, Collection, Sequence
from functools import reduce
from importlib import import_module
from operator import or_
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import msgspec

from coordinator_logic.errors import Error, Refusal
from coordinator_logic.group.record import Record
from coordinator_logic.messages.offsets import TopicToCommit
from coordinator_logic.messages.transactions import TxnTopicToCommit
from coordinator_logic.states import IllegalTransition, State


class Commit(NamedTuple):
    """Who commits which partitions. ``epoch`` is the generation or the member epoch, negative without a member.

    ``version`` is that of OffsetCommit; None for offsets in a transaction.
    """

    member_id: str
    group_instance_id: str | None
    epoch: int
    topics: Sequence[TopicToCommit] | Sequence[TxnTopicToCommit]
    version: int | None


class GroupPart(msgspec.Struct, array_like=True, dict=True, forbid_unknown_fields=True):
    """The data of a group that depends on its type.

    ``generation`` is the group epoch in a type that has epochs. ``state_timestamp`` is the time of the last change of
    the state, ms since the epoch. The fields of this class and of its subclasses change only by records, except those
    that a subclass names as its working memory.
    """

    type_name: ClassVar[str] = ""
    """Kafka's name of the type, in lower case."""
    records: ClassVar[tuple[type[Record], ...]] = ()
    """The records that only this type has; a record that forms a group of the type is not among them."""

    state: State = State.EMPTY
    previous_state: State = State.DEAD
    state_timestamp: int = -1
    generation: int = 0
    protocol_type: str | None = None

    # ---- members -------------------------------------------------------------------------------------------

    @property
    def member_ids(self) -> Collection[str]:
        """The ids of the members."""
        raise NotImplementedError

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic; true if the topics of the members cannot be known."""
        raise NotImplementedError

    # ---- records -------------------------------------------------------------------------------------------

    def enter(self, state: State, timestamp: int) -> None:
        """Change the state, unless the group is in it already."""
        if state is not self.state:
            self.previous_state, self.state, self.state_timestamp = self.state, state, timestamp

    def end(self, group_id: str, timestamp: int) -> None:
        """Enter Dead: the group was deleted. Raises ``IllegalTransition`` for a group with members."""
        if self.state not in (State.EMPTY, State.DEAD):
            raise IllegalTransition(group_id, self.state, State.DEAD, ())
        self.enter(State.DEAD, timestamp)

    def apply(self, group_id: str, record: Record, timestamp: int) -> None:
        """Apply a record of this type, or of a member; ``timestamp`` is its entry's, ms since the epoch.

        Raises ``KeyError`` for a member that does not exist, and ``IllegalState`` or ``IllegalTransition`` (see
        :mod:`coordinator_logic.states`) for another record that does not fit.
        """
        raise NotImplementedError

    # ---- requests that concern any group -------------------------------------------------------------------

    def check_commit(self, commit: Commit) -> Error:
        """Check that the sender may commit: as a member of now, or while the group has no members."""
        raise NotImplementedError

    def check_fetch(self, member_id: str | None, epoch: int) -> Error:
        """Check that the sender may fetch offsets; ``epoch`` is negative without a member."""
        return Error.NONE

    def check_offset_deletion(self) -> Error:
        """Check that offsets of topics without a subscriber may be deleted (KIP-496)."""
        return Error.NONE

    def check_reset(self) -> Refusal | None:
        """Why the offsets cannot be reset now, although the group's members may be made to fetch them again."""
        return None

    @property
    def retention_base(self) -> int | None:
        """The start of the retention of offsets without a subscriber, ms since the epoch.

        0: the commit of each offset; None: nothing expires.
        """
        return 0

    # ---- snapshots -----------------------------------------------------------------------------------------

    @classmethod
    def stored_as(cls) -> Any:
        """The struct that a snapshot holds in place of this one, with its tag and its fields in order."""
        return cls

    @classmethod
    def restored(cls, stored: Any) -> Self:
        """The part of a group from the other struct that a snapshot holds. Raises ``UnreadablePart``."""
        raise NotImplementedError


PartT = TypeVar("PartT", bound=GroupPart)

PARTS: dict[str, type[GroupPart]] = {}
"""The struct of each type, by its name. The first one is that of a group of which nothing is known but its id."""

FORMATIONS: dict[type[Record], Callable[[GroupPart, Any, int], GroupPart]] = {}
"""How a record makes a group one of another type: ``form(part before, record, timestamp)``."""


def load_types() -> None:
    """Make the types of the registry known, if they are not yet."""
    # With the first group, not with the package: a client that only exchanges messages needs no types.
    import_module("coordinator_logic.groups")


def new_part() -> GroupPart:
    """The part of a group that was just created."""
    if not PARTS:
        load_types()
    return next(iter(PARTS.values()))()


def stored_parts() -> Any:
    """The union of what snapshots hold of each type."""
    load_types()
    return reduce(or_, (part.stored_as() for part in PARTS.values()))
