"""The heartbeats of members of consumer groups (KIP-848) that wait for the coordinator.

A heartbeat in the log is carried out, however late: it may advance the member's epoch and assign partitions, or take
some back. So its client must learn the result before the coordinator hears of the client again as if nothing had
happened: a member that lists what it owns, without what it was assigned in the meantime, gives that back. Therefore a
client that repeats its heartbeat waits for the response to the one in the log, and its own goes on as the member that
has received it.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from coordinator_logic.errors import Error
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, ResponseEnvelope
from streaming.client.errors import CoordinatorError
from streaming.gateway.groups.channel import RequestEvent
from streaming.gateway.wire.loop_share import loop_time

MAX_MEMBERS = 100_000
KEPT_SECONDS = 60.0
"""How long a response is kept that no heartbeat has asked for."""
REPEAT_SECONDS = (10.0, 20.0)
"""How long after one heartbeat in the log a further one of the member is appended, first and later: it extends the
session, which is longer, of a member whose coordinator is slow."""

Decode = Callable[[ResponseEnvelope], ConsumerGroupHeartbeatResponse]


class MemberHeartbeats:
    """The heartbeats that a member has sent with one epoch, and what their responses say together.

    ``failure``: why the last event has no response.
    """

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.failure: CoordinatorError | None = None
        self._sent = 0
        self._open = 0
        self._sent_at = 0.0
        self._last: RequestEvent | None = None
        self._response: ConsumerGroupHeartbeatResponse | None = None
        self._came_at = 0.0
        self._settled = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether a response is missing."""
        return self._open > 0

    @property
    def is_appended(self) -> bool:
        """Whether the last event is known to be in the log."""
        return self._last is not None and self._last.appended

    @property
    def may_repeat(self) -> bool:
        """Whether another heartbeat should be appended although a response is missing."""
        first, later = REPEAT_SECONDS
        return loop_time() - self._sent_at >= (first if self._sent == 1 else later)

    def add(self, event: RequestEvent, decode: Decode) -> None:
        """Add an event that was sent."""
        self._sent += 1
        self._open += 1
        self._sent_at, self._last = loop_time(), event
        self._settled.clear()
        event.response.add_done_callback(lambda response: self._on_done(response, decode))

    async def settle(self, seconds: float) -> None:
        """Wait until no response is missing, for so many seconds at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._settled.wait()

    def pop_response(self) -> ConsumerGroupHeartbeatResponse | None:
        """Remove the response to all heartbeats, and return it."""
        response, self._response = self._response, None
        return response

    def pop_news(self) -> ConsumerGroupHeartbeatResponse | None:
        """Remove the response, and return it if it says what the member does not know yet."""
        response = self.pop_response()
        if response is None or time.monotonic() - self._came_at > KEPT_SECONDS:
            return None
        error = Error(response.error_code)
        is_news = response.member_epoch != self.epoch or response.assignment is not None
        return None if error.retriable or (error is Error.NONE and not is_news) else response

    def _on_done(self, response: "asyncio.Future[ResponseEnvelope]", decode: Decode) -> None:
        self._open -= 1
        failure = None if response.cancelled() else response.exception()
        if isinstance(failure, CoordinatorError):
            self.failure = failure
        elif failure is None and not response.cancelled():
            self._response = combined(self.epoch, self._response, decode(response.result()))
            self._came_at = time.monotonic()
        if not self._open:
            self._settled.set()


class AwaitedHeartbeats:
    """The heartbeats by group and member, those that were sent last at the end."""

    def __init__(self) -> None:
        self._members: OrderedDict[tuple[str, str], MemberHeartbeats] = OrderedDict()

    def find(self, heartbeat: ConsumerGroupHeartbeatRequest) -> MemberHeartbeats | None:
        """The earlier heartbeats of a member with the epoch that it still has.

        A member that has another epoch by now has received a later response, or leaves.
        """
        found = self._members.get((heartbeat.group_id, heartbeat.member_id))
        return found if found is not None and found.epoch == heartbeat.member_epoch else None

    def begin(self, heartbeat: ConsumerGroupHeartbeatRequest) -> MemberHeartbeats:
        """Begin with the first heartbeat of a member with its epoch."""
        key = heartbeat.group_id, heartbeat.member_id
        begun = MemberHeartbeats(heartbeat.member_epoch)
        if not heartbeat.member_id:
            # The coordinator gives the member an id; others may join without one at the same time.
            return begun
        self._members[key] = begun
        self._members.move_to_end(key)
        if len(self._members) > MAX_MEMBERS:
            self._members.popitem(last=False)
        return begun

    def end(self, heartbeat: ConsumerGroupHeartbeatRequest, ended: MemberHeartbeats) -> None:
        """Forget heartbeats whose member receives their response now."""
        key = heartbeat.group_id, heartbeat.member_id
        if self._members.get(key) is ended:
            del self._members[key]


def combined(
    epoch: int, earlier: ConsumerGroupHeartbeatResponse | None, later: ConsumerGroupHeartbeatResponse
) -> ConsumerGroupHeartbeatResponse:
    """The response to a client that receives two at once, for heartbeats with the same epoch.

    A response names the assignment only if it has changed since the response before it. A heartbeat is fenced if an
    earlier one has advanced the epoch: then the earlier response says more.
    """
    if earlier is None or earlier.error_code != Error.NONE:
        return later
    if later.error_code == Error.FENCED_MEMBER_EPOCH and earlier.member_epoch != epoch:
        return earlier
    if later.error_code != Error.NONE or later.assignment is not None:
        return later
    return replace(later, assignment=earlier.assignment)


def advanced(
    heartbeat: ConsumerGroupHeartbeatRequest, late: ConsumerGroupHeartbeatResponse
) -> ConsumerGroupHeartbeatRequest:
    """The heartbeat of a client as that of the member that has received a late response.

    What the client lists as its own is out of date if the response assigns partitions.
    """
    owned = heartbeat.topic_partitions if late.assignment is None else None
    return replace(heartbeat, member_epoch=late.member_epoch, topic_partitions=owned)
