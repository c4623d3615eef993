"""The member's public types: callbacks, configuration and events."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from coordinator_logic.messages import JoinedMember
from streaming.client.membership.membership_state import Generation


class MemberCallbacks(ABC):
    """The application's part of a member. All methods are called from ``poll``, ``leave`` or ``close``."""

    @abstractmethod
    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """Return the protocols that the member supports, the preferred one first, as (name, metadata for the leader).

        Called before every JoinGroup.
        """

    @abstractmethod
    def assign(self, protocol_name: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        """Return an assignment for each member id; called on the leader only.

        A member without an entry gets an empty assignment.
        """

    def on_elected(self, members: Sequence[JoinedMember]) -> None:  # noqa: B027
        """Called when this member leads a new generation, with all members of it.

        :meth:`assign` follows, unless the group keeps its assignment because a static leader has returned (KIP-814).
        """

    @abstractmethod
    def on_assigned(self, generation: Generation, assignment: bytes) -> None:
        """Called when a generation is stable, with this member's assignment."""

    def on_revoked(self, *, leaving: bool) -> None:  # noqa: B027
        """Called before the member rejoins, or leaves (``leaving``), while its assignment is still valid.

        Before a rejoin, give up what the next generation may assign to others; a member of a cooperative protocol keeps
        its assignment and lists it in its metadata. Before leaving, give up everything.
        """

    def on_lost(self) -> None:  # noqa: B027
        """Called after the member was removed or fenced: other members may have its assignment already."""


class MemberEventKind(Enum):
    """The kinds of events that an observer receives."""

    JOINING = "joining"
    JOINED = "joined"
    ASSIGNED = "assigned"
    REJOIN_REQUESTED = "rejoin requested"
    LOST = "lost"
    LEFT = "left"
    FENCED = "fenced"


@dataclass(frozen=True)
class MemberEvent:
    """A change in a member's life. ``detail`` is a text for people; programs must not parse it."""

    kind: MemberEventKind
    group_id: str
    generation: Generation
    detail: str = ""


GroupProtocol = Literal["classic", "consumer"]
"""Kafka's values of ``group.protocol``: the classic protocol, or the consumer group protocol (KIP-848)."""

Observer = Callable[[MemberEvent], None]
"""Called with every event, from several threads, among them the one that reads answers: it must return quickly."""


@dataclass(frozen=True, kw_only=True)
class MemberConfig:
    """The settings of a member: Kafka's names and defaults, times in milliseconds. Raises ValueError.

    protocol_type: the group's type, for the protocol ``classic``.
    group_instance_id: makes the member static (KIP-345).
    session_timeout_ms, heartbeat_interval_ms: for the protocol ``classic``; otherwise the coordinator decides.
    rebalance_timeout_ms: how long a rebalance waits for this member, and the longest time between two polls (a
        consumer's ``max.poll.interval.ms``).
    group_protocol: see :mod:`streaming.client.membership.group_member`.
    group_remote_assignor, rack_id: for the protocol ``consumer``: the coordinator's assignor that this member asks for,
        and the rack of this member.
    """

    group_id: str
    protocol_type: str = "consumer"
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    group_protocol: GroupProtocol = "classic"
    group_remote_assignor: str | None = None
    rack_id: str | None = None

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_interval_ms < self.session_timeout_ms:
            raise ValueError(
                f"heartbeat_interval_ms ({self.heartbeat_interval_ms}) must be positive and less than "
                f"session_timeout_ms ({self.session_timeout_ms})"
            )
        if self.rebalance_timeout_ms <= 0:
            raise ValueError(f"rebalance_timeout_ms ({self.rebalance_timeout_ms}) must be positive")

    @property
    def is_static(self) -> bool:
        """Whether the member has an instance id, and so keeps its assignment while its process restarts (KIP-345)."""
        return self.group_instance_id is not None
