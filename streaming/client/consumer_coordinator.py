"""The consumer's part in its group: what it tells the leader, what it does with its assignment, auto-commit.

Source: ConsumerCoordinator of Kafka's Java client; KIP-429 (cooperative rebalancing), KIP-881 (racks).
"""

import logging
import time
from collections.abc import Iterable, Mapping, Sequence

from coordinator_logic.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartition,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from coordinator_logic.consumer_protocol.assignors import (
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    common_rebalance_protocol,
)
from coordinator_logic.messages import JoinedMember
from streaming.client.consumer_types import ConsumerConfig, Offsets
from streaming.client.coordinator_client import CoordinatorClient
from streaming.client.errors import CoordinatorError
from streaming.client.fetcher import Fetcher
from streaming.client.group_member import GroupMember
from streaming.client.group_offsets import GroupOffsets
from streaming.client.member_types import MemberCallbacks, MemberConfig
from streaming.client.membership import Generation
from streaming.client.subscription_state import SubscriptionState
from streaming.client.topic_pattern import TopicPattern
from streaming.client.topic_watch import Sighting, TopicWatch, difference

log = logging.getLogger(__name__)

PROTOCOL_TYPE = "consumer"

_FRESHNESS_PATIENCE_SECONDS = 0.5
"""How long joining again waits for what matches the pattern now. Without it a new topic, which some members see before
others, would cost a rebalance for each of them."""


