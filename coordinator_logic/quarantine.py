"""A quarantined group: its stored state cannot be read, and is kept until an operator drops it.

It answers every request COORDINATOR_NOT_AVAILABLE except the two that are made for it: ReadQuarantinedGroup and
DropQuarantinedGroup.
"""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.errors import Error
from coordinator_logic.events import Request, Response
from coordinator_logic.group import dead_group
from coordinator_logic.handlers import refusal
from coordinator_logic.messages import (
    DropQuarantinedGroupRequest,
    DropQuarantinedGroupResponse,
    ReadQuarantinedGroupRequest,
    ReadQuarantinedGroupResponse,
)
from coordinator_logic.records import JournalEntry, QuarantinedStateDropped
from coordinator_logic.sizes import LONGEST_REASON
from coordinator_logic.turn import Output, Turn

LONGEST_PAGE = 1024 * 1024
"""The largest page of the stored state that an answer holds, in bytes: an answer is a record of a topic."""


class QuarantinedStep(NamedTuple):
    """The result of a step: the responses to send and the journal's entries.

    ``refused`` is the number of requests that were answered COORDINATOR_NOT_AVAILABLE. If ``is_dropped``, the group no
    longer exists after the first ``handled`` requests, and the others are left to do.
    """

    responses: list[Response]
    journal: list[JournalEntry]
    refused: int
    handled: int
    is_dropped: bool


def step_quarantined(
    group_id: str, stored: bytes, why: str, requests: Sequence[Request], batch_time: int, config: CoordinatorConfig
) -> QuarantinedStep:
    """Answer requests until one drops the group.

    ``stored`` is the state that cannot be read, ``why`` the reason. ``requests`` are as for
    :func:`coordinator_logic.step.step`, and so is ``batch_time`` (ms since the epoch).
    """
    output, refused = Output(), 0
    for number, request in enumerate(requests, 1):
        place, address, body = request.place, request.address, request.body
        now = min(place.timestamp, batch_time + config.expiry_allowance_ms)
        # The incarnation of the unreadable group is not known: the entry's is the place of the request.
        group = dead_group(group_id, f"{place.partition}-{place.offset}")
        turn = Turn(group_id, group, now, request, config, output)
        if isinstance(body, ReadQuarantinedGroupRequest):
            turn.reply(address, _page(stored, why, body))
        elif isinstance(body, DropQuarantinedGroupRequest):
            turn.record(QuarantinedStateDropped(why, len(stored), body.reason[:LONGEST_REASON]))
            turn.end()
            turn.reply(address, DropQuarantinedGroupResponse())
            return QuarantinedStep(output.responses, output.journal, refused, number, is_dropped=True)
        else:
            error = Error.COORDINATOR_NOT_AVAILABLE
            turn.reply(address, refusal(address.api, body, address.version, error), error)
            refused += 1
    return QuarantinedStep(output.responses, output.journal, refused, len(requests), is_dropped=False)


def _page(stored: bytes, why: str, body: ReadQuarantinedGroupRequest) -> ReadQuarantinedGroupResponse:
    start, length = max(0, body.offset), min(max(0, body.length), LONGEST_PAGE)
    return ReadQuarantinedGroupResponse(
        reason=why,
        format_version=stored[0] if stored else -1,
        size=len(stored),
        data=stored[start : start + length],
    )
