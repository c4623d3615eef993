"""The types of the rows in the tables of groups.

The columns have the names of the JSON contract. Every column is a field that only records change, so the rows of a
group's snapshot and those of its journal are the same.
"""

from datetime import datetime

import msgspec


class TableRow(msgspec.Struct, frozen=True, rename="camel"):
    """Base class of all rows. Times are in UTC."""


class GroupRow(TableRow, frozen=True):
    """A group.

    ``generation`` is the group epoch of a consumer group, and ``target_epoch`` the one that its target assignment
    belongs to; it is null in a classic group. ``known`` says how much of the group is known: ``all``; ``members`` if
    offsets from before the journal's first entry may be missing; ``offsets`` if the members are not known either, and
    with them the columns that are null then. A group whose stored state cannot be read is ``Quarantined``, and nothing
    else of it is known.
    """

    group_id: str
    incarnation: str | None = None
    state: str | None = None
    state_since: datetime | None = None
    generation: int | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    members: int | None = None
    offsets: int | None = None
    open_transactions: int | None = None
    sequence: int | None = None
    known: str = "all"
    group_type: str | None = None
    target_epoch: int | None = None


class MemberRow(TableRow, frozen=True):
    """A member.

    ``protocols`` are in its order of preference. ``subscribed_topics`` and ``assigned_partitions`` are null for another
    protocol type than ``consumer``, and if the member's bytes cannot be parsed. ``member_type`` is the protocol that it
    speaks: ``classic`` or ``consumer``. A member that speaks the consumer group protocol (KIP-848) has
    no protocols, and the session timeout of its group in place of one of its own.

    The columns after ``member_type`` are null in a classic group. ``member_state`` is ``stable``,
    ``unrevoked-partitions`` or ``unreleased-partitions``; ``revoking_partitions`` is how many partitions it has yet to
    revoke; ``waits_for`` are the members that hold partitions of its target.
    """

    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    is_leader: bool
    session_timeout_ms: int | None
    rebalance_timeout_ms: int
    protocols: list[str]
    subscribed_topics: list[str] | None
    assigned_partitions: int | None
    member_type: str
    member_epoch: int | None = None
    member_state: str | None = None
    rack_id: str | None = None
    subscribed_pattern: str | None = None
    server_assignor: str | None = None
    revoking_partitions: int | None = None
    target_partitions: int | None = None
    waits_for: list[str] | None = None


class AssignmentRow(TableRow, frozen=True):
    """A partition that a member of a group of consumers is assigned, or has yet to revoke.

    The columns after ``partition`` are of consumer groups: ``topic_id``; ``since_epoch``, the member's epoch when it
    got the partition; and ``is_revoking``. A topic that was deleted has its id for a name.
    """

    group_id: str
    member_id: str
    topic: str
    partition: int
    topic_id: str | None = None
    since_epoch: int | None = None
    is_revoking: bool = False


class TargetRow(TableRow, frozen=True):
    """A partition of the target assignment of a member of a consumer group.

    ``is_assigned``: whether the member has it. ``held_by`` is the other member that has it, or has yet to revoke it;
    null if there is none.
    """

    group_id: str
    member_id: str
    topic: str
    partition: int
    topic_id: str
    is_assigned: bool
    held_by: str | None


class OffsetRow(TableRow, frozen=True):
    """A committed offset, or, with a ``producer_id``, one that is pending until the producer's transaction ends.

    ``sequence`` is the number of the journal entry that committed it; null if an earlier release stored it.
    ``topic_id`` is the id of the topic as of the commit; null if the commit did not say it.
    """

    group_id: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    metadata: str
    committed_at: datetime
    expires_at: datetime | None
    producer_id: int | None
    sequence: int | None
    topic_id: str | None
