"""What a request asked for, in words."""

from coordinator_logic.events import Request
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    RequestBody,
    ResetOffsetsRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)

SHOWN_OFFSETS = 3
SHOWN_CHARACTERS = 200
"""Of a name that a client has chosen, and that may be of any length."""

Place = tuple[str, int]
"""A topic and the number of a partition."""


def asked(body: RequestBody) -> str:
    """The request in words, without its sender."""
    match body:
        case OffsetCommitRequest():
            generation = _generation(body.generation_id_or_member_epoch)
            return f"a commit{generation} for {_listed(offsets_in(body))}"
        case TxnOffsetCommitRequest():
            return f"a commit in a transaction{_generation(body.generation_id)} for {_listed(offsets_in(body))}"
        case JoinGroupRequest():
            names = ", ".join(protocol.name for protocol in body.protocols)
            return f"a join with the protocols [{shortened(names)}]"
        case SyncGroupRequest():
            return f"a sync{_generation(body.generation_id)}"
        case HeartbeatRequest():
            return f"a heartbeat{_generation(body.generation_id)}"
        case ConsumerGroupHeartbeatRequest(member_epoch=epoch):
            return "a join" if epoch == 0 else "a leave" if epoch < 0 else f"a heartbeat of epoch {epoch}"
        case ResetOffsetsRequest():
            return f"a reset of {_listed(offsets_in(body))}"
        case _:
            return "a request"


def offsets_in(body: RequestBody) -> list[tuple[Place, int]]:
    """The partitions that a request commits or resets, with their offsets."""
    if isinstance(body, OffsetCommitRequest | TxnOffsetCommitRequest):
        commits = [(topic.name, one) for topic in body.topics for one in topic.partitions]
        return [((topic, one.partition_index), one.committed_offset) for topic, one in commits]
    if isinstance(body, ResetOffsetsRequest):
        return [((topic.name, one.partition_index), one.offset) for topic in body.topics for one in topic.partitions]
    return []


def member_in(body: RequestBody) -> str:
    """The member id that a request names; empty without one."""
    member_id = getattr(body, "member_id", "")
    return member_id if isinstance(member_id, str) else ""


def generation_in(body: RequestBody) -> int | None:
    """The generation or the member epoch that a request names; None without one."""
    for field in ("generation_id_or_member_epoch", "generation_id", "member_epoch"):
        generation = getattr(body, field, -1)
        if isinstance(generation, int) and generation >= 0:
            return generation
    return None


def instance_in(body: RequestBody) -> str | None:
    """The group instance id that a request names."""
    instance = getattr(body, "group_instance_id", None) or getattr(body, "instance_id", None)
    return instance if isinstance(instance, str) else None


def sender_of(request: Request) -> str:
    """Who sent a request, as ``client id at host``."""
    return f"{shortened(request.client_id)} at {shortened(request.client_host)}"


def shortened(text: str) -> str:
    """The beginning of a text that a client has chosen."""
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


def _listed(offsets: list[tuple[Place, int]]) -> str:
    shown = [f"{shortened(topic)}-{number} (offset {offset})" for (topic, number), offset in offsets[:SHOWN_OFFSETS]]
    more = len(offsets) - SHOWN_OFFSETS
    return (", ".join(shown) or "no partition") + (f" and {more} more" if more > 0 else "")


def _generation(generation: int) -> str:
    return f" of generation {generation}" if generation >= 0 else " without a generation"
