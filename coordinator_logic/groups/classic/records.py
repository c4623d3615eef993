"""The records of what changes in a classic group, besides those that every group has."""

from typing import ClassVar

from coordinator_logic.group.record import Record
from coordinator_logic.messages.membership import Protocol
from coordinator_logic.states import State


class StateChanged(Record, frozen=True):
    """The group changed its state. For PreparingRebalance, ``reason`` says why the group rebalances."""

    changes_retention: ClassVar[bool] = True

    from_state: str
    to_state: str
    reason: str


class MemberAdded(Record, frozen=True):
    """A member joined for the first time. The first member of a group determines the protocol type."""

    changes_retention: ClassVar[bool] = True

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: list[Protocol]


class MemberUpdated(Record, frozen=True):
    """A member rejoined with other protocols or timeouts."""

    member_id: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: list[Protocol]


class LeaderElected(Record, frozen=True):
    """The group has a new leader; null if no member is left."""

    member_id: str | None


class GenerationStarted(Record, frozen=True):
    """A generation began, with the protocol that its members voted for; null if no member is left.

    No member is in a generation that begins with a reset of offsets.
    """

    changes_retention: ClassVar[bool] = True

    generation: int
    protocol_name: str | None


class AssignmentChanged(Record, frozen=True):
    """The leader assigned; a member that is not listed has an empty assignment."""

    assignments: dict[str, bytes]


class ClassicGroupFormed(Record, frozen=True):
    """The group, which was of another type, is a classic group from now on, without members and with generation 0.

    The records of its members and its generation follow if it goes on in the state ``state``.
    """

    changes_retention: ClassVar[bool] = True

    reason: str
    state: str = State.EMPTY.value
