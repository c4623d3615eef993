"""Why a rebalance began: the entries of one turn, and what was known of the members before it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from coordinator_logic import records
from coordinator_logic.apis import RESET_OFFSETS
from coordinator_logic.groups.classic.records import MemberAdded, MemberUpdated, StateChanged
from coordinator_logic.groups.consumer.records import ConsumerMemberChanged, GroupEpochBumped
from coordinator_logic.records import JournalEntry, MemberRemoved, RequestCause, StaticMemberReplaced, TimerCause
from streaming.explain.story.model import Cause, Evidence, Trigger
from streaming.explain.story.roster import KnownMember, updated

LEAVE_GROUP_FIRST_VERSION_WITH_REASON = 5
"""KIP-800."""

POLL_TIMEOUT_WORDS = "poll timeout"
"""In the reason that Java's consumer sends when ``max.poll.interval.ms`` has passed (KIP-800)."""

GIVEN_ID_WORDS = "need to re-join with the given member-id"
"""How the reason of a first join begins that was sent again, with the member id of the answer (KIP-394)."""

METADATA_WORDS = "cached metadata has changed"
"""In the reason that Java's leader sends when the partitions of a subscribed topic have changed (KIP-800)."""


TOPICS_CHANGED_WORDS = (
    "the topics that it subscribes to have changed",
    "its topics have changed",
    "patterns match other topics",
)
"""How the reason of a new group epoch begins that no member has caused."""

EXPIRIES_OF_CONSUMER_GROUPS = {
    "revocation": Trigger.DID_NOT_REVOKE,
    "member-join": Trigger.DID_NOT_REJOIN,
    "member-sync": Trigger.DID_NOT_SYNC,
}
"""By the timer that has removed a member of a consumer group."""

LONGEST_USUAL_SESSION_MS = 45_000
"""Kafka's default of ``group.consumer.session.timeout.ms``, for members whose session the journal does not name."""


def is_reset(cause: records.Cause) -> bool:
    """Whether an operator's ResetOffsets made a change."""
    return isinstance(cause, RequestCause) and cause.api == RESET_OFFSETS.name


class KnownBefore(NamedTuple):
    """What was known before a turn. ``job_began`` is when the newest start of the coordinator's query wrote first;
    ``is_complete`` says whether ``members`` are all."""

    members: Mapping[str, KnownMember]
    leader: str | None
    job_began: int | None
    is_complete: bool


def evidence_of(entries: Sequence[JournalEntry]) -> list[Evidence]:
    """The entries as evidence."""
    return [Evidence(one.incarnation, one.sequence, one.timestamp, type(one.record).__name__) for one in entries]


def causes_of(turn: Sequence[JournalEntry], known: KnownBefore) -> list[Cause]:
    """The possible causes of the rebalance that the last entry of a turn began, the most probable one first.

    ``turn`` has all entries of that turn until then: the last one is a :class:`StateChanged`, or in a consumer group a
    :class:`GroupEpochBumped`.
    """
    changed = turn[-1].record
    assert isinstance(changed, StateChanged | GroupEpochBumped)
    evidence = evidence_of(turn)
    found = [
        Cause(trigger, is_certain, member, text, evidence)
        for trigger, is_certain, member, text in _guesses(turn, changed.reason, known)
    ]
    return found or [Cause(Trigger.OTHER, True, None, changed.reason, evidence)]


_Guess = tuple[Trigger, bool, str | None, str]


def _guesses(turn: Sequence[JournalEntry], reason: str, known: KnownBefore) -> Iterator[_Guess]:
    cause = turn[-1].cause
    if reason.startswith("the group became a classic group"):
        yield Trigger.TYPE_CHANGED, True, None, reason
        return
    if isinstance(cause, RequestCause) and is_reset(cause):
        yield Trigger.OFFSETS_RESET, True, None, f"{cause.client_id} at {cause.client_host}: {reason}"
        return
    for entry in turn[:-1]:
        match entry.record:
            case MemberAdded(member_id=member_id):
                yield Trigger.MEMBER_JOINED, True, member_id, _first_join(member_id, reason)
                return
            case StaticMemberReplaced(new_member_id=member_id):
                yield Trigger.STATIC_MEMBER_RETURNED, True, member_id, reason.replace(f" as {member_id}", "", 1)
                return
            case MemberRemoved() as removed:
                yield from _of_removal(removed, entry, known)
                return
            case MemberUpdated() as update:
                yield from _of_update(update, reason, known)
                return
            case ConsumerMemberChanged() as changed if changed.member_id not in known.members:
                yield from _of_unknown_member(changed.member_id, known)
                return
            case ConsumerMemberChanged() as changed if reason.startswith(f"member {changed.member_id} "):
                yield _of_change(changed, reason, known.members[changed.member_id])
                return
    if isinstance(turn[-1].record, GroupEpochBumped) and reason.startswith(TOPICS_CHANGED_WORDS):
        yield Trigger.TOPIC_CHANGED, True, None, reason
    elif isinstance(cause, RequestCause) and cause.api == "JoinGroup":
        yield from _of_unchanged_join(cause.member_id, reason, known)


def _first_join(member_id: str, reason: str) -> str:
    what, colon, said = _without_subject(reason, member_id).partition(": ")
    return what if said.startswith(GIVEN_ID_WORDS) else f"{what}{colon}{said}"


def _without_subject(reason: str, member_id: str) -> str:
    """A reason of the coordinator's without the member that it is about, which the cause names."""
    return reason.removeprefix("member ").removeprefix("leader ").removeprefix(f"{member_id} ")


