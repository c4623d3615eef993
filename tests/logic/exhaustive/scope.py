"""The bounds of a search: the possible members, the timeouts and the unit of the clock."""

from dataclasses import dataclass, field

from coordinator_logic.config import NEW_MEMBER_JOIN_TIMEOUT_MS, CoordinatorConfig
from coordinator_logic.messages import Protocol
from coordinator_logic.partitioning import java_string_hash

GROUP_ID = "small-group"
UNIT_MS = NEW_MEMBER_JOIN_TIMEOUT_MS // 3
"""The step of the clock in ms. Every timeout is a multiple of it, also the constant one of new members.

Every deadline therefore coincides with a tick, and the search covers every order of deadlines that timeouts allow.
"""

LISTS = (
    [Protocol("range", b"metadata"), Protocol("sticky", b"metadata")],
    [Protocol("sticky", b"metadata"), Protocol("range", b"metadata")],
)
"""The protocol lists that members choose from: two protocols in both orders, so that the vote can change."""


@dataclass(frozen=True)
class Scope:
    """The bounds of one search. Timeouts are in units of the clock.

    Args:
        room: The maximum number of members and pending member ids at a time.
        instances: The instance ids of static members.
        lists: The number of :data:`LISTS` that members choose from.
        old_joins: Whether dynamic members can also join by one request, as before version 4 (KIP-394).
        restarts: Whether the coordinator can restart at any time.
        dynamic: Whether dynamic members can join.
        ordered: Whether the order of simultaneous timers distinguishes states, see :mod:`.canonical`.
    """

    room: int
    instances: tuple[str, ...] = ()
    session: int = 2
    rebalance: int = 1
    delay: int = 1
    lists: int = 1
    max_size: int = 2**31 - 1
    old_joins: bool = False
    restarts: bool = False
    dynamic: bool = True
    ordered: bool = True
    retention_minutes: int = 10_080
    config: CoordinatorConfig = field(init=False)

    def __post_init__(self) -> None:
        config = CoordinatorConfig(
            group_min_session_timeout_ms=UNIT_MS,
            group_max_session_timeout_ms=10 * UNIT_MS,
            group_initial_rebalance_delay_ms=self.delay * UNIT_MS,
            group_max_size=self.max_size,
            offset_metadata_max_bytes=0,
            offsets_retention_minutes=self.retention_minutes,
            offsets_retention_check_interval_ms=UNIT_MS,
            expiry_allowance_ms=0,
        )
        object.__setattr__(self, "config", config)

    @property
    def first_tick(self) -> int:
        """The start of the search, ms since the epoch; the group's expiry ticks are then ticks of the clock."""
        return 1_000 * UNIT_MS + java_string_hash(GROUP_ID) % UNIT_MS
