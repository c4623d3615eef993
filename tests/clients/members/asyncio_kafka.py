"""A member that uses aiokafka."""

import asyncio
import signal
from collections.abc import Iterable

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from tests.clients.members.reporting import POLL_SECONDS, EventReporter, consumer_settings, parse_options

ASSIGNORS = {
    assignor.name: assignor
    for assignor in (RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor)
}

options = parse_options()
reporter = EventReporter()


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        reporter.assigned(map(tuple, assigned))

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        reporter.revoked(map(tuple, revoked))


async def poll_and_commit(consumer: AIOKafkaConsumer) -> None:
    records = await consumer.getmany(timeout_ms=int(POLL_SECONDS * 1000))
    if not records:
        return
    offsets = {tuple(partition): [record.offset for record in batch] for partition, batch in records.items()}
    reporter.consumed(offsets)
    if not options.enable_autocommit:
        ends = {partition: found[-1] + 1 for partition, found in offsets.items()}
        try:
            await consumer.commit({TopicPartition(*name): end for name, end in ends.items()})
            reporter.committed(ends)
        except KafkaError as failure:
            reporter.committed(ends, repr(failure))


async def main() -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    consumer = AIOKafkaConsumer(**consumer_settings(options, ASSIGNORS))
    reporter.started()
    consumer.subscribe([options.topic], listener=Listener())
    await consumer.start()
    while not stop.is_set():
        await poll_and_commit(consumer)
    await consumer.stop()
    reporter.closed()


asyncio.run(main())