def _of_unknown_member(member_id: str, known: KnownBefore) -> Iterator[_Guess]:
    """A member of a consumer group has told its subscription for the first time, as far as the journal goes back."""
    yield Trigger.MEMBER_JOINED, known.is_complete, member_id, "joined"
    if not known.is_complete:
        text = "it may have been a member before, with other topics: the journal does not reach back so far"
        yield Trigger.SUBSCRIPTION_CHANGED, False, member_id, text


def _of_removal(removed: MemberRemoved, entry: JournalEntry, known: KnownBefore) -> Iterator[_Guess]:
    member_id, cause = removed.member_id, entry.cause
    member = known.members.get(member_id)
    if isinstance(cause, TimerCause):
        yield from _of_expiry(removed, entry, known)
    elif member is not None and cause.client_id != member.client_id:
        who = f"{cause.client_id} at {cause.client_host}"
        yield Trigger.REMOVED_BY_ANOTHER, True, member_id, f"{who} removed it: {removed.reason}"
    elif POLL_TIMEOUT_WORDS in removed.reason:
        yield Trigger.POLL_TIMEOUT, True, member_id, removed.reason
    elif cause.version >= LEAVE_GROUP_FIRST_VERSION_WITH_REASON and removed.reason != "left":
        yield Trigger.MEMBER_LEFT, True, member_id, removed.reason
    else:
        yield Trigger.MEMBER_LEFT, False, member_id, "its client gave no reason"
        yield (
            Trigger.POLL_TIMEOUT,
            False,
            member_id,
            "a client also leaves when its max.poll.interval.ms has passed, and this one gives no reasons",
        )


def _of_expiry(removed: MemberRemoved, entry: JournalEntry, known: KnownBefore) -> Iterator[_Guess]:
    member_id = removed.member_id
    assert isinstance(entry.cause, TimerCause)
    member = known.members.get(member_id)
    if removed.reason.startswith("did not sync"):
        yield Trigger.DID_NOT_SYNC, True, member_id, removed.reason
    elif removed.reason.startswith("it did not"):
        yield EXPIRIES_OF_CONSUMER_GROUPS.get(entry.cause.timer, Trigger.OTHER), True, member_id, removed.reason
    elif removed.reason.startswith("its first join"):
        yield Trigger.FIRST_JOIN_TOO_SLOW, True, member_id, removed.reason
    else:
        timeout = 0 if member is None else member.session_timeout_ms
        silence = "" if not timeout else f": no request of it for {timeout / 1000:g} s"
        began = known.job_began
        was_away = began is not None and entry.timestamp - began <= 2 * (timeout or LONGEST_USUAL_SESSION_MS)
        yield Trigger.SESSION_EXPIRED, not was_away, member_id, f"{removed.reason}{silence}"
        if was_away:
            yield (
                Trigger.COORDINATOR_AWAY,
                False,
                member_id,
                "the coordinator had just started: the client may not have reached it in time",
            )


def _of_update(update: MemberUpdated, reason: str, known: KnownBefore) -> Iterator[_Guess]:
    member_id, text = update.member_id, _without_subject(reason, update.member_id)
    before, is_leader = known.members.get(member_id), _is_leader(member_id, reason, known)
    after = None if before is None else updated(before, update)
    if before is None:
        yield Trigger.METADATA_CHANGED, False, member_id, text
        missing = "the journal does not reach back to the topics that it had before"
        yield Trigger.SUBSCRIPTION_CHANGED, False, member_id, missing
    elif after is None or before.topics is None or after.topics is None:
        yield Trigger.METADATA_CHANGED, True, member_id, text
    elif before.topics != after.topics:
        yield Trigger.SUBSCRIPTION_CHANGED, True, member_id, _difference(before.topics, after.topics)
    elif after.owned < before.owned:
        yield Trigger.PARTITIONS_GIVEN_UP, True, member_id, text
    elif is_leader and METADATA_WORDS in reason:
        yield Trigger.TOPIC_CHANGED, True, member_id, text
    elif is_leader:
        yield Trigger.METADATA_CHANGED, False, member_id, text
        yield _topic_changed(member_id)
    else:
        yield Trigger.METADATA_CHANGED, True, member_id, text


def _is_leader(member_id: str, reason: str, known: KnownBefore) -> bool:
    return member_id == known.leader or reason.startswith(f"leader {member_id} ")


def _of_change(changed: ConsumerMemberChanged, reason: str, before: KnownMember) -> _Guess:
    topics = frozenset(changed.subscribed_topic_names)
    is_same = topics == before.topics
    text = _without_subject(reason, changed.member_id) if is_same else _difference(before.topics or frozenset(), topics)
    return Trigger.SUBSCRIPTION_CHANGED, True, changed.member_id, text


def _difference(before: frozenset[str], after: frozenset[str]) -> str:
    signs = [f"+{topic}" for topic in sorted(after - before)] + [f"-{topic}" for topic in sorted(before - after)]
    return ", ".join(signs)


def _of_unchanged_join(member_id: str, reason: str, known: KnownBefore) -> Iterator[_Guess]:
    text = _without_subject(reason, member_id)
    if METADATA_WORDS in reason:
        yield Trigger.TOPIC_CHANGED, True, member_id, text
    elif _is_leader(member_id, reason, known):
        yield Trigger.LEADER_REJOINED, False, member_id, text
        yield _topic_changed(member_id)
    else:
        yield Trigger.OTHER, True, member_id, text


def _topic_changed(member_id: str) -> _Guess:
    text = "a leader also rejoins when a topic of its subscription has other partitions; it gave no reason"
    return Trigger.TOPIC_CHANGED, False, member_id, text
