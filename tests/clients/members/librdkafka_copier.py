"""A consume-transform-produce loop that uses librdkafka by confluent-kafka.

What a record makes and that it was consumed are one transaction. It takes the options of Kafka's
TransactionalMessageCopier and tells what that tells, and every step besides.
"""

import argparse
import random
from collections.abc import Callable
from functools import partial

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.clients.members.telling import tell_line

__all__: list[str] = []

POLL_SECONDS = 0.2
LIMIT_SECONDS = 60.0
CALL_SECONDS = 5.0
ABORTED = 0.25
"""Which part of the transactions is aborted."""

parser = argparse.ArgumentParser()
for name in ("broker-list", "input-topic", "output-topic", "consumer-group", "transactional-id"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--transaction-size", type=int, required=True)
options = parser.parse_args()

common = {
    "bootstrap.servers": options.broker_list,
    "reconnect.backoff.max.ms": 500,
    # A librdkafka that finds no broker forgets those that it knew and bootstraps again, and with them the group's
    # coordinator, for which send_offsets_to_transaction then waits for ever (confluentinc/librdkafka#5511, #5456; seen
    # with 2.16.0, also when it is a broker that restarts).
    "metadata.recovery.strategy": "none",
}
consumer = Consumer(
    common
    | {
        "group.id": options.consumer_group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
    }
)
producer = Producer(common | {"transactional.id": options.transactional_id, "linger.ms": 0})
consumed = 0


def tell(stage: str) -> None:
    tell_line({"stage": stage, "consumed": consumed})


def insist(call: Callable[[float], object]) -> None:
    """Call again as long as librdkafka says that it may be called again."""
    while True:
        try:
            call(CALL_SECONDS)
            return
        except KafkaException as failure:
            print(repr(failure), flush=True)
            if not failure.args[0].retriable():
                raise


def transact(records: list[Message]) -> None:
    """Copy these in one transaction, or none of them; raises what librdkafka raises."""
    global consumed
    producer.begin_transaction()
    tell("Begun")
    for record in records:
        producer.produce(options.output_topic, record.value(), partition=int(record.partition() or 0))
    tell("Produced")
    # Nothing may be on its way at an abort. What it finds back in the queue, because the connection broke, librdkafka
    # counts as never sent (`rd_kafka_toppar_purge_queues` in 2.16.0), and gives its sequence numbers to the next
    # transaction. A broker that did get it takes that one's records for repetitions, and drops them.
    if unanswered := producer.flush(LIMIT_SECONDS):
        raise SystemExit(f"{unanswered} records are still on their way")
    last = records[-1]
    end = TopicPartition(str(last.topic()), int(last.partition() or 0), int(last.offset() or 0) + 1)
    insist(partial(producer.send_offsets_to_transaction, [end], consumer.consumer_group_metadata()))
    tell("OffsetsSent")
    if random.random() < ABORTED:
        abort()
    else:
        insist(producer.commit_transaction)
        consumed += len(records)
        tell("Committed")


def abort() -> None:
    """End the transaction, and go back to where the group has committed."""
    insist(producer.abort_transaction)
    for partition in consumer.committed(consumer.assignment(), LIMIT_SECONDS):
        consumer.seek(partition if partition.offset >= 0 else TopicPartition(partition.topic, partition.partition, 0))
    tell("Aborted")


producer.init_transactions(LIMIT_SECONDS)
consumer.subscribe([options.input_topic])
while True:
    records = [record for record in consumer.consume(options.transaction_size, POLL_SECONDS) if not record.error()]
    if records:
        try:
            transact(records)
        except KafkaException as failure:
            if not failure.args[0].txn_requires_abort():
                raise
            abort()
