"""A member that uses librdkafka, through confluent-kafka."""

from collections import defaultdict

from confluent_kafka import Consumer, KafkaException, TopicPartition

from streaming.embedded.stop_signals import stop_requested
from tests.clients.members.reporting import (
    HEARTBEAT_INTERVAL_MS,
    POLL_SECONDS,
    EventReporter,
    Partition,
    parse_options,
)

OFFSETS_NOT_FETCHED = "Failed to fetch committed offsets"

options = parse_options()
reporter = EventReporter()
config = {
    "bootstrap.servers": options.bootstrap_server,
    "group.id": options.group_id,
    "group.protocol": options.group_protocol,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": options.enable_autocommit,
}
if options.group_protocol == "classic":
    config["session.timeout.ms"] = options.session_timeout
    config["heartbeat.interval.ms"] = HEARTBEAT_INTERVAL_MS
    config["partition.assignment.strategy"] = options.assignment_strategy
elif options.group_remote_assignor:
    config["group.remote.assignor"] = options.group_remote_assignor
if options.group_instance_id:
    config["group.instance.id"] = options.group_instance_id


def names(partitions: list[TopicPartition]) -> list[Partition]:
    return [(partition.topic, partition.partition) for partition in partitions]


revoked_during_poll = set[Partition]()
"""Partitions revoked during the last poll, of which librdkafka may still return records from the same poll."""


def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
    revoked_during_poll.clear()
    reporter.assigned(names(partitions))


def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
    revoked_during_poll.update(names(partitions))
    reporter.revoked(names(partitions))


def fetch_offsets_again(consumer: Consumer) -> None:
    """Assign the partitions again whose committed offsets librdkafka has not got."""
    unknown = [partition for partition in consumer.position(consumer.assignment()) if partition.offset < 0]
    consumer.incremental_unassign(unknown)
    consumer.incremental_assign([TopicPartition(partition.topic, partition.partition) for partition in unknown])


def poll_and_commit(consumer: Consumer) -> None:
    offsets = defaultdict[Partition, list[int]](list)
    revoked_during_poll.clear()
    for message in consumer.consume(500, POLL_SECONDS):
        partition = str(message.topic()), int(message.partition() or 0)
        failure = message.error()
        if failure:
            print(failure, flush=True)
            # If the connection is lost while committed offsets are being fetched, and the assignment has changed since
            # the request, librdkafka 2.12 to 2.16 does not ask again (`rd_kafka_assignment_handle_OffsetFetch`).
            if options.group_protocol == "consumer" and OFFSETS_NOT_FETCHED in failure.str():
                fetch_offsets_again(consumer)
        elif partition not in revoked_during_poll:
            offsets[partition].append(int(message.offset() or 0))
    if not offsets:
        return
    reporter.consumed(offsets)
    if not options.enable_autocommit:
        ends = {partition: found[-1] + 1 for partition, found in offsets.items()}
        try:
            consumer.commit(offsets=[TopicPartition(*name, end) for name, end in ends.items()], asynchronous=False)
            reporter.committed(ends)
        except KafkaException as failure:
            reporter.committed(ends, str(failure))


with stop_requested() as stop:
    consumer = Consumer(config)
    reporter.started()
    consumer.subscribe([options.topic], on_assign=assigned, on_revoke=revoked)
    while not stop.is_set():
        poll_and_commit(consumer)
    consumer.close()
    reporter.closed()
