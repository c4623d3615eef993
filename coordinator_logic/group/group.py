"""A group: what every group has, whatever its type, and the part that its type decides.

A group has two kinds of fields. Its offsets, open transactions and configuration change only by a record
(:mod:`coordinator_logic.records`), and so does most of its part. Timers, clocks and the times of
:mod:`coordinator_logic.timing.sessions` are the group's working memory: the coordinator changes them directly,
snapshots keep them, the journal does not.

The structs are ``array_like``: a snapshot holds no field names. A new field takes a new format, see
:mod:`coordinator_logic.snapshot`.
"""

from collections.abc import Iterator
from functools import cached_property

import msgspec

from coordinator_logic.committed_offsets import CommittedOffset, Offsets
from coordinator_logic.group.part import GroupPart, PartT, new_part
from coordinator_logic.group.timer import Timer
from coordinator_logic.group.transactions import OpenTransaction, PendingOffsets
from coordinator_logic.states import State


class Group(msgspec.Struct, array_like=True, dict=True, forbid_unknown_fields=True):
    """A group.

    ``incarnation`` is the place in the log of the request that created it. A group that is deleted and created again
    counts its records from 1; the incarnation tells the two apart. ``clock`` is the latest time that the group has
    seen; it never goes back. ``open_transactions`` are by producer id. ``stored_offset_count`` is the number of offsets
    in a snapshot, and None elsewhere. ``join_answered_at`` is the time of the last batch if it answered the join of a
    member, else 0. No session counts from before ``sessions_from``. ``checked_until`` is the append time of the newest
    deadline check, ``next_check_at`` the batch time from which the group may ask for one again; both are 0 without one
    (:mod:`coordinator_logic.timing.deadline_checks`). ``append_distance`` is that of the newest request
    (:mod:`coordinator_logic.timing.clocks`). In a group that was rebuilt from its journal, ``applied_until`` are the
    offsets after the last requests that the journal names, by partition of the requests: requests before them are read
    again, and not applied again. ``configs`` are the group's own values, by name.
    """

    group_id: str
    incarnation: str
    part: GroupPart = msgspec.field(default_factory=new_part)
    offsets: Offsets = {}
    sequence: int = 0
    clock: int = 0
    timers: dict[str, Timer] = {}
    open_transactions: dict[int, OpenTransaction] = {}
    stored_offset_count: int | None = None
    join_answered_at: int = 0
    sessions_from: int = 0
    checked_until: int = 0
    next_check_at: int = 0
    append_distance: int = 0
    applied_until: dict[int, int] = {}
    configs: dict[str, int] = {}

    # ---- what its part says of it --------------------------------------------------------------------------

    @property
    def group_type(self) -> str:
        """Kafka's name of the group's type."""
        return self.part.type_name

    @property
    def state(self) -> State:
        """The group's state."""
        return self.part.state

    @property
    def generation(self) -> int:
        """The generation, or the group epoch."""
        return self.part.generation

    def part_as(self, kind: type[PartT]) -> PartT:
        """The part, for code that knows the group's type."""
        part = self.part
        assert isinstance(part, kind), f"group {self.group_id!r} is not a {kind.type_name} group"
        return part

    # ---- offsets -------------------------------------------------------------------------------------------

    @cached_property
    def pending_offsets(self) -> PendingOffsets:
        """The partitions with an offset in an open transaction; not a field, so snapshots do not hold it."""
        return PendingOffsets(self.open_transactions)

    def has_pending_offset(self, topic: str, partition: int) -> bool:
        """Whether an open transaction has an offset of the partition."""
        return (topic, partition) in self.pending_offsets

    def has_offset(self, topic: str, partition: int) -> bool:
        """Whether the partition has a committed offset, or one in an open transaction."""
        return partition in self.offsets.get(topic, ()) or self.has_pending_offset(topic, partition)

    def partitions_of(self, topic: str) -> dict[str, set[int]]:
        """The partitions of a topic with an offset, committed or pending, by the topic id that the offset has."""
        found: dict[str, set[int]] = {}
        for partition, committed in self.offsets.get(topic, {}).items():
            found.setdefault(committed.topic_id, set()).add(partition)
        for partition in self.pending_offsets.partitions(topic):
            for producer_id in self.pending_offsets.producers(topic, partition):
                pending = self.open_transactions[producer_id].offsets[topic][partition]
                found.setdefault(pending.topic_id, set()).add(partition)
        return found

    def committed_offsets(self) -> Iterator[tuple[str, int, CommittedOffset]]:
        """Yield every committed offset as (topic, partition, offset)."""
        for topic, partitions in self.offsets.items():
            for partition, committed in partitions.items():
                yield topic, partition, committed


def dead_group(group_id: str, incarnation: str) -> Group:
    """A Dead group in place of one that cannot be read."""
    group = Group(group_id, incarnation)
    group.part.state = State.DEAD
    return group
