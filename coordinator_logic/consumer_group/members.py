"""A member of a consumer group, and the states of members and groups."""

from collections.abc import Iterable, Iterator
from enum import Enum

import msgspec

from coordinator_logic.assignors.server import Partitions

AssignedPartitions = dict[str, dict[int, int]]
"""By topic id and partition number, the member epoch at which the member got the partition; without empty topics."""


class MemberState(Enum):
    """How far a member is on the way to its target assignment."""

    STABLE = "stable"
    """It has its assignment, or does not know a newer target yet."""
    UNREVOKED_PARTITIONS = "unrevoked-partitions"
    """It must first revoke partitions; its epoch does not advance."""
    UNRELEASED_PARTITIONS = "unreleased-partitions"
    """It has reached the target's epoch, and waits for partitions that other members still hold."""


class GroupState(Enum):
    """A consumer group's state, derived from epochs and members; the value is its name on the wire."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class ConsumerMember(msgspec.Struct, frozen=True, array_like=True):
    """A member that speaks the newer protocol. ``rebalance_timeout_ms`` is how long it may take to revoke.

    ``assigned`` and ``pending_revocation`` are disjoint; the member holds the partitions of both.
    """

    member_id: str
    group_instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str = ""
    server_assignor: str | None = None
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: AssignedPartitions = {}
    pending_revocation: AssignedPartitions = {}

    def held_partitions(self) -> Iterator[tuple[str, int]]:
        """Yield every partition that no other member may get yet, as (topic id, partition)."""
        for held in (self.assigned, self.pending_revocation):
            for topic_id, partitions in held.items():
                for partition in partitions:
                    yield topic_id, partition

    def is_assigned_all(self, partitions: Partitions) -> bool:
        """Whether all these partitions are assigned to it."""
        return all(numbers <= self.assigned.get(topic_id, {}).keys() for topic_id, numbers in partitions.items())


def group_state(group_epoch: int, target_epoch: int, members: Iterable[ConsumerMember]) -> GroupState:
    """Derive a group's state (KIP-848, "Group States")."""
    remaining = list(members)
    if not remaining:
        return GroupState.EMPTY
    if group_epoch > target_epoch:
        return GroupState.ASSIGNING
    if all(member.state is MemberState.STABLE and member.epoch == target_epoch for member in remaining):
        return GroupState.STABLE
    return GroupState.RECONCILING
