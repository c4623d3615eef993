"""A member of a consumer group, which speaks the consumer group protocol (KIP-848).

**Threads.** As with the classic protocol: :meth:`ConsumerGroupMember.poll` calls the callbacks, and a background
thread sends heartbeats and leaves the group if ``poll`` is not called for the rebalance timeout.

Source: ConsumerMembershipManager of Kafka's Java client; KIP-848, KIP-1082 (clients generate member ids).
"""

import base64
import logging
import time
import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from coordinator_logic import apis
from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.errors import Error
from coordinator_logic.messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from streaming.client.answers import Answer
from streaming.client.coordinator_client import CoordinatorClient
from streaming.client.errors import CoordinatorError
from streaming.client.membership.common import fenced, send_last, wait_in_poll
from streaming.client.membership.consumer_groups.heartbeat_fields import TopicIdPartition
from streaming.client.membership.consumer_groups.heartbeat_thread import ConsumerHeartbeatThread
from streaming.client.membership.consumer_groups.membership import (
    Change,
    ConsumerMembership,
    Effect,
    MembershipPhase,
    Sent,
)
from streaming.client.membership.consumer_groups.types import PartitionCallbacks, TopicSubscription
from streaming.client.membership.membership_state import Generation
from streaming.client.membership.types import MemberConfig, MemberEventKind
from streaming.contract.output.text import counted

log = logging.getLogger(__name__)

_EVENT_OF_EFFECT = {
    Effect.LOST: MemberEventKind.LOST,
    Effect.REFUSED: MemberEventKind.LOST,
    Effect.FENCED: MemberEventKind.FENCED,
}


