"""What can be configured about the protocol: Kafka's keys, Kafka's defaults.

The keys are those of a broker's ``server.properties``; what they mean is in Kafka's documentation, section
"Broker Configs". The last three have no counterpart in a broker and say so.
"""

from typing import Annotated

import msgspec

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member may wait for its first join to complete. Constant in Kafka, too."""


class CoordinatorConfig(msgspec.Struct, frozen=True, rename=lambda name: name.replace("_", "."), kw_only=True):
    """Configuration of the coordinator; times in milliseconds unless the key says otherwise."""

    group_min_session_timeout_ms: Annotated[int, msgspec.Meta(ge=1)] = 6_000
    group_max_session_timeout_ms: Annotated[int, msgspec.Meta(ge=1)] = 1_800_000
    group_initial_rebalance_delay_ms: Annotated[int, msgspec.Meta(ge=0)] = 3_000
    group_max_size: Annotated[int, msgspec.Meta(ge=1)] = 2**31 - 1
    offset_metadata_max_bytes: Annotated[int, msgspec.Meta(ge=0)] = 4_096
    offsets_retention_minutes: Annotated[int, msgspec.Meta(ge=1)] = 10_080
    offsets_retention_check_interval_ms: Annotated[int, msgspec.Meta(ge=1)] = 600_000

    expiry_allowance_ms: Annotated[int, msgspec.Meta(ge=0)] = 500
    """Not Kafka's. How much longer than its deadline a batch waits before it expels a member: records that were
    appended while the batch was being planned, and clock skew between broker and driver, must not cost a
    living member its place."""

    requests_topic: str = "group-requests"
    """Not Kafka's. The topic that FindCoordinator names."""

    requests_partitions: Annotated[int, msgspec.Meta(ge=1)] = 4
    """Not Kafka's key (it is ``offsets.topic.num.partitions`` there): partitions of that topic."""

    @property
    def offsets_retention_ms(self) -> int:
        """``offsets.retention.minutes`` in milliseconds."""
        return self.offsets_retention_minutes * 60_000

    def __post_init__(self) -> None:
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise ValueError(
                f"group.min.session.timeout.ms ({self.group_min_session_timeout_ms}) is greater than "
                f"group.max.session.timeout.ms ({self.group_max_session_timeout_ms})"
            )
