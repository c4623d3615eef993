"""The story of a classic group. Times are ms since the epoch, by the group's own clock; durations are ms."""

from enum import StrEnum

import msgspec


class Trigger(StrEnum):
    """What began a rebalance. docs/explain.md says how each is recognised."""

    MEMBER_JOINED = "member joined"
    MEMBER_LEFT = "member left"
    POLL_TIMEOUT = "poll interval exceeded"
    REMOVED_BY_ANOTHER = "member removed by another client"
    SESSION_EXPIRED = "session expired"
    FIRST_JOIN_TOO_SLOW = "first join took too long"
    DID_NOT_SYNC = "member did not sync"
    SUBSCRIPTION_CHANGED = "subscription changed"
    PARTITIONS_GIVEN_UP = "cooperative member gave partitions up"
    METADATA_CHANGED = "member metadata changed"
    LEADER_REJOINED = "leader rejoined"
    TOPIC_CHANGED = "topic changed"
    STATIC_MEMBER_RETURNED = "static member returned"
    TYPE_CHANGED = "group changed its type"
    OFFSETS_RESET = "offsets reset by an operator"
    COORDINATOR_AWAY = "coordinator was away"
    OTHER = "other"


class Evidence(msgspec.Struct, frozen=True, rename="camel"):
    """An entry of the journal: its place among those of the group, its time and the type of its record."""

    incarnation: str
    sequence: int
    timestamp: int
    record: str


class Cause(msgspec.Struct, frozen=True, rename="camel"):
    """A possible cause of a rebalance. ``is_certain``: no other one fits the journal.

    ``member`` is the member id that caused it, null if none did; ``text`` gives the details in words, with the client's
    own reason where it sent one.
    """

    trigger: Trigger
    is_certain: bool
    member: str | None
    text: str
    evidence: list[Evidence]


class MemberChange(msgspec.Struct, frozen=True, rename="camel"):
    """A member that came or went. ``reason`` is null for one that came."""

    member: str
    name: str
    timestamp: int
    reason: str | None = None


class Moves(msgspec.Struct, frozen=True, rename="camel"):
    """Partitions in an assignment, and those that had another owner in the assignment before.

    ``least`` is how many had to change their owner for a balanced assignment to the same members; it takes no account
    of members that subscribe to different topics.
    """

    partitions: int
    moved: int
    least: int

    @property
    def needless(self) -> int:
        """How many moved without need."""
        return max(0, self.moved - self.least)


class Rebalance(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A rebalance. Of several ``causes`` the first is the most probable; a certain one stands alone or first.

    ``joined`` is when the generation began with its members, ``ended`` when the leader's assignment came or no member
    was left; null while that has not happened. ``is_interrupted``: another rebalance began before this one was
    complete. ``was_empty``: it began with the initial delay of an Empty group.
    """

    began: int
    causes: list[Cause]
    joined: int | None = None
    ended: int | None = None
    is_interrupted: bool = False
    was_empty: bool = False
    generation: int | None = None
    came: list[MemberChange] = []
    went: list[MemberChange] = []
    moves: Moves | None = None

    @property
    def cause(self) -> Cause:
        """The most probable cause."""
        return self.causes[0]


class Summary(msgspec.Struct, frozen=True, rename="camel"):
    """Figures of the story. ``flapping`` is the share of rebalances whose client caused another one within 10 minutes.

    ``busiest`` is the client, as ``client id at host``, that caused most rebalances, and ``busiest_count`` how many.
    """

    rebalances: int
    rebalances_an_hour: float
    not_stable_share: float
    flapping: float
    busiest: str | None
    busiest_count: int


class Story(msgspec.Struct, frozen=True, rename="camel"):
    """What happened to a group between its first and its last entry, and its state after that.

    ``is_complete``: the story begins with the group's creation. Otherwise the members and the assignment at its
    beginning are not known. ``epochs``: it is, or was, a consumer group (KIP-848), whose epochs are not told here.
    """

    group_id: str
    first: int
    last: int
    is_complete: bool
    epochs: bool
    state: str
    state_since: int
    members: list[str]
    rebalances: list[Rebalance]
    summary: Summary
