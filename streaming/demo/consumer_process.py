"""One consumer of the demo, in a process of its own so that it can really be killed.

Tells what happens to it as JSON lines on standard output, one :class:`ConsumerReport` each. SIGTERM closes it in
order.
"""

import sys
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
import typer

from coordinator_logic.consumer_protocol import TopicPartition
from streaming.client import Consumer, MemberEvent, MemberEventKind, RebalanceListener
from streaming.signals import stop_requested

HEARTBEAT_INTERVAL_MS = 1_000
AUTO_COMMIT_INTERVAL_MS = 1_000
POLL_SECONDS = 0.2


class ConsumerReport(msgspec.Struct, rename="camel", omit_defaults=True):
    """Something that happened to a consumer.

    owns: it has these ``partitions`` in this ``generation``. revoked, lost: it has given up ``partitions``.
    consumed: it has been handed the records ``first`` to ``last`` of one partition. closed: it ends.
    """

    event: Literal["owns", "revoked", "lost", "consumed", "closed"]
    generation: int = -1
    partitions: list[int] = []
    first: int = -1
    last: int = -1


def tell(report: ConsumerReport) -> None:
    """Write one line, at once: the next thing to happen may be a kill -9."""
    sys.stdout.write(msgspec.json.encode(report).decode() + "\n")
    sys.stdout.flush()


class Teller(RebalanceListener):
    """Tells of every change of the assignment."""

    def __init__(self) -> None:
        self.generation = -1
        self.owned: set[int] = set()

    def on_member_event(self, event: MemberEvent) -> None:
        """Keep the generation that the coming callbacks belong to."""
        if event.kind is MemberEventKind.JOINED:
            self.generation = event.generation.generation_id

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """All that it owns now, not only what came."""
        self.owned |= {partition.partition for partition in partitions}
        tell(ConsumerReport("owns", self.generation, sorted(self.owned)))

    def on_partitions_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Given up in good order."""
        self._give_up("revoked", partitions)

    def on_partitions_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Taken away."""
        self._give_up("lost", partitions)

    def _give_up(self, event: Literal["revoked", "lost"], partitions: Sequence[TopicPartition]) -> None:
        gone = {partition.partition for partition in partitions}
        self.owned -= gone
        if gone:
            tell(ConsumerReport(event, self.generation, sorted(gone)))


def main(
    bootstrap_servers: Annotated[str, typer.Option()],
    group: Annotated[str, typer.Option()],
    topic: Annotated[str, typer.Option()],
    name: Annotated[str, typer.Option()],
    session_timeout_ms: Annotated[int, typer.Option()],
    instance_id: Annotated[str | None, typer.Option()] = None,
) -> None:
    """Consume until SIGTERM."""
    teller = Teller()
    consumer = Consumer(
        bootstrap_servers=bootstrap_servers,
        group_id=group,
        client_id=name,
        group_instance_id=instance_id,
        session_timeout_ms=session_timeout_ms,
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        auto_commit_interval_ms=AUTO_COMMIT_INTERVAL_MS,
        auto_offset_reset="earliest",
        observer=teller.on_member_event,
    )
    with stop_requested() as stop:
        consumer.subscribe([topic], teller)
        while not stop.is_set():
            spans: dict[int, ConsumerReport] = {}
            for record in consumer.poll(POLL_SECONDS):
                span = spans.setdefault(record.partition, ConsumerReport("consumed", teller.generation))
                span.partitions, span.last = [record.partition], record.offset
                span.first = record.offset if span.first < 0 else span.first
            for span in spans.values():
                tell(span)
        consumer.close()
    tell(ConsumerReport("closed"))


if __name__ == "__main__":
    typer.run(main)
