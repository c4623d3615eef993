"""Consumers as applications, recorded rebalances, and helpers that the consumer's tests share."""

from collections.abc import Callable, Iterable, Sequence

from coordinator_logic.messages import LeaveGroupRequest, LeavingMember
from streaming.client import (
    Consumer,
    ConsumerRecord,
    CoordinatorClient,
    RebalanceListener,
    TopicPartition,
)
from tests.support.background_loop import BackgroundLoop
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.waiting import wait_until

PARTITIONS = 6
COOPERATIVE = ("cooperative-sticky",)

NewConsumer = Callable[..., Consumer]


class RecordingListener(RebalanceListener):
    """Records each call as its name and the partition numbers."""

    def __init__(self, on_revoked: Callable[[], object] = lambda: None) -> None:
        self.calls: list[tuple[str, list[int]]] = []
        self._on_revoked = on_revoked

    def _record(self, call: str, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append((call, [partition.partition for partition in partitions]))

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._record("revoked", partitions)
        self._on_revoked()

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._record("assigned", partitions)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._record("lost", partitions)


class App:
    """An application that polls on a thread of its own and keeps the records."""

    def __init__(
        self, consumer: Consumer, topic: str, listener: RebalanceListener | None = None, *, commits: bool = False
    ) -> None:
        self.consumer = consumer
        self.records: list[ConsumerRecord] = []
        self._commits = commits
        consumer.subscribe([topic], listener)
        self.loop = BackgroundLoop(self._poll_once)

    def _poll_once(self) -> None:
        records = self.consumer.poll(0.2)
        self.records += records
        if records and self._commits:
            self.consumer.commit_async()

    @property
    def owned(self) -> list[int]:
        return [partition.partition for partition in self.consumer.assignment]

    def close(self) -> None:
        self.loop.end()
        self.consumer.close()


def poll_until(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    """Poll until ``count`` records have arrived."""
    records: list[ConsumerRecord] = []

    def enough() -> bool:
        records.extend(consumer.poll(0.2))
        return len(records) >= count

    wait_until(enough, f"{count} records")
    return records


def poll_until_assigned(consumer: Consumer, count: int = PARTITIONS) -> None:
    def assigned() -> bool:
        assert consumer.poll(0.2) == []
        return len(consumer.assignment) == count

    wait_until(assigned, f"{count} partitions are assigned")


def positions_of(records: Iterable[ConsumerRecord]) -> list[tuple[int, int]]:
    """Partition and offset of each record."""
    return [(record.partition, record.offset) for record in records]


def share(*apps: App) -> bool:
    """Whether these applications own all partitions, in shares that differ by at most one."""
    owned = [app.owned for app in apps]
    sizes = [len(part) for part in owned]
    return sorted(n for part in owned for n in part) == list(range(PARTITIONS)) and max(sizes) - min(sizes) <= 1


def remove_member(coordinator: CoordinatorProcess, group_id: str, member_id: str) -> None:
    """Remove a member from its group, as an administrator does."""
    with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix) as admin:
        left = admin.leave_group(LeaveGroupRequest(group_id, members=[LeavingMember(member_id)]))
        assert left.members[0].error_code == 0
