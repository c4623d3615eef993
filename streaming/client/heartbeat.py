"""The thread that keeps a member's session alive."""

import threading
import time
from collections.abc import Callable

from streaming.client.membership import Generation, Membership

POLL_TIMEOUT_EXPIRED = "consumer poll timeout has expired"
"""The reason that is told to the coordinator, in the words of Kafka's client."""


class HeartbeatThread(threading.Thread):
    """Calls ``send`` at every interval while the membership wants heartbeats, answered or not.

    It never waits for an answer: a coordinator that is slow, or away for a while, must find in its log that the
    member was there all the time.

    When :meth:`polled` has not been called for ``max_poll_interval_ms``, the application is taken for stuck:
    there are no more heartbeats until it polls again, and ``poll_timeout_expired`` is called, once, with the
    generation that the member left. A static member does not leave (KIP-345): its session may run out.
    """

    def __init__(
        self,
        name: str,
        membership: Membership,
        *,
        is_static: bool,
        heartbeat_interval_ms: int,
        max_poll_interval_ms: int,
        send: Callable[[], None],
        poll_timeout_expired: Callable[[Generation], None],
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._membership = membership
        self._is_static = is_static
        self._interval = heartbeat_interval_ms / 1000
        self._max_poll_interval = max_poll_interval_ms / 1000
        self._send = send
        self._poll_timeout_expired = poll_timeout_expired
        self._last_poll = time.monotonic()
        self._expired = False
        self._closed = False

    def polled(self) -> None:
        """The application shows that it is alive."""
        with self._membership.changed:
            self._last_poll = time.monotonic()
            if self._expired:
                self._expired = False
                self._membership.changed.notify_all()

    def close(self) -> None:
        """End the thread, and wait until it has ended."""
        with self._membership.changed:
            self._closed = True
            self._membership.changed.notify_all()
        if self.is_alive():
            self.join()

    def run(self) -> None:
        while self._wait_until_wanted():
            self._beat_while_wanted()

    def _wait_until_wanted(self) -> bool:
        """Wait until heartbeats are wanted; False when it is time to end."""
        changed = self._membership.changed
        with changed:
            changed.wait_for(lambda: self._closed or (self._membership.heartbeats_wanted and not self._expired))
            # A join may have taken longer than the application may stay away; it was not away.
            self._last_poll = time.monotonic()
            return not self._closed

    def _beat_while_wanted(self) -> None:
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
        """Wait until a heartbeat is due or the application overdue; False when heartbeats are no longer wanted."""
        changed = self._membership.changed
        with changed:
            moment = min(due, self._last_poll + self._max_poll_interval)
            changed.wait_for(
                lambda: self._closed or not self._membership.heartbeats_wanted,
                timeout=max(0.0, moment - time.monotonic()),
            )
            return not self._closed and self._membership.heartbeats_wanted

    def _expire_if_not_polled(self) -> Generation | None:
        """The generation that the member is out of, if the application is stuck."""
        with self._membership.changed:
            if time.monotonic() - self._last_poll < self._max_poll_interval:
                return None
            self._expired = True
            if self._is_static:
                return self._membership.generation
            return self._membership.leave(POLL_TIMEOUT_EXPIRED)
