"""A consume-transform-produce loop that uses librdkafka, through confluent-kafka.

Each transaction holds the output records and the offsets of the input. The options and events are those of Kafka's
TransactionalMessageCopier; in addition, the protocol can be chosen, and each stage of a transaction is reported.
"""

import argparse
import random
from collections.abc import Callable
from functools import partial

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.clients.members.reporting import report

__all__: list[str] = []

POLL_SECONDS = 0.2
LIMIT_SECONDS = 60.0
CALL_SECONDS = 5.0
ABORT_PROBABILITY = 0.25

parser = argparse.ArgumentParser()
for name in ("broker-list", "input-topic", "output-topic", "consumer-group", "transactional-id"):
    parser.add_argument(f"--{name}", required=True)
parser.add_argument("--transaction-size", type=int, required=True)
parser.add_argument("--group-protocol", default="classic")
options = parser.parse_args()

common = {
    "bootstrap.servers": options.broker_list,
    "reconnect.backoff.max.ms": 500,
    # When librdkafka 2.16.0 reaches no broker, it bootstraps again and forgets the group coordinator. Then
    # send_offsets_to_transaction never returns (confluentinc/librdkafka#5511, #5456), even without a gateway.
    "metadata.recovery.strategy": "none",
}
consumer = Consumer(
    common
    | {
        "group.id": options.consumer_group,
        "group.protocol": options.group_protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
    }
)
producer = Producer(common | {"transactional.id": options.transactional_id, "linger.ms": 0})
copied = 0


def report_stage(stage: str) -> None:
    report({"stage": stage, "totalProcessed": copied})


def retry(call: Callable[[float], object]) -> None:
    """Repeat a call while librdkafka reports a retriable error."""
    while True:
        try:
            call(CALL_SECONDS)
            return
        except KafkaException as failure:
            print(repr(failure), flush=True)
            if not failure.args[0].retriable():
                raise


def committed() -> list[TopicPartition]:
    """The committed offsets of the assignment. Raises KafkaException."""
    while True:
        try:
            return consumer.committed(consumer.assignment(), LIMIT_SECONDS)
        except KafkaException as failure:
            # In the consumer group protocol, librdkafka 2.12 to 2.16 gives a heartbeat one interval to be answered.
            # Then it closes the connection, and what is in flight or waits to be sent fails
            # (`rd_kafka_ConsumerGroupHeartbeatRequest`, `rd_kafka_broker_fail`).
            if failure.args[0].code() not in (KafkaError._TIMED_OUT, KafkaError._TIMED_OUT_QUEUE):
                raise
            print(repr(failure), flush=True)


def transact(records: list[Message]) -> None:
    """Copy records in one transaction. Raises KafkaException."""
    global copied
    producer.begin_transaction()
    report_stage("Begun")
    for record in records:
        producer.produce(options.output_topic, record.value(), partition=int(record.partition() or 0))
    report_stage("Produced")
    # No record may be in flight at an abort: librdkafka 2.16.0 reuses the sequence numbers of records whose
    # acknowledgement was lost (`rd_kafka_toppar_purge_queues`), and the broker drops the next ones as duplicates.
    if in_flight := producer.flush(LIMIT_SECONDS):
        raise SystemExit(f"{in_flight} records are still in flight")
    last = records[-1]
    end = TopicPartition(str(last.topic()), int(last.partition() or 0), int(last.offset() or 0) + 1)
    retry(partial(producer.send_offsets_to_transaction, [end], consumer.consumer_group_metadata()))
    report_stage("OffsetsSent")
    if random.random() < ABORT_PROBABILITY:
        abort()
    else:
        retry(producer.commit_transaction)
        copied += len(records)
        report_stage("Committed")


def abort() -> None:
    """Abort the transaction, and seek to the committed offsets."""
    retry(producer.abort_transaction)
    for partition in committed():
        consumer.seek(partition if partition.offset >= 0 else TopicPartition(partition.topic, partition.partition, 0))
    report_stage("Aborted")


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