class ConsumerGroupMember:
    """A membership in one consumer group. The parameters and methods are those of :class:`GroupMember`."""

    def __init__(
        self,
        client: CoordinatorClient,
        callbacks: PartitionCallbacks,
        config: MemberConfig,
        observe: Callable[[MemberEventKind, Generation, str], None],
    ) -> None:
        self._client = client
        self._callbacks = callbacks
        self._config = config
        self._observe = observe
        self._membership = ConsumerMembership(_new_member_id(), config, config.rebalance_timeout_ms / 1000)
        self._heartbeats = ConsumerHeartbeatThread(
            config.group_id,
            self._membership,
            send=self._send_heartbeat,
            poll_timeout_expired=self._leave_at_poll_timeout,
        )
        # The names of topic ids that the subscription has described; those of topics that are gone are kept.
        self._names: dict[str, str] = {}
        self._subscription: TopicSubscription | None = None
        self._heartbeats.start()

    @property
    def generation(self) -> Generation:
        """The member epoch as generation id, and the member id. May be read from any thread."""
        return self._membership.generation

    @property
    def rejoin_needed(self) -> bool:
        """Whether the member is outside its group, which it joins with the next ``poll``."""
        return self._membership.phase in (MembershipPhase.UNJOINED, MembershipPhase.LOST)

    def poll(self, timeout: float) -> bool:
        """Join if needed, and follow changes of the assignment, for at most ``timeout`` seconds.

        Returns whether the member has everything that it was assigned last.
        """
        deadline = time.monotonic() + timeout
        self._membership.record_poll(time.monotonic())
        while True:
            if self._membership.phase is MembershipPhase.LOST:
                self._give_up_lost()
            self._report_subscription()
            unresolved = self._reconcile()
            if self._membership.phase is MembershipPhase.JOINED and not unresolved:
                return True
            if self._membership.phase is not MembershipPhase.LOST and not self._wait_for_change(deadline, unresolved):
                return False

    def request_rejoin(self, _reason: str) -> None:
        """Do nothing: every ``poll`` reads the subscription anyway."""

    def leave(self, _reason: str) -> None:
        """Give up all partitions and leave the group; a static member keeps its place until its session ends."""
        try:
            if self._membership.phase is MembershipPhase.LOST:
                self._call_with_owned(self._callbacks.on_partitions_lost)
            else:
                self._call_with_owned(lambda owned: self._callbacks.on_partitions_revoked(owned, leaving=True))
        finally:
            left = self._membership.generation
            leaving = self._membership.leave()
            if leaving is not None:
                self._observe(MemberEventKind.LEFT, left, "")
                self._send_leaving(leaving, wait=True)

    def end_heartbeats(self) -> None:
        """End the heartbeats for good."""
        self._heartbeats.close()

    def handle_error(self, error: Error, sent: Generation, api: str) -> None:
        """Apply an error answer to a request of ``api`` that was sent in the generation ``sent``."""
        if error is Error.FENCED_INSTANCE_ID and sent == self._membership.generation:
            self._membership.fence(fenced(self._config))
            self._observe(MemberEventKind.FENCED, sent, error.name)
        elif error is Error.UNKNOWN_MEMBER_ID and self._membership.lose(sent):
            self._observe(MemberEventKind.LOST, sent, f"{api}: {error.name}")

    # ----------------------------------------------------------------------------------------------------------
    # The polling thread

    def _report_subscription(self) -> None:
        subscription = self._callbacks.subscription()
        if subscription is not self._subscription:
            self._subscription = subscription
            self._names |= {topic.topic_id: topic.name for topic in subscription.topics.values()}
        joins = self._membership.phase is MembershipPhase.UNJOINED
        if joins:
            self._observe(MemberEventKind.JOINING, self._membership.generation, "")
        self._membership.subscribe(subscription, time.monotonic())

    def _reconcile(self) -> bool:
        """Revoke and add what the newest answer says; returns whether it assigns topics of unknown names."""
        while (change := self._membership.next_change()) is not None:
            if change.revoked:
                self._revoke(change.revoked)
            elif not self._add_assigned(change):
                self._callbacks.on_unknown_topics()
                return True
        return False

    def _revoke(self, revoked: Iterable[TopicIdPartition]) -> None:
        try:
            self._callbacks.on_partitions_revoked(self._named(revoked), leaving=False)
        finally:
            self._membership.confirm_revoked(revoked, time.monotonic())

    def _add_assigned(self, change: Change) -> bool:
        """Add the partitions of topics whose names are known; returns False if there are only others."""
        known = [partition for partition in change.added if partition.topic_id in self._names]
        if change.added and not known:
            return False
        added = self._membership.confirm_assigned(known)
        if added or not change.added:
            generation = self._membership.generation
            self._observe(MemberEventKind.ASSIGNED, generation, f"{counted(len(added), 'partition')} added")
            self._callbacks.on_partitions_assigned(self._named(added))
        return True

    def _give_up_lost(self) -> None:
        try:
            self._call_with_owned(self._callbacks.on_partitions_lost)
        finally:
            self._membership.finish_loss()

    def _call_with_owned(self, callback: Callable[[list[TopicPartition]], None]) -> None:
        owned = self._named(self._membership.owned)
        if owned:
            callback(owned)

    def _named(self, partitions: Iterable[TopicIdPartition]) -> list[TopicPartition]:
        return sorted(TopicPartition(self._names[topic_id], partition) for topic_id, partition in partitions)

    def _wait_for_change(self, deadline: float, unresolved: bool) -> bool:
        """Wait until the polling thread has something to do; False if ``deadline`` comes first."""

        def is_over() -> bool:
            phase = self._membership.phase
            has_joined = phase is MembershipPhase.JOINED and not unresolved
            return phase is MembershipPhase.LOST or has_joined

        return wait_in_poll(
            self._membership.changed, is_over, deadline, lambda: self._membership.record_poll(time.monotonic())
        )

    # ----------------------------------------------------------------------------------------------------------
    # The heartbeat thread and the reader thread

    def _send_heartbeat(self, sent: Sent, request: ConsumerGroupHeartbeatRequest) -> None:
        def on_answer(answered: Future[Answer[ConsumerGroupHeartbeatResponse]]) -> None:
            try:
                response = answered.result().unwrap()
            except CoordinatorError as failure:
                self._on_error(sent, failure)
            else:
                changed = self._membership.apply_answer(sent, response, time.monotonic())
                if changed and sent.epoch != response.member_epoch:
                    self._observe(MemberEventKind.JOINED, self._membership.generation, "")

        try:
            self._client.ask(apis.CONSUMER_GROUP_HEARTBEAT, self._config.group_id, request).add_done_callback(on_answer)
        except CoordinatorError as failure:
            log.warning("a heartbeat for group %r could not be sent: %s", self._config.group_id, failure)
            self._on_error(sent, failure)

    def _on_error(self, sent: Sent, failure: CoordinatorError) -> None:
        generation = Generation(sent.epoch, self._membership.generation.member_id)
        is_fenced = failure.error is Error.FENCED_INSTANCE_ID
        effect = self._membership.apply_error(sent, fenced(self._config) if is_fenced else failure, time.monotonic())
        if effect in _EVENT_OF_EFFECT:
            self._observe(_EVENT_OF_EFFECT[effect], generation, f"ConsumerGroupHeartbeat: {failure.error.name}")

    def _leave_at_poll_timeout(self, leaving: ConsumerGroupHeartbeatRequest) -> None:
        log.warning(
            "member %s of group %r leaves the group: poll was not called for %d ms",
            leaving.member_id, leaving.group_id, self._config.rebalance_timeout_ms,
        )  # fmt: skip
        self._send_leaving(leaving, wait=False)
        self._observe(MemberEventKind.LOST, Generation(member_id=leaving.member_id), "poll timeout expired")

    def _send_leaving(self, leaving: ConsumerGroupHeartbeatRequest, *, wait: bool) -> None:
        api, group_id = apis.CONSUMER_GROUP_HEARTBEAT, self._config.group_id
        send_last(self._client, api, group_id, leaving, "the last heartbeat", wait=wait)


def _new_member_id() -> str:
    """A random member id, in the text form of Kafka's ids."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
