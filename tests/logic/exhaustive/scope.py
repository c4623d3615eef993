"""How small a small group is: who can be in it, how long things take, how the search's clock moves."""

from dataclasses import dataclass, field

from coordinator_logic.config import NEW_MEMBER_JOIN_TIMEOUT_MS, CoordinatorConfig
from coordinator_logic.messages import Protocol
from coordinator_logic.partitioning import java_string_hash

GROUP_ID = "small-group"
UNIT_MS = NEW_MEMBER_JOIN_TIMEOUT_MS // 3
"""The clock moves by this much. Every timeout is a multiple of it, the one that cannot be configured included, so
that a deadline comes at every tick or at none, and no order of two deadlines that the timeouts allow is lost."""

LISTS = (
    [Protocol("range", b"metadata"), Protocol("sticky", b"metadata")],
    [Protocol("sticky", b"metadata"), Protocol("range", b"metadata")],
)
"""What a member can list: two protocols, each of them first, so that the vote can change."""


@dataclass(frozen=True)
class Scope:
    """The bounds of one search. Timeouts are in units of the search's clock.

    ``room`` is how many members and handed-out ids there can be at once, ``instances`` who can be static,
    ``lists`` how many of :data:`LISTS` members choose from. Without ``old_joins`` dynamic members join as version 4
    and later make them, in two requests. ``restarts`` lets the coordinator start anew at any time.
    ``ordered`` is explained in :mod:`.canonical`.
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
        """When the search begins (ms): so that the group's ticks of expiry coincide with its clock's."""
        return 1_000 * UNIT_MS + java_string_hash(GROUP_ID) % UNIT_MS
