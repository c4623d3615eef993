"""The members of a group as its journal tells of them: those it has now, and the names of all that it had."""

from typing import NamedTuple

from coordinator_logic.embedded_protocols import ConsumerProtocolError, decode_subscription
from coordinator_logic.group.record import Record
from coordinator_logic.groups.classic.records import ClassicGroupFormed, MemberAdded, MemberUpdated, StateChanged
from coordinator_logic.groups.consumer.records import ConsumerGroupFormed, ConsumerMemberChanged
from coordinator_logic.messages import Protocol
from coordinator_logic.records import (
    GroupCreated,
    GroupDeleted,
    MemberRemoved,
    QuarantinedStateDropped,
    StaticMemberReplaced,
)
from coordinator_logic.states import State

NO_MEMBERS = (GroupCreated, GroupDeleted, QuarantinedStateDropped, ClassicGroupFormed, ConsumerGroupFormed)
"""The records after which a group has no member; those that it keeps are told of again."""


def leaves_no_member(record: Record) -> bool:
    """Whether a group has no member after a record, whichever it had before."""
    return isinstance(record, NO_MEMBERS) or (isinstance(record, StateChanged) and record.to_state == State.EMPTY.value)


class KnownMember(NamedTuple):
    """A member. ``session_timeout_ms`` is 0 for one that speaks the consumer group protocol (KIP-848): the coordinator
    decides its session.

    ``topics`` are those that it subscribes to by name, None if they cannot be known; ``owned`` are the partitions
    that it said it owns when it joined last.
    """

    client_id: str
    client_host: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    topics: frozenset[str] | None
    owned: frozenset[tuple[str, int]] = frozenset()
    pattern: str = ""


class Roster:
    """The members now, and the names of all members that there were."""

    def __init__(self) -> None:
        self.members: dict[str, KnownMember] = {}
        self.is_complete = False
        """Whether every member of the group is known."""
        self._names: dict[str, str] = {}
        self._identities: dict[str, frozenset[str]] = {}

    def name(self, member_id: str) -> str:
        """``client id at host`` of a member, its id if the journal does not name it."""
        return self._names.get(member_id, member_id)

    def client(self, member_id: str | None) -> str | None:
        """The same, None if the journal does not name it."""
        return self._names.get(member_id or "")

    def ids(self, wanted: str) -> frozenset[str]:
        """The ids of all members, also earlier ones, whose member id, group instance id or client id is ``wanted``."""
        found = {member_id for member_id, identities in self._identities.items() if wanted in identities}
        return frozenset({wanted, *found})

    def introduce(self, record: Record) -> None:
        """Learn what a record tells of names, before it changes the members."""
        match record:
            case MemberAdded() | ConsumerMemberChanged():
                self._names[record.member_id] = f"{record.client_id} at {record.client_host}"
                self._identities[record.member_id] = frozenset({record.client_id, record.group_instance_id or ""}) - {
                    ""
                }
            case StaticMemberReplaced(old_member_id=old, new_member_id=new):
                self._names[new] = self.name(old)
                self._identities[new] = self._identities.get(old, frozenset()) | {record.group_instance_id}
            case _ if leaves_no_member(record):
                self.is_complete = True

    def change(self, record: Record) -> None:
        """Change the members as a record does."""
        members = self.members
        match record:
            case MemberAdded():
                members[record.member_id] = _classic_member(record)
            case ConsumerMemberChanged():
                members[record.member_id] = _consumer_member(record)
            case MemberUpdated(member_id=member_id) if member_id in members:
                members[member_id] = updated(members[member_id], record)
            case StaticMemberReplaced(old_member_id=old, new_member_id=new) if old in members:
                members[new] = members.pop(old)
            case MemberRemoved(member_id=member_id):
                members.pop(member_id, None)
            case _ if leaves_no_member(record):
                members.clear()


def updated(member: KnownMember, record: MemberUpdated) -> KnownMember:
    """A member after it has rejoined with other protocols or timeouts."""
    topics, owned = subscription(record.protocols)
    return member._replace(
        session_timeout_ms=record.session_timeout_ms,
        rebalance_timeout_ms=record.rebalance_timeout_ms,
        topics=topics,
        owned=owned,
    )


def subscription(protocols: list[Protocol]) -> tuple[frozenset[str] | None, frozenset[tuple[str, int]]]:
    """The topics that a member subscribes to, None if it is no consumer, and the partitions that it owns."""
    try:
        found = decode_subscription(protocols[0].metadata) if protocols else None
    except ConsumerProtocolError:
        found = None
    return (None, frozenset()) if found is None else (frozenset(found.topics), frozenset(found.owned_partitions))


def _classic_member(record: MemberAdded) -> KnownMember:
    return KnownMember(
        record.client_id,
        record.client_host,
        record.group_instance_id,
        record.session_timeout_ms,
        record.rebalance_timeout_ms,
        *subscription(record.protocols),
    )


def _consumer_member(record: ConsumerMemberChanged) -> KnownMember:
    return KnownMember(
        record.client_id,
        record.client_host,
        record.group_instance_id,
        0 if record.classic is None else record.classic.session_timeout_ms,
        record.rebalance_timeout_ms,
        frozenset(record.subscribed_topic_names),
        pattern=record.subscribed_topic_regex,
    )