class ConsumerCoordinator(MemberCallbacks):
    """Keeps the subscription state and the fetcher in step with the group."""

    def __init__(
        self, client: CoordinatorClient, config: ConsumerConfig, state: SubscriptionState, fetcher: Fetcher
    ) -> None:
        self._config = config
        self._state = state
        self._fetcher = fetcher
        self._assignors: dict[str, Assignor] = {assignor.name: assignor for assignor in config.assignors()}
        self._protocol = common_rebalance_protocol(self._assignors.values())
        self._next_auto_commit = 0.0
        self._watch = TopicWatch(config)
        self._matched: TopicPattern | None = None
        self._joined_topics: frozenset[str] | None = None
        self.member = GroupMember(
            client,
            self,
            MemberConfig(
                group_id=config.group_id,
                protocol_type=PROTOCOL_TYPE,
                group_instance_id=config.group_instance_id,
                session_timeout_ms=config.session_timeout_ms,
                rebalance_timeout_ms=config.max_poll_interval_ms,
                heartbeat_interval_ms=config.heartbeat_interval_ms,
            ),
            config.observer,
        )
        self.offsets = GroupOffsets(client, self.member)

    # ----------------------------------------------------------------------------------------------------------
    # Subscription

    def subscribe(self, topics: frozenset[str], pattern: TopicPattern | None) -> None:
        """Want these topics, or those that match, from now on; ``poll`` joins for them.

        Raises:
            RuntimeError: topics are wanted instead of a pattern, or a pattern instead of topics.
        """
        if self._state.is_subscribed and (pattern is None) != (self._state.pattern is None):
            raise RuntimeError("topics and a pattern exclude each other: unsubscribe first")
        if pattern is None:
            if self._state.topics and self._state.topics != topics:
                self.member.request_rejoin("topic subscription changed")
            self._state.topics = topics
        elif self._state.pattern != pattern:
            self._state.pattern = pattern
            self._watch.match(pattern)

    def unsubscribe(self) -> None:
        """Want nothing any more, and leave the group; a static member stays in it."""
        try:
            self.member.leave("the consumer unsubscribed from all topics")
        finally:
            self._state.topics = frozenset()
            self._state.pattern = self._matched = self._joined_topics = None
            self._watch.match(None)
            self._watch.follow()

    def close(self) -> None:
        """Give up the partitions, and leave the group if the member is dynamic."""
        self._watch.close()
        self.member.close("the consumer is being closed")

    # ----------------------------------------------------------------------------------------------------------
    # Topics that come, grow and go

    def poll(self, timeout: float) -> None:
        """Look after the membership for at most ``timeout`` seconds; what :meth:`GroupMember.poll` raises comes out.

        A member joins for topics: with a pattern not before the cluster's topics have been seen once.
        """
        deadline = time.monotonic() + timeout
        if self._fetcher.met_unknown_partition:
            self._fetcher.met_unknown_partition = False
            self._watch.ask_soon()
        self._look_at_topics(timeout)
        if self._state.pattern == self._matched:
            self.member.poll(max(0.0, deadline - time.monotonic()))

    def _look_at_topics(self, timeout: float) -> None:
        wait = 0.0
        if self._state.pattern != self._matched:
            wait = timeout
        elif self._state.pattern is not None and self.member.rejoin_needed:
            self._watch.ask_soon()
            wait = _FRESHNESS_PATIENCE_SECONDS
        seen = self._watch.look(wait)
        if seen is not None:
            self._rejoin_if_changed(seen)

    def _rejoin_if_changed(self, seen: Sighting) -> None:
        led = self._watch.group
        if led is not None and seen.found is not None:
            change = difference(led.found, seen.found)
            if change is not None:
                self.member.request_rejoin(change)
        if seen.matched is not None:
            self._matched = self._state.pattern
            self._state.topics = seen.matched
            if self._joined_topics not in (None, seen.matched):
                self.member.request_rejoin(f"the topics that match {self._matched} changed")

    # ----------------------------------------------------------------------------------------------------------
    # What the member is asked for

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """One protocol for each assignor, with the subscription as metadata."""
        self._joined_topics = self._state.topics
        # Whether this member leads the new generation, the answer will tell.
        self._watch.follow()
        return [
            (
                name,
                encode_subscription(
                    Subscription(
                        sorted(self._state.topics),
                        assignor.subscription_user_data(),
                        self._state.assigned,
                        self.member.generation.generation_id,
                        self._config.client_rack or None,
                    )
                ),
            )
            for name, assignor in self._assignors.items()
        ]

    def on_elected(self, members: Sequence[JoinedMember]) -> None:
        """Watch from now on what the whole group wants; with racks only if one of its members has one."""
        subscriptions = [decode_subscription(member.metadata) for member in members]
        topics = {topic for subscription in subscriptions for topic in subscription.topics}
        self._watch.lead(topics, with_racks=any(subscription.rack_id for subscription in subscriptions))

    def assign(self, protocol_name: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        """Run the assignor that the group voted for over everybody's subscriptions."""
        assert self._watch.group is not None, "a leader is elected before it assigns"
        subscriptions = [
            GroupSubscription(member.member_id, member.group_instance_id, decode_subscription(member.metadata))
            for member in members
        ]
        assigned = self._assignors[protocol_name].assign(self._watch.group.found, subscriptions)
        return {member_id: encode_assignment(Assignment(given)) for member_id, given in assigned.items()}

    def on_assigned(self, generation: Generation, assignment: bytes) -> None:
        """Take over the assignment; a cooperative member that has to give something up joins again."""
        given = decode_assignment(assignment)
        assigned, owned = set(given.partitions), set(self._state.assigned)
        if not all(self._state.wants(partition.topic) for partition in assigned):
            self.member.request_rejoin("the subscription changed while the group was rebalancing")
            return
        revoked = owned - assigned
        if revoked:
            if self._protocol is RebalanceProtocol.COOPERATIVE:
                # Records of what is kept are handed out during a cooperative rebalance, so what was committed before
                # it is not all; the next owner would begin with what this member has consumed since.
                self._commit_before_revocation(self._patience_ms(leaving=False))
                self.member.request_rejoin(f"need to revoke {len(revoked)} partitions and rejoin")
            self._revoke(revoked)
        self._state.add(assigned)
        self._assignors[generation.protocol_name or ""].on_assignment(given, generation.generation_id)
        self._schedule_auto_commit()
        self._state.listener.on_partitions_assigned(sorted(assigned - owned))

    def on_revoked(self, *, leaving: bool) -> None:
        """Commit; give up everything, or (cooperative) only what is not subscribed to any more."""
        self._commit_before_revocation(self._patience_ms(leaving=leaving))
        owned = self._state.assigned
        if leaving:
            if owned:
                self._revoke(owned)
        elif self._protocol is RebalanceProtocol.EAGER:
            self._revoke(owned)
        elif unsubscribed := [partition for partition in owned if partition.topic not in self._state.topics]:
            self._revoke(unsubscribed)

    def on_lost(self) -> None:
        """Everything may be somebody else's already."""
        lost = self._state.assigned
        if lost:
            try:
                self._state.listener.on_partitions_lost(lost)
            finally:
                self._give_up(lost)

    def _revoke(self, partitions: Iterable[TopicPartition]) -> None:
        revoked = sorted(partitions)
        try:
            self._state.listener.on_partitions_revoked(revoked)
        finally:
            self._give_up(revoked)

    def _give_up(self, partitions: Iterable[TopicPartition]) -> None:
        self._fetcher.stop(partitions)
        self._state.remove(partitions)

    # ----------------------------------------------------------------------------------------------------------
    # Auto-commit

    def auto_commit_if_due(self) -> None:
        """Commit, without waiting, what has been handed out by earlier polls."""
        if self._config.enable_auto_commit and time.monotonic() >= self._next_auto_commit:
            self._schedule_auto_commit()
            positions = self._state.positions
            if positions and self.member.generation.is_member:
                self.offsets.commit_async(positions, _log_failure)

    def _schedule_auto_commit(self) -> None:
        self._next_auto_commit = time.monotonic() + self._config.auto_commit_interval_ms / 1000

    def _patience_ms(self, *, leaving: bool) -> int:
        # The group waits for this member as long as max_poll_interval_ms; half of it is left for joining.
        patience_ms = self._config.request_timeout_ms if leaving else self._config.max_poll_interval_ms // 2
        return min(self._config.default_api_timeout_ms, patience_ms)

    def _commit_before_revocation(self, limit_ms: int) -> None:
        positions = self._state.positions
        if not (self._config.enable_auto_commit and positions):
            return
        try:
            self.offsets.commit(positions, time.monotonic() + limit_ms / 1000)
        except CoordinatorError as failure:
            _log_failure(positions, failure)


def _log_failure(offsets: Offsets, failure: CoordinatorError | None) -> None:
    if failure is not None:
        log.warning("auto-commit of %d partitions: %s", len(offsets), failure)
