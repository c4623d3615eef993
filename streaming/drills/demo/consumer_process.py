"""A consumer of the demo, as a process of its own so that it can be killed.

It writes a :class:`~streaming.demo.consumer_reports.ConsumerReport` to standard output for everything that happens to
it. SIGTERM closes it cleanly.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from coordinator_logic.embedded_protocols import TopicPartition
from streaming.client import Consumer, MemberEvent, MemberEventKind, RebalanceListener
from streaming.demo.consumer_reports import ConsumerReport, write_report
from streaming.embedded.stop_signals import stop_requested

HEARTBEAT_INTERVAL_MS = 1_000
AUTO_COMMIT_INTERVAL_MS = 1_000
POLL_SECONDS = 0.2


class AssignmentReporter(RebalanceListener):
    """Writes a report of every change of the assignment."""

    def __init__(self) -> None:
        self.generation = -1
        self.owned: set[int] = set()

    def on_member_event(self, event: MemberEvent) -> None:
        """Remember the generation that the next callbacks belong to."""
        if event.kind is MemberEventKind.JOINED:
            self.generation = event.generation.generation_id

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Report all partitions that the consumer owns now, not only the added ones."""
        self.owned |= {partition.partition for partition in partitions}
        write_report(ConsumerReport("owns", self.generation, sorted(self.owned)))

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Report partitions that were given up in a rebalance or on closing."""
        self._remove("revoked", partitions)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Report partitions that were lost because the consumer was removed from the group."""
        self._remove("lost", partitions)

    def _remove(self, event: Literal["revoked", "lost"], partitions: Sequence[TopicPartition]) -> None:
        removed = {partition.partition for partition in partitions}
        self.owned -= removed
        if removed:
            write_report(ConsumerReport(event, self.generation, sorted(removed)))


def main(
    bootstrap_servers: Annotated[str, typer.Option()],
    group: Annotated[str, typer.Option()],
    topic: Annotated[str, typer.Option()],
    name: Annotated[str, typer.Option()],
    session_timeout_ms: Annotated[int, typer.Option()],
    instance_id: Annotated[str | None, typer.Option()] = None,
) -> None:
    """Consume until SIGTERM."""
    reporter = AssignmentReporter()
    consumer = Consumer(
        bootstrap_servers=bootstrap_servers,
        group_id=group,
        client_id=name,
        group_instance_id=instance_id,
        session_timeout_ms=session_timeout_ms,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        auto_commit_interval_ms=AUTO_COMMIT_INTERVAL_MS,
        auto_offset_reset="earliest",
        observer=reporter.on_member_event,
    )
    with stop_requested() as stop:
        consumer.subscribe([topic], reporter)
        while not stop.is_set():
            spans: dict[int, ConsumerReport] = {}
            for record in consumer.poll(POLL_SECONDS):
                span = spans.setdefault(record.partition, ConsumerReport("consumed", reporter.generation))
                span.partitions, span.last = [record.partition], record.offset
                span.first = record.offset if span.first < 0 else span.first
            for span in spans.values():
                write_report(span)
        consumer.close()
    write_report(ConsumerReport("closed"))


if __name__ == "__main__":
    typer.run(main)
