"""Responses to heartbeats of the newer consumer protocol that come after the client was answered with an error.

The heartbeat was carried out: it may have advanced the member's epoch, or assigned partitions. The member's next
heartbeat is answered with such a response, so that members make progress even when the job's batches take longer than
heartbeats wait.
"""

import time
from collections import OrderedDict
from typing import NamedTuple

from msgspec.structs import replace

from coordinator_logic.consumer_group.epochs import JOIN_EPOCH
from coordinator_logic.errors import Error
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

__all__ = ["LateResponses", "combined"]

MAX_MEMBERS = 10_000
KEPT_SECONDS = 60.0


class _Late(NamedTuple):
    """A response, the epoch of the heartbeat that it answers, and when it came."""

    response: ConsumerGroupHeartbeatResponse
    asked_epoch: int
    came_at: float


class LateResponses:
    """The late responses by group and member."""

    def __init__(self) -> None:
        self._responses: OrderedDict[tuple[str, str], _Late] = OrderedDict()

    def keep(self, heartbeat: ConsumerGroupHeartbeatRequest, response: ConsumerGroupHeartbeatResponse) -> None:
        """Keep a late response for the member's next heartbeat, if it says anything new."""
        epoch, error = heartbeat.member_epoch, Error(response.error_code)
        is_news = response.member_epoch != epoch or response.assignment is not None
        if not heartbeat.member_id or error.retriable or (error is Error.NONE and not is_news):
            return
        member = heartbeat.group_id, heartbeat.member_id
        earlier = self._responses.pop(member, None)
        if earlier is not None:
            response, epoch = combined(earlier.response, response), min(earlier.asked_epoch, epoch)
        self._responses[member] = _Late(response, epoch, time.monotonic())
        if len(self._responses) > MAX_MEMBERS:
            self._responses.popitem(last=False)

    def take(self, heartbeat: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse | None:
        """Remove what is kept for a member, and return it if it answers this heartbeat, too.

        That is so if the member has not got any later answer since: it has the epoch of the heartbeat that was answered
        late. A member that leaves takes nothing.
        """
        late = self._responses.pop((heartbeat.group_id, heartbeat.member_id), None)
        if late is None or time.monotonic() - late.came_at > KEPT_SECONDS or heartbeat.member_epoch < JOIN_EPOCH:
            return None
        return late.response if late.asked_epoch == heartbeat.member_epoch else None


def combined(
    earlier: ConsumerGroupHeartbeatResponse | None, later: ConsumerGroupHeartbeatResponse
) -> ConsumerGroupHeartbeatResponse:
    """The response to a client that receives two at once: the later one, with the earlier one's news.

    A response names the assignment only if it has changed since the response before it.
    """
    if earlier is None or later.error_code != Error.NONE or later.assignment is not None:
        return later
    return replace(later, assignment=earlier.assignment)
