"""To what a refused request lost: the group as it was, and the entries of the journal that made it so."""

from typing import Any, NamedTuple

from coordinator_logic.errors import Error
from coordinator_logic.events import Request, Response
from coordinator_logic.group import Group
from coordinator_logic.messages import SyncGroupRequest, TxnOffsetCommitRequest
from coordinator_logic.records import JournalEntry, RequestCause
from streaming.contract.output.text import counted
from streaming.explain.refusals.asked import instance_in, member_in, offsets_in, shortened
from streaming.explain.refusals.group_types import lookup_in
from streaming.explain.refusals.past_group import PastGroup
from streaming.explain.story.words import clock

GENERATIONS = frozenset({Error.ILLEGAL_GENERATION, Error.STALE_MEMBER_EPOCH, Error.FENCED_MEMBER_EPOCH})


class Loss(NamedTuple):
    """To what a request lost: in words, the member id if it lost to a member, and the entries that show it."""

    text: str
    to: str | None = None
    entries: tuple[JournalEntry, ...] = ()


def loss_of(request: Request, response: Response, error: Error, past: PastGroup) -> Loss:
    """Why a group as it was refused a request; ``response`` is what it answers."""
    loss = _loss(request, response, error, past)
    owned = _owner(request, past)
    if owned is None or error not in (*GENERATIONS, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID):
        return loss
    (topic, number), owner = owned
    text = f"{loss.text}; {shortened(topic)}-{number} belongs to {_named(owner, past)}"
    return loss._replace(text=text, to=owner if loss.to is None else loss.to)


def _loss(request: Request, response: Response, error: Error, past: PastGroup) -> Loss:
    group, body = past.group, request.body
    if error in (Error.FENCED_INSTANCE_ID, Error.UNRELEASED_INSTANCE_ID):
        return _fenced(instance_in(body), error, past)
    if error is Error.UNKNOWN_MEMBER_ID or group is None:
        return _unknown(member_in(body), past)
    if error in GENERATIONS:
        return _other_generation(member_in(body), group, past)
    if error is Error.INCONSISTENT_GROUP_PROTOCOL:
        return _inconsistent(body, group)
    if error is Error.NON_EMPTY_GROUP:
        return Loss(f"the group has {counted(len(group.part.member_ids), 'member')}")
    if error is Error.INVALID_PRODUCER_EPOCH and isinstance(body, TxnOffsetCommitRequest):
        epoch = group.open_transactions[body.producer_id].producer_epoch
        return Loss(f"its producer epoch is {body.producer_epoch}, a newer producer has epoch {epoch}")
    message = getattr(response.body, "error_message", None)
    return Loss(shortened(message) if isinstance(message, str) and message else "the request itself is not valid")


def _fenced(instance: str | None, error: Error, past: PastGroup) -> Loss:
    owner = _member_of(instance, past.group)
    taken = past.taken.get(instance or "")
    when = "" if taken is None else f" at {clock(taken.timestamp)}"
    who = "another process" if owner is None else f"another process, {_taker(owner, taken, past)},"
    verb = "took" if error is Error.FENCED_INSTANCE_ID else "has"
    text = f"{who} {verb} its group instance id {shortened(instance or '')}{when}"
    return Loss(text, owner, () if taken is None else (taken,))


def _taker(owner: str, taken: JournalEntry | None, past: PastGroup) -> str:
    """The member that has an instance id: by the client that took it, which need not be the one that had it first."""
    cause = None if taken is None else taken.cause
    if not isinstance(cause, RequestCause):
        return _named(owner, past)
    return f"{shortened(cause.client_id)} at {shortened(cause.client_host)} (member {shortened(owner)})"


def _unknown(member_id: str, past: PastGroup) -> Loss:
    group = past.group
    if not member_id and group is not None:
        return Loss(f"it names no member, and the group has {counted(len(group.part.member_ids), 'member')}")
    end = past.gone.get(member_id)
    if end is not None:
        when = clock(end.entry.timestamp)
        taker = getattr(end.entry.record, "new_member_id", None)
        by = "" if taker is None else f" ({_named(taker, past)})"
        return Loss(f"it is no longer a member: {shortened(end.reason)}{by} at {when}", taker, (end.entry,))
    if group is None:
        deleted = past.ended
        if deleted is None:
            return Loss("the group does not exist")
        return Loss(f"the group was deleted at {clock(deleted.timestamp)}", None, (deleted,))
    return Loss("the journal has no such member")


def _other_generation(member_id: str, group: Group, past: PastGroup) -> Loss:
    began = past.generation_began
    since = "" if began is None else f" since {clock(began.timestamp)}"
    entries = () if began is None else (began,)
    return Loss(lookup_in(group).generation(group, member_id, since), None, entries)


def _inconsistent(body: Any, group: Group) -> Loss:
    protocol_type = group.part.protocol_type
    if body.protocol_type not in (None, protocol_type) and protocol_type is not None:
        return Loss(f"the group's protocol type is {protocol_type}, and not {shortened(body.protocol_type)}")
    if isinstance(body, SyncGroupRequest):
        return Loss(f"the group has chosen the protocol {lookup_in(group).chosen_protocol(group)}")
    common = ", ".join(sorted(lookup_in(group).common_protocols(group)))
    return Loss(f"the others have [{shortened(common)}] in common")


def _owner(request: Request, past: PastGroup) -> tuple[tuple[str, int], str] | None:
    """The first partition of a commit that has an owner, and the owner; None if none has, or it is not known."""
    wanted = [place for place, _ in offsets_in(request.body)]
    if not wanted or past.group is None:
        return None
    owners = lookup_in(past.group).owners(past.group)
    return next(((place, owners[place]) for place in wanted if place in owners), None)


def _member_of(instance: str | None, group: Group | None) -> str | None:
    return None if group is None or instance is None else lookup_in(group).member_of_instance(group, instance)


def _named(member_id: str, past: PastGroup) -> str:
    name = past.roster.client(member_id)
    shown = f"member {shortened(member_id)}"
    return shown if name is None else f"{shortened(name)} ({shown})"
