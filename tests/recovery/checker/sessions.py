"""Sessions: a member that keeps its heartbeats is not expelled, however slow or absent the coordinator is.

What counts is when a request was appended: between its call and its append, or its answer where the append is not
known. A heartbeat without an answer keeps the session if it was appended. A member can send nothing before it has the
answer to its JoinGroup, so its first session counts from there, unless the client itself was silent and late to see it.

In a consumer group a commit restarts no session, and a member may be removed because it did not join or sync in time.

While the only broker is away, nothing can be appended: every member has a full session from its return on.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from coordinator_logic.errors import Error
from coordinator_logic.timing.sessions import NEVER_LATE_MS
from tests.recovery.checker.consumer_groups.story import ConsumerStory
from tests.recovery.checker.history import ONLY_BROKER, Function, Kind
from tests.recovery.checker.operations import (
    NS_PER_MS,
    Operation,
    Rule,
    Violation,
    grouped,
    lines_of,
    reconciling_groups,
)

OUTAGE_MS = 14_000
"""How long a fault of the only broker takes, at least, that surely was an outage: a session and twice the blur."""

OUTAGE_BLUR_MS = 4_000
"""For how long the broker may serve after the beginning of such a fault, and before its end."""

OF_MEMBERS = (Function.JOIN, Function.SYNC, Function.HEARTBEAT, Function.COMMIT)


class Contact(NamedTuple):
    """What restarts a session that is alive at ``reached`` (ns); the new one counts from ``since`` at the earliest."""

    since: float
    reached: float


def check_sessions(
    operations: Sequence[Operation], story: ConsumerStory, outages: Sequence[Contact]
) -> Iterator[Violation]:
    """Check every classic member that was told that it is unknown; ``outages`` as :func:`outages_in` returns them."""
    reconciling = reconciling_groups(operations)
    left = {(o.call.group, o.call.member) for o in operations if o.f is Function.LEAVE}
    members = grouped((o for o in operations if o.f in OF_MEMBERS and o.member), lambda o: (o.call.group, o.member))
    signs = {client: _signs_of_life(own) for client, own in grouped(operations, lambda o: o.call.client).items()}
    static_joins = grouped(
        (o for o in operations if o.joins and o.call.instance is not None),
        lambda o: (o.call.group, o.call.instance),
    )
    for (group, member), of_member in members.items():
        unknown = next((o for o in of_member if o.error is Error.UNKNOWN_MEMBER_ID), None)
        if unknown is None or (group, member) in left or story.is_late(member):
            continue
        before = [operation for operation in of_member if operation.called < unknown.called]
        earlier = [o for o in static_joins.get((group, unknown.call.instance), []) if o.called < unknown.returned]
        if _may_be_replaced(before, earlier):
            continue
        if group in reconciling:
            before = [operation for operation in before if operation.f is not Function.COMMIT]
        lived = _surely_lived(before, unknown, signs[unknown.call.client], outages)
        if lived is not None:
            what = f"{member} kept its session and was answered UNKNOWN_MEMBER_ID"
            yield Violation(Rule.LIVE_MEMBERS_STAY, group, what, lines_of(*lived, unknown))


def outages_in(operations: Sequence[Operation]) -> list[Contact]:
    """The outages of all brokers: they begin in the session that they restart."""
    faults = [o for o in operations if o.f is Function.FAULT and o.end is not None and ONLY_BROKER in o.answer.note]
    blur = OUTAGE_BLUR_MS * NS_PER_MS
    return [
        Contact(since=o.returned - blur, reached=o.called + blur)
        for o in faults
        if o.returned - o.called >= OUTAGE_MS * NS_PER_MS
    ]


def _may_be_replaced(before: Sequence[Operation], joins: Sequence[Operation]) -> bool:
    """Whether another process, or another start of this one, may have taken over a static member's place.

    ``joins``: those of its instance, until it was told that it is unknown. A join without an answer may have, under an
    id that nobody has seen.
    """
    own = next((o for o in reversed(before) if o.f is Function.JOIN and o.is_ok), None)
    return own is not None and any(o.member != own.member and o.returned > own.called for o in joins)


def _signs_of_life(own: Sequence[Operation]) -> list[float]:
    """When a client did something (ns), in order."""
    return sorted(moment for o in own for moment in (o.called, o.returned) if moment < inf)


def _surely_lived(
    before: Sequence[Operation], unknown: Operation, signs: Sequence[float], outages: Sequence[Contact]
) -> list[Operation] | None:
    """The requests that kept the member's session until it was unknown; None if it may have been expelled rightly.

    ``signs`` are the client's signs of life (ns).
    """
    join = next((o for o in reversed(before) if o.f is Function.JOIN and o.is_ok), None)
    if join is None or join.returned > unknown.called:
        return None
    session, rebalance = join.call.session_ms * NS_PER_MS, join.call.rebalance_ms * NS_PER_MS
    after = [operation for operation in before if operation.called >= join.returned]
    has_synced = any(o.f is Function.SYNC and o.is_ok for o in after)
    is_repeated = _is_repeated(join, before)
    if not has_synced and (is_repeated or unknown.appended - join.called >= rebalance):
        return None
    # A rebalance began after the last request that was accepted without one, at the earliest.
    settled = max((o.called for o in after if o.is_ok and o.f is not Function.COMMIT), default=join.called)
    if unknown.appended - settled >= rebalance:
        return None
    contacts = [operation for operation in after if _keeps_session(operation)]
    accepted = [index for index, operation in enumerate(contacts) if operation.is_ok]
    if accepted:
        # Whoever is accepted is a member: what was before does not matter.
        contacts = contacts[accepted[-1] :]
        alive_from = contacts[0].called
    elif is_repeated:
        return None
    else:
        contacts = [join, *contacts]
        alive_from = _earliest_answer(join, signs)
    further = [Contact(operation.called, operation.appended) for operation in contacts[1:]]
    return contacts if unknown.appended < lived_until(alive_from, session, [*further, *outages]) else None


def lived_until(alive_from: float, session: float, contacts: Iterable[Contact]) -> float:
    """Until when a session that counts from ``alive_from`` surely lasts (ns), if contacts restart it."""
    alive_until = alive_from + session
    for contact in sorted(contacts, key=lambda contact: contact.reached):
        if alive_from <= contact.reached < alive_until:
            alive_until = max(alive_until, contact.since + session)
    return alive_until


def _is_repeated(join: Operation, before: Sequence[Operation]) -> bool:
    """Whether the join may have been answered from a generation that had begun: then it restarts no session."""
    earlier = next((o for o in reversed(before) if o.f is Function.JOIN and o.called < join.called), None)
    return earlier is not None and (
        earlier.kind is Kind.INFO or (earlier.is_ok and earlier.answer.generation == join.answer.generation)
    )


def _earliest_answer(join: Operation, signs: Sequence[float]) -> float:
    """From when on the coordinator may have answered a join (ns): a client that is silent may not have seen it."""
    allowance = NEVER_LATE_MS * NS_PER_MS
    awake = [sign for sign in signs if join.called <= sign <= join.returned]
    last = next((sign for sign, following in pairwise(awake) if following - sign > allowance), join.returned)
    return max(join.called, last - allowance)


def _keeps_session(operation: Operation) -> bool:
    """Whether the request restarts the session wherever it takes effect: a SyncGroup of a Stable group does not."""
    if operation.f is Function.HEARTBEAT:
        return operation.is_ok or operation.error is Error.REBALANCE_IN_PROGRESS or _was_appended(operation)
    return operation.f is Function.COMMIT and operation.is_ok


def _was_appended(operation: Operation) -> bool:
    return operation.kind is Kind.INFO and operation.answer.appended > 0
