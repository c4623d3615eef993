"""What the members of both protocols have in common."""

import logging
import threading
import time
from collections.abc import Callable

from coordinator_logic.apis import Api, RequestT, ResponseT
from streaming.client.coordinator_client import CoordinatorClient
from streaming.client.errors import CoordinatorError, FencedInstanceId
from streaming.client.membership.types import MemberConfig

log = logging.getLogger(__name__)

_POLL_RECORD_INTERVAL_SECONDS = 0.5
"""How often a waiting ``poll`` restarts the poll timeout."""


class MemberThread(threading.Thread):
    """The daemon thread that sends a member's heartbeats. It waits for changes of the state, until ``_closed`` is set.

    changed: the lock of the state, which is notified of every change.
    """

    def __init__(self, group_id: str, changed: threading.Condition) -> None:
        super().__init__(name=f"{group_id}-heartbeat", daemon=True)
        self._changed = changed
        self._closed = False

    def close(self) -> None:
        """End the thread and wait for its end."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self.is_alive():
            self.join()


def fenced(config: MemberConfig) -> FencedInstanceId:
    """The error that ends a membership, since another process uses its instance id."""
    return FencedInstanceId(f"group {config.group_id!r}: another process uses instance id {config.group_instance_id!r}")


def send_last(
    client: CoordinatorClient, api: Api[RequestT, ResponseT], group_id: str, request: RequestT, what: str, *, wait: bool
) -> None:
    """Send the request with which a member leaves, and ``wait`` for its answer. If it fails, the session times out."""
    try:
        answer = client.ask(api, group_id, request)
        if wait:
            answer.result().unwrap()
    except CoordinatorError as failure:
        log.warning("%s for group %r failed: %s", what, group_id, failure)


def wait_in_poll(
    changed: threading.Condition, is_over: Callable[[], bool], deadline: float, record_poll: Callable[[], object]
) -> bool:
    """Wait until ``is_over``; False if ``deadline`` comes first. Calls ``record_poll`` meanwhile."""
    while True:
        record_poll()
        with changed:
            wait = min(deadline - time.monotonic(), _POLL_RECORD_INTERVAL_SECONDS)
            if changed.wait_for(is_over, timeout=max(0.0, wait)):
                return True
        if time.monotonic() >= deadline:
            return False
