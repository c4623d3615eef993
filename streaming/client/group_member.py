"""A member of a group of any protocol type: joins, syncs, heartbeats and leaves as Kafka's clients do.

**Threads.** :meth:`GroupMember.poll` does all the work of joining, and is where every callback is called from;
call it often, from one thread. A thread of the member sends heartbeats in the background, and leaves the group when
``poll`` has not been called for the rebalance timeout. What heartbeats bring is acted upon by the next ``poll``.
``leave`` and ``close`` belong to the polling thread, too. Only the observer is called from several threads.

Source: AbstractCoordinator of Kafka's Java client; KIP-62 (heartbeats in the background), KIP-345 (static members),
KIP-394 (member id required), KIP-800 (reasons), KIP-814 (a static leader that returns assigns nothing).
"""

import logging
import time
from concurrent.futures import Future
from typing import Self

from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    LeavingMember,
)
from streaming.client import apis
from streaming.client.apis import Answer
from streaming.client.coordinator_client import CoordinatorClient
from streaming.client.errors import CoordinatorError, FencedInstanceId
from streaming.client.heartbeat import POLL_TIMEOUT_EXPIRED, HeartbeatThread
from streaming.client.joining import LONGEST_REASON, Joining
from streaming.client.member_types import MemberCallbacks, MemberConfig, MemberEvent, MemberEventKind, Observer
from streaming.client.membership import Generation, Membership

log = logging.getLogger(__name__)


class GroupMember:
    """One membership in one group. The first :meth:`poll` joins; :meth:`close` ends it, once and for all."""

    def __init__(
        self,
        client: CoordinatorClient,
        callbacks: MemberCallbacks,
        config: MemberConfig,
        observer: Observer | None = None,
    ) -> None:
        self.config = config
        self._client = client
        self._callbacks = callbacks
        self._observer = observer
        self._membership = Membership()
        self._heartbeats = HeartbeatThread(
            f"{config.group_id}-heartbeat",
            self._membership,
            is_static=config.is_static,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            max_poll_interval_ms=config.rebalance_timeout_ms,
            send=self._send_heartbeat,
            poll_timeout_expired=self._on_poll_timeout,
        )
        self._joining = Joining(client, callbacks, config, self._membership, self._observe, self._heartbeats.polled)
        self._closed = False
        self._heartbeats.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def generation(self) -> Generation:
        """Who the member is at this moment."""
        return self._membership.generation

    @property
    def rejoin_needed(self) -> bool:
        """Whether the next ``poll`` will ask to join."""
        return self._membership.rejoin_needed

    def poll(self, timeout: float) -> bool:
        """Join if that is needed, for at most ``timeout`` seconds; True when the member is in a generation.

        What is not finished in time goes on with the next call.

        Raises:
            FencedInstanceId: another process has this member's instance id; every further call raises it again.
            CoordinatorError: the group does not take this member (e.g. INCONSISTENT_GROUP_PROTOCOL); the next
                call tries again.
        """
        if self._closed:
            raise RuntimeError(f"the member of group {self.config.group_id!r} is closed")
        deadline = time.monotonic() + timeout
        self._heartbeats.polled()
        return self._joining.advance(deadline)

    def request_rejoin(self, reason: str) -> None:
        """Join again with the next ``poll``: what this member wants has changed."""
        self._membership.request_rejoin(reason)

    def heard(self, error: Error, sent: Generation, api: str) -> None:
        """Tell the member of an error answer to a request that named the generation ``sent``."""
        self._draw_consequences(error, sent, api)

    def leave(self, reason: str) -> None:
        """Give up the assignment and leave the group; a static member stays (KIP-345). ``poll`` joins again."""
        try:
            self._joining.give_up_assignment()
        finally:
            generation = self._membership.leave("")
            if generation.member_id and not self.config.is_static:
                self._leave_and_wait(generation, reason)

    def close(self, reason: str = "the member is being closed") -> None:
        """Leave the group if the member is dynamic, and end the heartbeats. The client stays open."""
        if self._closed:
            return
        self._closed = True
        try:
            self.leave(reason)
        finally:
            self._heartbeats.close()

    def _send_heartbeat(self) -> None:
        sent = self._membership.generation
        request = HeartbeatRequest(
            self.config.group_id, sent.generation_id, sent.member_id, self.config.group_instance_id
        )

        def on_answer(answered: Future[Answer[HeartbeatResponse]]) -> None:
            # Without an answer nothing is known, and the next heartbeat is on its way already.
            if answered.exception() is None and answered.result().error is not Error.NONE:
                self._draw_consequences(answered.result().error, sent, "Heartbeat")

        try:
            self._client.ask(apis.HEARTBEAT, self.config.group_id, request).add_done_callback(on_answer)
        except CoordinatorError as failure:
            log.warning("no heartbeat for group %r: %s", self.config.group_id, failure)

    def _draw_consequences(self, error: Error, sent: Generation, api: str) -> None:
        if error is Error.FENCED_INSTANCE_ID and sent == self._membership.generation:
            self._membership.fail(
                FencedInstanceId(
                    f"group {self.config.group_id!r}: another process has joined as {self.config.group_instance_id!r}"
                )
            )
            self._observe(MemberEventKind.FENCED, sent, error.name)
        elif self._membership.heard(error, sent, api):
            rejoins = error is Error.REBALANCE_IN_PROGRESS
            kind = MemberEventKind.REJOIN_REQUESTED if rejoins else MemberEventKind.LOST
            self._observe(kind, sent, f"{api}: {error.name}")

    def _on_poll_timeout(self, left: Generation) -> None:
        what = "stops its heartbeats" if self.config.is_static else "leaves the group"
        log.warning(
            "member %s of group %r %s: poll was not called for %d ms",
            left.member_id, self.config.group_id, what, self.config.rebalance_timeout_ms,
        )  # fmt: skip
        if not self.config.is_static:
            self._send_leave(left, POLL_TIMEOUT_EXPIRED)
            self._observe(MemberEventKind.LOST, left, "poll timeout expired")

    def _send_leave(self, generation: Generation, reason: str) -> Future[Answer[LeaveGroupResponse]] | None:
        """Ask to be let go; None when that cannot even be sent: then the session will run out."""
        leaving = LeavingMember(generation.member_id, self.config.group_instance_id, reason[:LONGEST_REASON])
        request = LeaveGroupRequest(self.config.group_id, members=[leaving])
        self._observe(MemberEventKind.LEFT, generation, reason)
        try:
            return self._client.ask(apis.LEAVE_GROUP, self.config.group_id, request)
        except CoordinatorError as failure:
            log.warning("leaving group %r: %s", self.config.group_id, failure)
            return None

    def _leave_and_wait(self, generation: Generation, reason: str) -> None:
        left = self._send_leave(generation, reason)
        if left is not None:
            try:
                left.result().unwrap()
            except CoordinatorError as failure:
                log.warning("leaving group %r: %s", self.config.group_id, failure)

    def _observe(self, kind: MemberEventKind, generation: Generation, detail: str = "") -> None:
        log.debug("group %r: %s as %s %s", self.config.group_id, kind.value, generation, detail)
        if self._observer is not None:
            try:
                self._observer(MemberEvent(kind, self.config.group_id, generation, detail))
            except Exception:
                # An observer looks on. It must not be able to stop the heartbeats.
                log.exception("the observer of group %r failed", self.config.group_id)
