"""Consumers as applications, and what the tests of the consumer share."""

from collections.abc import Callable, Sequence

from coordinator_logic.messages import LeaveGroupRequest, LeavingMember
from streaming.client import (
    Consumer,
    ConsumerRecord,
    CoordinatorClient,
    RebalanceListener,
    TopicPartition,
)
from tests.streaming.client_support import (
    Loop,
    RunningCoordinator,
    wait_until,
)

PARTITIONS = 6
COOPERATIVE = ("cooperative-sticky",)

NewConsumer = Callable[..., Consumer]


class Notes(RebalanceListener):
    """Notes each call, as its name and the partition numbers."""

    def __init__(self, on_revoked: Callable[[], object] = lambda: None) -> None:
        self.calls: list[tuple[str, list[int]]] = []
        self._on_revoked = on_revoked

    def _note(self, call: str, partitions: Sequence[TopicPartition]) -> None:
        self.calls.append((call, [partition.partition for partition in partitions]))

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._note("revoked", partitions)
        self._on_revoked()

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._note("assigned", partitions)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._note("lost", partitions)


class App:
    """An application: polls on a thread, and keeps what it gets."""

    def __init__(
        self, consumer: Consumer, topic: str, listener: RebalanceListener | None = None, *, commits: bool = False
    ) -> None:
        self.consumer = consumer
        self.records: list[ConsumerRecord] = []
        self._commits = commits
        consumer.subscribe([topic], listener)
        self.loop = Loop(self._turn)

    def _turn(self) -> None:
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
    """Poll until so many records have come."""
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


def share(*apps: App) -> bool:
    """Whether these have all partitions between them, in shares that differ by one at most."""
    owned = [app.owned for app in apps]
    sizes = [len(part) for part in owned]
    return sorted(n for part in owned for n in part) == list(range(PARTITIONS)) and max(sizes) - min(sizes) <= 1


def expel(coordinator: RunningCoordinator, group_id: str, member_id: str) -> None:
    """Remove a member behind its back, as an administrator does."""
    with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix) as admin:
        left = admin.leave_group(LeaveGroupRequest(group_id, members=[LeavingMember(member_id)]))
        assert left.members[0].error_code == 0
