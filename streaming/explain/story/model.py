"""The story of a group. Times are ms since the epoch, by the group's own clock; durations are ms."""

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
    DID_NOT_REJOIN = "member did not rejoin"
    DID_NOT_REVOKE = "member did not revoke its partitions"
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
    of members that subscribe to different topics. ``needless`` is how many moved without need.
    """

    partitions: int
    moved: int
    least: int
    needless: int


Partitions = dict[str, list[int]]
"""Numbers of partitions by topic, both sorted."""


class Share(msgspec.Struct, frozen=True, rename="camel"):
    """The partitions of a member before a rebalance and after it. Only members whose partitions changed have one."""

    member: str
    name: str
    before: Partitions
    after: Partitions


class Wait(msgspec.Struct, frozen=True, rename="camel"):
    """A member that the group waited for, what it was to do, and from when until when; null while it still waits.

    The journal has no entry of a member that rejoins unchanged. So of those that rejoined, only the last one is known,
    and those that did not.
    """

    member: str
    name: str
    what: str
    since: int
    until: int | None


class Rebalance(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A rebalance. Of several ``causes`` the first is the most probable; a certain one stands alone or first.

    ``members_before`` and ``members_after`` count the members at its two ends; null if the journal began later than the
    group, the second one also while the rebalance goes on.

    Of a classic group, ``joined`` is when the generation began with its members, and ``ended`` when the leader's
    assignment came or no member was left. Of a consumer group (KIP-848), a rebalance is what follows from a new group
    epoch: ``generation`` is that epoch, ``joined`` when its target assignment was computed, and ``ended`` when all
    members had reached it. Both are null while that has not happened. ``is_interrupted``: another rebalance began
    before this one was complete. ``was_empty``: it began with the initial delay of an Empty classic group.
    ``group_type`` is ``classic`` or ``consumer``.
    """

    began: int
    causes: list[Cause]
    group_type: str
    joined: int | None = None
    ended: int | None = None
    is_interrupted: bool = False
    was_empty: bool = False
    generation: int | None = None
    members_before: int | None = None
    members_after: int | None = None
    came: list[MemberChange] = []
    went: list[MemberChange] = []
    moves: Moves | None = None
    shares: list[Share] = []
    waited_for: list[Wait] = []

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


class Owner(msgspec.Struct, frozen=True, rename="camel"):
    """A member now, and its partitions; ``epoch`` is its member epoch in a consumer group, otherwise null."""

    member: str
    name: str
    partitions: Partitions
    epoch: int | None = None


class Now(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The group after its last entry.

    ``state`` is ``Unknown``, and ``since`` null, if the journal does not reach back to what tells it. Then it may also
    have further members: ``knows_members`` says whether ``members`` are all. ``waits_for`` are the members that it
    waits for, with what they are to do; one that has rejoined unchanged may be among them. ``deadline`` is when the
    group goes on without them, null if it waits for none or the journal does not say. The ends of sessions are never
    known: heartbeats are not journalled.
    """

    state: str
    since: int | None
    generation: int | None
    members: list[Owner]
    knows_members: bool
    waits_for: list[Wait]
    deadline: int | None


class RefusedRequest(msgspec.Struct, frozen=True, rename="camel"):
    """A request that was refused, and those like it: of the same client with the same error and generation.

    ``first`` and ``last`` are when the first and the last one were appended. ``error`` is the name of Kafka's error,
    ``text`` what was asked for and to what it lost. ``name`` is the sender, as ``client id at host``; ``member``,
    ``instance_id`` and ``generation`` (in a consumer group the member epoch) are those that the request names.
    ``lost_to`` is the member id that has what was asked for, if one has. ``partition`` and ``offset`` are the place of
    the first request in the topic of the requests, ``evidence`` the entries of the journal that made it refused.
    """

    first: int
    last: int
    count: int
    api: str
    error: str
    name: str
    member: str
    instance_id: str | None
    generation: int | None
    text: str
    lost_to: str | None
    partition: int
    offset: int
    evidence: list[Evidence]


class Refused(msgspec.Struct, frozen=True, rename="camel"):
    """The refused requests of a group, in the order of their first ones; no ordinary answers of a rebalance.

    ``since`` is from when on requests were read, null if none was. ``requests`` are all refused requests, ``commits``
    those that were to commit offsets; ``busiest`` is the client that sent most of them. ``notes`` say what is missing.
    """

    since: int | None
    refusals: list[RefusedRequest] = []
    requests: int = 0
    commits: int = 0
    busiest: str | None = None
    busiest_count: int = 0
    notes: list[str] = []


class Story(msgspec.Struct, frozen=True, rename="camel"):
    """What happened to a group from a time on, or from its first entry, up to its last one, and its state after that.

    A rebalance that went on at the beginning is told, too. ``is_complete``: the members at the beginning are known;
    otherwise the journal does not reach back so far. ``group_type`` is ``classic`` or ``consumer`` (KIP-848), as it is
    now, ``Unknown`` if the journal does not tell it. ``refused`` is null if the requests were not asked for.
    """

    group_id: str
    first: int
    last: int
    is_complete: bool
    group_type: str
    now: Now
    rebalances: list[Rebalance]
    summary: Summary
    refused: Refused | None = None
