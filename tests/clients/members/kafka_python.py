"""A member that uses kafka-python."""

from collections.abc import Iterable

from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaConnectionError, KafkaError
from kafka.structs import OffsetAndMetadata

from streaming.drills.demo.consumer_process import KAFKA_PYTHON_POLL_SECONDS
from streaming.embedded.stop_signals import stop_requested
from tests.clients.members.reporting import EventReporter, consumer_settings, parse_options

ASSIGNORS = {
    assignor.name: assignor
    for assignor in (
        RangePartitionAssignor,
        RoundRobinPartitionAssignor,
        StickyPartitionAssignor,
        CooperativeStickyAssignor,
    )
}

options = parse_options()
reporter = EventReporter()


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        reporter.assigned(map(tuple, assigned))

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        reporter.revoked(map(tuple, revoked))


def poll_and_commit(consumer: KafkaConsumer) -> None:
    try:
        records = consumer.poll(timeout_ms=KAFKA_PYTHON_POLL_SECONDS * 1000)
    except KafkaConnectionError as failure:
        # Raised while no broker is reachable; other clients retry internally.
        print(repr(failure), flush=True)
        return
    if not records:
        return
    offsets = {tuple(partition): [record.offset for record in batch] for partition, batch in records.items()}
    reporter.consumed(offsets)
    if not options.enable_autocommit:
        ends = {partition: found[-1] + 1 for partition, found in offsets.items()}
        try:
            consumer.commit({TopicPartition(*name): OffsetAndMetadata(end, "", -1) for name, end in ends.items()})
            reporter.committed(ends)
        except KafkaError as failure:
            reporter.committed(ends, repr(failure))


with stop_requested() as stop:
    consumer = KafkaConsumer(**consumer_settings(options, ASSIGNORS))
    reporter.started()
    consumer.subscribe([options.topic], listener=Listener())
    while not stop.is_set():
        poll_and_commit(consumer)
    consumer.close()
    reporter.closed()
