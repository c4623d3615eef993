"""What a member of a group is made with and tells of: callbacks, configuration, events."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from coordinator_logic.messages import JoinedMember
from streaming.client.membership import Generation


class MemberCallbacks(ABC):
    """What a member brings to its group. All methods are called by ``poll``, ``leave`` or ``close``."""

    @abstractmethod
    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """The protocols it can follow, the preferred one first, each with metadata for the leader.

        Asked for at every JoinGroup.
        """

    @abstractmethod
    def assign(self, protocol_name: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        """As the leader: an assignment for each member id. A member that is not named gets no bytes."""

    def on_elected(self, members: Sequence[JoinedMember]) -> None:  # noqa: B027
        """This member leads the generation that has begun.

        :meth:`assign` follows, unless the group keeps the assignment that it has because a static leader has only
        been away for a moment (KIP-814).
        """

    @abstractmethod
    def on_assigned(self, generation: Generation, assignment: bytes) -> None:
        """A generation has begun, and this is the member's part of it."""

    def on_revoked(self, *, leaving: bool) -> None:  # noqa: B027
        """The member, in good standing, is about to join again, or to leave.

        Before it joins, give up what the next generation may give to others; a cooperative protocol keeps what
        it has, and says so in the metadata. Before it leaves, give up everything.
        """

    def on_lost(self) -> None:  # noqa: B027
        """The member was expelled or fenced: what it had may be somebody else's already."""


class MemberEventKind(Enum):
    """What an observer is told of."""

    JOINING = "joining"
    JOINED = "joined"
    ASSIGNED = "assigned"
    REJOIN_REQUESTED = "rejoin requested"
    LOST = "lost"
    LEFT = "left"
    FENCED = "fenced"


@dataclass(frozen=True)
class MemberEvent:
    """Something that happened to a member; ``detail`` is for people."""

    kind: MemberEventKind
    group_id: str
    generation: Generation
    detail: str = ""


Observer = Callable[[MemberEvent], None]
"""Called from several threads, the client's reader among them: it must be quick."""


@dataclass(frozen=True, kw_only=True)
class MemberConfig:
    """A member's group and timeouts: Kafka's names, Kafka's defaults, milliseconds.

    ``rebalance_timeout_ms`` is how long a rebalance waits for this member, and how long it may go without polling
    (a consumer's ``max.poll.interval.ms``).
    """

    group_id: str
    protocol_type: str
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000

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
        """Whether the member has an instance id, and so keeps its place while its process restarts."""
        return self.group_instance_id is not None
