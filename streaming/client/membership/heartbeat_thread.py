"""The thread that sends a member's heartbeats (KIP-62)."""

import time
from collections.abc import Callable

from streaming.client.membership.common import MemberThread
from streaming.client.membership.membership_state import Generation, Membership
from streaming.client.membership.types import MemberConfig

POLL_TIMEOUT_EXPIRED = "consumer poll timeout has expired"
"""The reason in LeaveGroup, in the words of Kafka's client."""


class HeartbeatThread(MemberThread):
    """Calls ``send`` every ``heartbeat_interval_ms`` while the membership needs heartbeats.

    It never waits for an answer: a coordinator that was slow or down must find in its log that the member was alive all
    the time.

    If :meth:`record_poll` is not called for ``rebalance_timeout_ms``, heartbeats stop until the next poll. A dynamic
    member leaves the group; a static member stays until its session times out (KIP-345). ``poll_timeout_expired`` is
    then called once, with the member's last generation.
    """

    def __init__(
        self,
        config: MemberConfig,
        membership: Membership,
        *,
        send: Callable[[], None],
        poll_timeout_expired: Callable[[Generation], None],
    ) -> None:
        super().__init__(config.group_id, membership.changed)
        self._membership = membership
        self._is_static = config.is_static
        self._interval = config.heartbeat_interval_ms / 1000
        self._max_poll_interval = config.rebalance_timeout_ms / 1000
        self._send = send
        self._poll_timeout_expired = poll_timeout_expired
        self._last_poll = time.monotonic()
        self._expired = False

    def record_poll(self) -> None:
        """Restart the poll timeout; heartbeats resume if it had expired."""
        with self._membership.changed:
            self._last_poll = time.monotonic()
            if self._expired:
                self._expired = False
                self._membership.changed.notify_all()

    def run(self) -> None:
        while self._wait_until_needed():
            self._send_while_needed()

    def _wait_until_needed(self) -> bool:
        """Wait until heartbeats are needed; False when the thread must end."""
        changed = self._membership.changed
        with changed:
            changed.wait_for(lambda: self._closed or (self._membership.needs_heartbeats and not self._expired))
            # A join may take longer than the poll timeout without any fault of the application.
            self._last_poll = time.monotonic()
            return not self._closed

    def _send_while_needed(self) -> None:
        due = time.monotonic() + self._interval
        while self._wait_until(due):
            left = self._expire_if_not_polled()
            if left is not None:
                self._poll_timeout_expired(left)
                return
            now = time.monotonic()
            if now >= due:
                self._send()
                due = max(due + self._interval, now)

    def _wait_until(self, due: float) -> bool:
        """Wait until a heartbeat is due or the poll timeout expires; False when heartbeats are no longer needed."""
        changed = self._membership.changed
        with changed:
            moment = min(due, self._last_poll + self._max_poll_interval)
            changed.wait_for(
                lambda: self._closed or not self._membership.needs_heartbeats,
                timeout=max(0.0, moment - time.monotonic()),
            )
            return not self._closed and self._membership.needs_heartbeats

    def _expire_if_not_polled(self) -> Generation | None:
        """If the poll timeout has expired, leave unless static; returns the member's generation before that."""
        with self._membership.changed:
            if time.monotonic() - self._last_poll < self._max_poll_interval:
                return None
            self._expired = True
            if self._is_static:
                return self._membership.generation
            return self._membership.leave(POLL_TIMEOUT_EXPIRED)
