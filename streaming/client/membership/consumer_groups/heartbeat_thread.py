"""The thread that sends the heartbeats of a member of a consumer group."""

import time
from collections.abc import Callable

from coordinator_logic.messages import ConsumerGroupHeartbeatRequest
from streaming.client.membership.common import MemberThread
from streaming.client.membership.consumer_groups.membership import ConsumerMembership, Sent


class ConsumerHeartbeatThread(MemberThread):
    """Calls ``send`` with every heartbeat that is due, and never waits for an answer.

    If the poll timeout expires, it calls ``poll_timeout_expired`` with the heartbeat that leaves the group.
    """

    def __init__(
        self,
        group_id: str,
        membership: ConsumerMembership,
        *,
        send: Callable[[Sent, ConsumerGroupHeartbeatRequest], None],
        poll_timeout_expired: Callable[[ConsumerGroupHeartbeatRequest], None],
    ) -> None:
        super().__init__(group_id, membership.changed)
        self._membership = membership
        self._send = send
        self._poll_timeout_expired = poll_timeout_expired

    def run(self) -> None:
        while self._wait():
            leaving = self._membership.expire_poll(time.monotonic())
            if leaving is not None:
                self._poll_timeout_expired(leaving)
            heartbeat = self._membership.next_heartbeat(time.monotonic())
            if heartbeat is not None:
                self._send(*heartbeat)

    def _wait(self) -> bool:
        """Wait until there is something to do; False when the thread must end."""
        with self._changed:
            while not self._closed:
                wake_at = self._membership.wake_at()
                remaining = None if wake_at is None else wake_at - time.monotonic()
                if remaining is not None and remaining <= 0:
                    break
                self._changed.wait(remaining)
            return not self._closed
