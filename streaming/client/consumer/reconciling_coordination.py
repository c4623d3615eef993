"""The consumer's part in the consumer group protocol (KIP-848): its subscription and its assignment."""

import time
from collections.abc import Sequence

from coordinator_logic.embedded_protocols import TopicPartition
from streaming.client.consumer.committed_offsets import GroupOffsets
from streaming.client.consumer.described_topics import DescribedTopics
from streaming.client.consumer.fetcher import Fetcher
from streaming.client.consumer.group_assignment import GroupAssignment
from streaming.client.consumer.subscription_state import SubscriptionState
from streaming.client.consumer.topic_pattern import Pattern
from streaming.client.consumer.types import ConsumerConfig
from streaming.client.coordinator_client import CoordinatorClient
from streaming.client.membership.consumer_groups.types import PartitionCallbacks, TopicSubscription
from streaming.client.membership.group_member import GroupMember


class ReconcilingCoordinator(PartitionCallbacks):
    """Updates the subscription state and the fetcher with what the coordinator assigns. Not thread-safe.

    The methods without a docstring are those of :class:`ConsumerCoordinator
    <streaming.client.consumer.group_coordination.ConsumerCoordinator>`.
    """

    def __init__(
        self, client: CoordinatorClient, config: ConsumerConfig, state: SubscriptionState, fetcher: Fetcher
    ) -> None:
        self._state = state
        self._fetcher = fetcher
        self._topics = DescribedTopics(config)
        self.member = GroupMember(client, self, config.member_config(), config.observer)
        self.offsets = GroupOffsets(client, self.member)
        self.assignment = GroupAssignment(config, state, fetcher, self.offsets, self.member)

    # ----------------------------------------------------------------------------------------------------------
    # Subscription

    def subscribe(self, topics: frozenset[str], pattern: Pattern | None) -> None:
        """Subscribe to topics or to a pattern; ``poll`` joins the group, or reports the change to it.

        Raises:
            RuntimeError: topics would replace a pattern, or a pattern topics.
        """
        self._state.check_kind_of(pattern)
        if (pattern, topics if pattern is None else None) != self._watched:
            self._topics.watch(topics, pattern)
        self._state.pattern = pattern
        if pattern is None:
            self._state.topics = topics

    @property
    def _watched(self) -> tuple[Pattern | None, frozenset[str] | None]:
        return self._state.pattern, self._state.topics if self._state.pattern is None else None

    def unsubscribe(self) -> None:
        """End the subscription and leave the group; a static member keeps its place until its session ends."""
        try:
            self.member.leave("the consumer unsubscribed from all topics")
        finally:
            self._state.topics, self._state.pattern = frozenset(), None
            self._topics.watch(frozenset(), None)

    def close(self) -> None:
        """Give up the partitions, and leave the group."""
        self._topics.close()
        self.member.close("the consumer is being closed")

    def poll(self, timeout: float) -> None:
        """Follow the group for at most ``timeout`` seconds. Raises as :meth:`GroupMember.poll`.

        A consumer joins once the brokers have described its topics.
        """
        deadline = time.monotonic() + timeout
        if self._fetcher.saw_unknown_partition:
            self._fetcher.saw_unknown_partition = False
            self._topics.request_refresh()
        self._topics.poll(timeout if self._topics.subscription is None else 0.0)
        if self._topics.subscription is not None:
            if self._state.pattern is not None:
                self._state.topics = frozenset(self._topics.subscription.topics)
            self.member.poll(max(0.0, deadline - time.monotonic()))

    # ----------------------------------------------------------------------------------------------------------
    # Callbacks of the member

    def subscription(self) -> TopicSubscription:
        """What the consumer subscribes to, as the brokers described it last."""
        assert self._topics.subscription is not None, "the member is polled once its topics are described"
        return self._topics.subscription

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Add partitions, and call the listener."""
        self._state.add(partitions)
        self.assignment.schedule_auto_commit()
        self._state.listener.on_partitions_assigned(partitions)

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition], *, leaving: bool) -> None:
        """Commit, and give partitions up: the consumer consumes until then, so the next owner needs its positions."""
        self.assignment.commit_before_revocation(leaving=leaving)
        self.assignment.revoke(partitions)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Drop all partitions without a commit."""
        self.assignment.lose_all()

    def on_unknown_topics(self) -> None:
        """Describe the topics again: the group knows some that this consumer has not seen yet."""
        self._topics.request_refresh()
