"""The consumer's part in a group with the classic protocol: its subscription, its assignment, the leader's assignment.

Source: ConsumerCoordinator of Kafka's Java client; KIP-429 (cooperative rebalancing), KIP-881 (racks).
"""

import time
from collections.abc import Mapping, Sequence

from coordinator_logic.assignors import (
    Assignor,
    GroupSubscription,
    RebalanceProtocol,
    common_rebalance_protocol,
)
from coordinator_logic.embedded_protocols import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from coordinator_logic.messages import JoinedMember
from streaming.client.consumer.committed_offsets import GroupOffsets
from streaming.client.consumer.fetcher import Fetcher
from streaming.client.consumer.group_assignment import GroupAssignment
from streaming.client.consumer.metadata_watch import MetadataWatch, TopicUpdate, describe_change
from streaming.client.consumer.subscription_state import SubscriptionState
from streaming.client.consumer.topic_pattern import Pattern
from streaming.client.consumer.types import ConsumerConfig
from streaming.client.coordinator_client import CoordinatorClient
from streaming.client.membership.group_member import GroupMember
from streaming.client.membership.membership_state import Generation
from streaming.client.membership.types import MemberCallbacks
from streaming.contract.output.text import counted


class ConsumerCoordinator(MemberCallbacks):
    """Updates the subscription state and the fetcher with what the group assigns. Not thread-safe."""

    def __init__(
        self, client: CoordinatorClient, config: ConsumerConfig, state: SubscriptionState, fetcher: Fetcher
    ) -> None:
        self._config = config
        self._state = state
        self._fetcher = fetcher
        self._assignors: dict[str, Assignor] = {assignor.name: assignor for assignor in config.assignors()}
        self._protocol = common_rebalance_protocol(self._assignors.values())
        self._watch = MetadataWatch(config)
        self._applied_pattern: Pattern | None = None
        self._joined_topics: frozenset[str] | None = None
        self.member = GroupMember(client, self, config.member_config(), config.observer)
        self.offsets = GroupOffsets(client, self.member)
        self.assignment = GroupAssignment(config, state, fetcher, self.offsets, self.member)

    # ----------------------------------------------------------------------------------------------------------
    # Subscription

    def subscribe(self, topics: frozenset[str], pattern: Pattern | None) -> None:
        """Subscribe to topics or to a pattern; ``poll`` joins the group.

        Raises:
            RuntimeError: topics would replace a pattern, or a pattern topics.
        """
        self._state.check_kind_of(pattern)
        if pattern is None:
            if self._state.topics and self._state.topics != topics:
                self.member.request_rejoin("topic subscription changed")
            self._state.topics = topics
        elif self._state.pattern != pattern:
            self._state.pattern = pattern
            self._watch.watch_pattern(pattern)

    def unsubscribe(self) -> None:
        """End the subscription and leave the group; a static member stays in the group (KIP-345)."""
        try:
            self.member.leave("the consumer unsubscribed from all topics")
        finally:
            self._state.topics = frozenset()
            self._state.pattern = self._applied_pattern = self._joined_topics = None
            self._watch.watch_pattern(None)
            self._watch.stop_watching_group()

    def close(self) -> None:
        """Give up the partitions, and leave the group unless the member is static."""
        self._watch.close()
        self.member.close("the consumer is being closed")

    # ----------------------------------------------------------------------------------------------------------
    # Changes of topics

    def poll(self, timeout: float) -> None:
        """Continue joining for at most ``timeout`` seconds. Raises as :meth:`GroupMember.poll`.

        A consumer with a pattern joins once it knows the topics that match.
        """
        deadline = time.monotonic() + timeout
        if self._fetcher.saw_unknown_partition:
            self._fetcher.saw_unknown_partition = False
            self._watch.request_refresh()
        self._check_topics(timeout)
        if self._state.pattern == self._applied_pattern:
            self.member.poll(max(0.0, deadline - time.monotonic()))

    def _check_topics(self, timeout: float) -> None:
        wait = 0.0
        if self._state.pattern != self._applied_pattern:
            wait = timeout
        elif self._state.pattern is not None and self.member.rejoin_needed:
            self._watch.request_refresh()
            wait = self._config.pattern_refresh_timeout_ms / 1000
        update = self._watch.poll(wait)
        if update is not None:
            self._rejoin_if_changed(update)

    def _rejoin_if_changed(self, update: TopicUpdate) -> None:
        group = self._watch.group
        if group is not None and update.metadata is not None:
            change = describe_change(group.metadata, update.metadata)
            if change is not None:
                self.member.request_rejoin(change)
        if update.matched is not None:
            self._applied_pattern = self._state.pattern
            self._state.topics = update.matched
            if self._joined_topics not in (None, update.matched):
                self.member.request_rejoin(f"the topics that match {self._applied_pattern} changed")

    # ----------------------------------------------------------------------------------------------------------
    # Callbacks of the member

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """A protocol for each assignor, with the subscription as its metadata."""
        self._joined_topics = self._state.topics
        # The answer decides whether this member leads the new generation.
        self._watch.stop_watching_group()
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
        """Watch all topics that the group subscribes to, with racks if any member has one."""
        subscriptions = [decode_subscription(member.metadata) for member in members]
        topics = {topic for subscription in subscriptions for topic in subscription.topics}
        self._watch.watch_group(topics, with_racks=any(subscription.rack_id for subscription in subscriptions))

    def assign(self, protocol_name: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        """Run the group's assignor with the subscriptions of all members."""
        assert self._watch.group is not None, "a leader is elected before it assigns"
        subscriptions = [
            GroupSubscription(member.member_id, member.group_instance_id, decode_subscription(member.metadata))
            for member in members
        ]
        assigned = self._assignors[protocol_name].assign(self._watch.group.metadata, subscriptions)
        return {member_id: encode_assignment(Assignment(partitions)) for member_id, partitions in assigned.items()}

    def on_assigned(self, generation: Generation, assignment: bytes) -> None:
        """Apply the assignment; a cooperative member that must give up partitions revokes them and rejoins."""
        decoded = decode_assignment(assignment)
        assigned, owned = set(decoded.partitions), set(self._state.assigned)
        if not all(self._state.includes(partition.topic) for partition in assigned):
            self.member.request_rejoin("the subscription changed while the group was rebalancing")
            return
        revoked = owned - assigned
        if revoked:
            if self._protocol is RebalanceProtocol.COOPERATIVE:
                # A cooperative member consumes during the rebalance. Without this commit, the next owner would consume
                # the same records again.
                self.assignment.commit_before_revocation(leaving=False)
                self.member.request_rejoin(f"need to revoke {counted(len(revoked), 'partition')} and rejoin")
            self.assignment.revoke(revoked)
        self._state.add(assigned)
        self._assignors[generation.protocol_name or ""].on_assignment(decoded, generation.generation_id)
        self.assignment.schedule_auto_commit()
        self._state.listener.on_partitions_assigned(sorted(assigned - owned))

    def on_revoked(self, *, leaving: bool) -> None:
        """Commit, and give up all partitions; a cooperative member that rejoins gives up unsubscribed topics only."""
        self.assignment.commit_before_revocation(leaving=leaving)
        owned = self._state.assigned
        if leaving:
            if owned:
                self.assignment.revoke(owned)
        elif self._protocol is RebalanceProtocol.EAGER:
            self.assignment.revoke(owned)
        elif unsubscribed := [partition for partition in owned if partition.topic not in self._state.topics]:
            self.assignment.revoke(unsubscribed)

    def on_lost(self) -> None:
        """Drop all partitions without a commit: other members may own them already."""
        self.assignment.lose_all()
