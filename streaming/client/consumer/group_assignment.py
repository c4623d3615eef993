"""A consumer's assignment as its group changes it, with the listener's calls and the commits before a revocation."""

import logging
import time
from collections.abc import Iterable

from coordinator_logic.embedded_protocols import TopicPartition
from streaming.client.consumer.committed_offsets import GroupOffsets
from streaming.client.consumer.fetcher import Fetcher
from streaming.client.consumer.subscription_state import SubscriptionState
from streaming.client.consumer.types import ConsumerConfig, Offsets
from streaming.client.errors import CoordinatorError
from streaming.client.membership.group_member import GroupMember
from streaming.contract.output.text import counted

log = logging.getLogger(__name__)


class GroupAssignment:
    """Takes partitions from a consumer, and commits their positions with auto-commit. Not thread-safe."""

    def __init__(
        self,
        config: ConsumerConfig,
        state: SubscriptionState,
        fetcher: Fetcher,
        offsets: GroupOffsets,
        member: GroupMember,
    ) -> None:
        self._config = config
        self._state = state
        self._fetcher = fetcher
        self._offsets = offsets
        self._member = member
        self._next_auto_commit = 0.0

    def revoke(self, partitions: Iterable[TopicPartition]) -> None:
        """Call the listener, and give partitions up."""
        revoked = sorted(partitions)
        try:
            self._state.listener.on_partitions_revoked(revoked)
        finally:
            self._remove(revoked)

    def lose_all(self) -> None:
        """Drop all partitions without a commit: other members may own them already."""
        lost = self._state.assigned
        if lost:
            try:
                self._state.listener.on_partitions_lost(lost)
            finally:
                self._remove(lost)

    def _remove(self, partitions: Iterable[TopicPartition]) -> None:
        self._fetcher.stop(partitions)
        self._state.remove(partitions)

    # ----------------------------------------------------------------------------------------------------------
    # Auto-commit

    def auto_commit_if_due(self) -> None:
        """Commit the records of earlier polls if auto-commit is due, without waiting for the answer."""
        if self._config.enable_auto_commit and time.monotonic() >= self._next_auto_commit:
            self.schedule_auto_commit()
            positions = self._state.positions
            if positions and self._member.generation.is_member:
                self._offsets.commit_async(positions, _log_failure)

    def schedule_auto_commit(self) -> None:
        """Have the next automatic commit in ``auto_commit_interval_ms``."""
        self._next_auto_commit = time.monotonic() + self._config.auto_commit_interval_ms / 1000

    def commit_before_revocation(self, *, leaving: bool) -> None:
        """Commit all positions and wait for the answer, if auto-commit is enabled; a failure is logged."""
        positions = self._state.positions
        if not (self._config.enable_auto_commit and positions):
            return
        try:
            self._offsets.commit(positions, time.monotonic() + self._commit_timeout_ms(leaving=leaving) / 1000)
        except CoordinatorError as failure:
            _log_failure(positions, failure)

    def _commit_timeout_ms(self, *, leaving: bool) -> int:
        # A rebalance waits for this member for max_poll_interval_ms; half of it remains for joining.
        timeout_ms = self._config.request_timeout_ms if leaving else self._config.max_poll_interval_ms // 2
        return min(self._config.default_api_timeout_ms, timeout_ms)


def _log_failure(offsets: Offsets, failure: CoordinatorError | None) -> None:
    if failure is not None:
        log.warning("auto-commit of %s failed: %s", counted(len(offsets), "partition"), failure)
