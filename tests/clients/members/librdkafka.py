"""A member that uses librdkafka by confluent-kafka."""

from collections import defaultdict

from confluent_kafka import Consumer, KafkaException, TopicPartition

from streaming.signals import stop_requested
from tests.clients.members.telling import HEARTBEAT_INTERVAL_MS, POLL_SECONDS, Partition, Teller, parse_options

options = parse_options()
teller = Teller()
config = {
    "bootstrap.servers": options.bootstrap_server,
    "group.id": options.group_id,
    "session.timeout.ms": options.session_timeout,
    "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
    "partition.assignment.strategy": options.assignment_strategy,
    "auto.offset.reset": "earliest",
    "enable.auto.commit": options.enable_autocommit,
}
if options.group_instance_id:
    config["group.instance.id"] = options.group_instance_id


def names(partitions: list[TopicPartition]) -> list[Partition]:
    return [(partition.topic, partition.partition) for partition in partitions]


given_up = set[Partition]()
"""During the last call: librdkafka may still hand over what it had collected of these in the same call."""


def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
    given_up.clear()
    teller.assigned(names(partitions))


def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
    given_up.update(names(partitions))
    teller.revoked(names(partitions))


def poll_and_commit(consumer: Consumer) -> None:
    offsets = defaultdict[Partition, list[int]](list)
    given_up.clear()
    for message in consumer.consume(500, POLL_SECONDS):
        partition = str(message.topic()), int(message.partition() or 0)
        if message.error():
            print(message.error(), flush=True)
        elif partition not in given_up:
            offsets[partition].append(int(message.offset() or 0))
    if not offsets:
        return
    teller.consumed(offsets)
    if not options.enable_autocommit:
        ends = {partition: found[-1] + 1 for partition, found in offsets.items()}
        try:
            consumer.commit(offsets=[TopicPartition(*name, end) for name, end in ends.items()], asynchronous=False)
            teller.committed(ends)
        except KafkaException as failure:
            teller.committed(ends, str(failure))


with stop_requested() as stop:
    consumer = Consumer(config)
    teller.started()
    consumer.subscribe([options.topic], on_assign=assigned, on_revoke=revoked)
    while not stop.is_set():
        poll_and_commit(consumer)
    consumer.close()
    teller.closed()
