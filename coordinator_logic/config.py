"""The protocol's configuration, with Kafka's keys and Kafka's defaults.

The keys are those of a broker's ``server.properties`` and mean what Kafka's documentation says in "Broker Configs". The
options with a docstring have no counterpart in a broker.
"""

from enum import Enum
from typing import Annotated

import msgspec

from coordinator_logic.assignors.server import SERVER_ASSIGNORS
from coordinator_logic.messages.base import JobEpoch

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member may wait for its first join to complete. Kafka has the same constant."""


LOGIC_VERSION = 5
"""What the results of a batch look like. Since version 1, an entry of the journal says whether it ends its turn; since
version 2, a transaction whose end never comes is aborted; since version 3, responses and records of the directory name
the change that the directory shows; since version 4, the directory has the sizes of large groups; since version 5, a
group does a bounded share of the work of matching topics with patterns in a time."""

FIRST_LOGIC_VERSION_ABORTING_TRANSACTIONS = 2
FIRST_LOGIC_VERSION_NAMING_DIRECTORY_CHANGES = 3
FIRST_LOGIC_VERSION_WITH_SIZES_IN_THE_DIRECTORY = 4
FIRST_LOGIC_VERSION_BOUNDING_PATTERNS = 5


class MigrationPolicy(Enum):
    """Which way a group with members may change its type: Kafka's values of ``group.consumer.migration.policy``."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        """Whether a classic group becomes a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def downgrades(self) -> bool:
        """Whether a consumer group becomes a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


class CoordinatorConfig(msgspec.Struct, frozen=True, rename=lambda name: name.replace("_", "."), kw_only=True):
    """Configuration of the coordinator; times in milliseconds unless the key says otherwise."""

    group_min_session_timeout_ms: Annotated[int, msgspec.Meta(ge=1)] = 6_000
    group_max_session_timeout_ms: Annotated[int, msgspec.Meta(ge=1)] = 1_800_000
    group_initial_rebalance_delay_ms: Annotated[int, msgspec.Meta(ge=0)] = 3_000
    group_max_size: Annotated[int, msgspec.Meta(ge=1)] = 2**31 - 1
    group_consumer_session_timeout_ms: Annotated[int, msgspec.Meta(ge=1)] = 45_000
    group_consumer_min_session_timeout_ms: Annotated[int, msgspec.Meta(ge=1)] = 45_000
    group_consumer_max_session_timeout_ms: Annotated[int, msgspec.Meta(ge=1)] = 60_000
    group_consumer_heartbeat_interval_ms: Annotated[int, msgspec.Meta(ge=1)] = 5_000
    group_consumer_min_heartbeat_interval_ms: Annotated[int, msgspec.Meta(ge=1)] = 5_000
    group_consumer_max_heartbeat_interval_ms: Annotated[int, msgspec.Meta(ge=1)] = 15_000
    group_consumer_max_size: Annotated[int, msgspec.Meta(ge=1)] = 2**31 - 1
    group_consumer_assignors: str = "uniform,range"
    group_consumer_assignment_interval_ms: Annotated[int, msgspec.Meta(ge=0)] = 1_000
    group_consumer_min_assignment_interval_ms: Annotated[int, msgspec.Meta(ge=0)] = 0
    group_consumer_max_assignment_interval_ms: Annotated[int, msgspec.Meta(ge=0)] = 15_000
    group_consumer_regex_refresh_interval_ms: Annotated[int, msgspec.Meta(ge=10_000)] = 600_000
    group_consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    offset_metadata_max_bytes: Annotated[int, msgspec.Meta(ge=0)] = 4_096
    offsets_retention_minutes: Annotated[int, msgspec.Meta(ge=1)] = 10_080
    offsets_retention_check_interval_ms: Annotated[int, msgspec.Meta(ge=1)] = 600_000
    transactional_id_expiration_ms: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)] = 604_800_000

    group_consumer_reconciling_heartbeat_interval_ms: Annotated[int, msgspec.Meta(ge=1)] = 1_000
    """Not a key of Kafka's. How often a member of the consumer group protocol sends heartbeats while its group changes,
    if that is more often than its heartbeat interval: a member learns of its next step from a heartbeat. A broker's
    members keep their interval. The job raises it to two intervals of its batches, in which a heartbeat is answered."""

    expiry_allowance_ms: Annotated[int, msgspec.Meta(ge=0)] = 500
    """Not a key of Kafka's. How long after its deadline a member is expelled at the earliest, if no request follows.

    It covers records that are appended while a batch is planned, and clock skew between broker and driver.
    """

    late_answer_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Not a key of Kafka's; the job sets it. How long after a batch the next one may start before the answers of the
    first count as late, see :mod:`coordinator_logic.timing.sessions`. None: no answer counts as late."""

    group_max_identifier_bytes: Annotated[int, msgspec.Meta(ge=1)] = 1_024
    """Not a key of Kafka's. The longest client id, client host, instance id, protocol type and protocol name, in UTF-8.

    A member's identifiers are in its group several times and in its group's journal with every change. Kafka's wire
    protocol allows 32,767 bytes; what clients use has some 200.
    """

    group_max_protocols: Annotated[int, msgspec.Meta(ge=1)] = 32
    """Not a key of Kafka's. The most protocols that a member may list; Kafka's clients list up to 4."""

    group_max_metadata_bytes: Annotated[int, msgspec.Meta(ge=0)] = 1_048_576
    """Not a key of Kafka's. A member's longest metadata for one protocol; Kafka Streams sends hundreds of kB."""

    group_max_assignment_bytes: Annotated[int, msgspec.Meta(ge=0)] = 1_048_576
    """Not a key of Kafka's. The longest assignment of a member."""

    group_max_pending_member_ids: Annotated[int, msgspec.Meta(ge=1)] = 10_000
    """Not a key of Kafka's. The most member ids of a group that were handed out and are not used yet.

    An id that is not used expires after the session timeout that its client asked for.
    """

    group_max_bytes: Annotated[int, msgspec.Meta(ge=1)] = 16_777_216
    """Not a key of Kafka's. The size of all members together: their identifiers, protocols and assignments, and the
    member ids that were handed out and are not used yet. Offsets do not count: the stored group, with them, has at most
    64 MiB.

    The group is read and written with every request. A broker stores a group in one record, by default of up to 1 MiB.
    """

    requests_topic: str = "group-requests"
    """Not a key of Kafka's; the job sets it. The topic that FindCoordinator returns."""

    requests_partitions: Annotated[int, msgspec.Meta(ge=1)] = 4
    """Partitions of that topic; the job sets it. Kafka's counterpart is ``offsets.topic.num.partitions``."""

    job_epoch: JobEpoch = 0
    """Not a key of Kafka's; the job sets it. It grows with every start of the query, of this job or another one for
    these topics; 0 if that is not known. Journal entries and responses repeat it, so that a reader knows which start
    has written them."""

    logic_version: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Not a key of Kafka's; the job sets it to :data:`LOGIC_VERSION`. A batch that an earlier release has planned, or
    that is played again, has that of then, and so gives its old bytes; 0 is that of releases without it."""

    @property
    def server_assignors(self) -> list[str]:
        """The names in ``group.consumer.assignors``; the first is the default."""
        return [name.strip() for name in self.group_consumer_assignors.split(",")]

    @property
    def offsets_retention_ms(self) -> int:
        """``offsets.retention.minutes`` in milliseconds."""
        return self.offsets_retention_minutes * 60_000

    @property
    def aborts_transactions(self) -> bool:
        """Whether the coordinator itself ends a transaction after ``transactional.id.expiration.ms``."""
        return self.logic_version >= FIRST_LOGIC_VERSION_ABORTING_TRANSACTIONS

    @property
    def bounds_patterns(self) -> bool:
        """Whether a pattern's program, and the work of matching it in a time, have a bound."""
        return self.logic_version >= FIRST_LOGIC_VERSION_BOUNDING_PATTERNS

    def __post_init__(self) -> None:
        if self.group_min_session_timeout_ms > self.group_max_session_timeout_ms:
            raise ValueError(
                f"group.min.session.timeout.ms ({self.group_min_session_timeout_ms}) is greater than "
                f"group.max.session.timeout.ms ({self.group_max_session_timeout_ms})"
            )
        if unknown := [name for name in self.server_assignors if name not in SERVER_ASSIGNORS]:
            raise ValueError(f"group.consumer.assignors names {unknown[0]!r}; known: {', '.join(SERVER_ASSIGNORS)}")
