"""A member that speaks the classic protocol, in a group of any protocol type.

**Threads.** :meth:`ClassicMember.poll` does all the work of joining. A background thread sends heartbeats.

Source: AbstractCoordinator of Kafka's Java client; KIP-62 (heartbeats in the background), KIP-345 (static members),
KIP-394 (member id required), KIP-800 (reasons), KIP-814 (a static leader that returns does not assign).
"""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future

from coordinator_logic import apis
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeavingMember,
)
from streaming.client.answers import Answer
from streaming.client.coordinator_client import CoordinatorClient
from streaming.client.errors import CoordinatorError
from streaming.client.membership.common import fenced, send_last
from streaming.client.membership.heartbeat_thread import POLL_TIMEOUT_EXPIRED, HeartbeatThread
from streaming.client.membership.joining import LONGEST_REASON, Joining
from streaming.client.membership.membership_state import Generation, Membership
from streaming.client.membership.types import MemberCallbacks, MemberConfig, MemberEventKind

log = logging.getLogger(__name__)


class ClassicMember:
    """A membership in one group. The parameters and methods are those of :class:`GroupMember`."""

    def __init__(
        self,
        client: CoordinatorClient,
        callbacks: MemberCallbacks,
        config: MemberConfig,
        observe: Callable[[MemberEventKind, Generation, str], None],
    ) -> None:
        self.config = config
        self._observe = observe
        self._client = client
        self._membership = Membership()
        self._heartbeats = HeartbeatThread(
            config,
            self._membership,
            send=self._send_heartbeat,
            poll_timeout_expired=self._on_poll_timeout,
        )
        self._joining = Joining(
            client, callbacks, config, self._membership, self._observe, self._heartbeats.record_poll
        )
        self._heartbeats.start()

    @property
    def generation(self) -> Generation:
        """The member's current identity. May be read from any thread."""
        return self._membership.generation

    @property
    def rejoin_needed(self) -> bool:
        """Whether the next ``poll`` sends a JoinGroup."""
        return self._membership.rejoin_needed

    def poll(self, timeout: float) -> bool:
        """Join or rejoin if needed, for at most ``timeout`` seconds; returns whether the member has its assignment."""
        deadline = time.monotonic() + timeout
        self._heartbeats.record_poll()
        return self._joining.advance(deadline)

    def request_rejoin(self, reason: str) -> None:
        """Rejoin with the next ``poll``, e.g. since the member's metadata has changed. ``reason`` as in KIP-800."""
        self._membership.request_rejoin(reason)

    def leave(self, reason: str) -> None:
        """Give up the assignment and leave the group; a static member stays in it (KIP-345). ``poll`` rejoins."""
        try:
            self._joining.give_up_assignment()
        finally:
            generation = self._membership.leave("")
            if generation.member_id and not self.config.is_static:
                self._send_leave(generation, reason, wait=True)

    def end_heartbeats(self) -> None:
        """End the heartbeats for good."""
        self._heartbeats.close()

    def _send_heartbeat(self) -> None:
        sent = self._membership.generation
        request = HeartbeatRequest(
            self.config.group_id, sent.generation_id, sent.member_id, self.config.group_instance_id
        )

        def on_answer(answered: Future[Answer[HeartbeatResponse]]) -> None:
            # A heartbeat without an answer has no consequence: the next one is sent anyway.
            if answered.exception() is None and answered.result().error is not Error.NONE:
                self.handle_error(answered.result().error, sent, "Heartbeat")

        try:
            self._client.ask(apis.HEARTBEAT, self.config.group_id, request).add_done_callback(on_answer)
        except CoordinatorError as failure:
            log.warning("a heartbeat for group %r could not be sent: %s", self.config.group_id, failure)

    def handle_error(self, error: Error, sent: Generation, api: str) -> None:
        """Apply an error answer to a request of ``api`` that was sent in the generation ``sent``."""
        if error is Error.FENCED_INSTANCE_ID and sent == self._membership.generation:
            self._membership.fail(fenced(self.config))
            self._observe(MemberEventKind.FENCED, sent, error.name)
        elif self._membership.apply_error(error, sent, api):
            rejoins = error is Error.REBALANCE_IN_PROGRESS
            kind = MemberEventKind.REJOIN_REQUESTED if rejoins else MemberEventKind.LOST
            self._observe(kind, sent, f"{api}: {error.name}")

    def _on_poll_timeout(self, left: Generation) -> None:
        action = "stops its heartbeats" if self.config.is_static else "leaves the group"
        log.warning(
            "member %s of group %r %s: poll was not called for %d ms",
            left.member_id, self.config.group_id, action, self.config.rebalance_timeout_ms,
        )  # fmt: skip
        if not self.config.is_static:
            self._send_leave(left, POLL_TIMEOUT_EXPIRED, wait=False)
            self._observe(MemberEventKind.LOST, left, "poll timeout expired")

    def _send_leave(self, generation: Generation, reason: str, *, wait: bool) -> None:
        leaving = LeavingMember(generation.member_id, self.config.group_instance_id, reason[:LONGEST_REASON])
        request = LeaveGroupRequest(self.config.group_id, members=[leaving])
        self._observe(MemberEventKind.LEFT, generation, reason)
        send_last(self._client, apis.LEAVE_GROUP, self.config.group_id, request, "LeaveGroup", wait=wait)
