"""An ordinary Kafka client for the console sessions of the guide: confluent-kafka, at the address that it is given.

    python docs/console/orders.py produce 127.0.0.1:19092 --records 60
    python docs/console/orders.py consume 127.0.0.1:19092 billing-1

The first one creates the topic ``orders`` with six partitions, unless it exists. The second one is a member of the
group ``billing`` until Ctrl-C.
"""

import argparse
import threading
from contextlib import suppress

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC, GROUP = "orders", "billing"
PARTITIONS = 6
LIMIT_SECONDS = 60.0


def produce(bootstrap_servers: str, records: int) -> None:
    """Append orders to the topic, the same number to each partition, and create the topic if there is none."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    if TOPIC not in admin.list_topics(timeout=LIMIT_SECONDS).topics:
        for created in admin.create_topics([NewTopic(TOPIC, PARTITIONS)], operation_timeout=LIMIT_SECONDS).values():
            created.result(LIMIT_SECONDS)
        print(f"created {TOPIC} with {PARTITIONS} partitions")
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    for number in range(records):
        producer.produce(TOPIC, f"order {number}", partition=number % PARTITIONS)
    if left := producer.flush(LIMIT_SECONDS):
        raise SystemExit(f"{left} of {records} records were not acknowledged within {LIMIT_SECONDS:g} s")
    print(f"produced {records} orders")


def consume(bootstrap_servers: str, name: str, *, hangs: bool) -> None:
    """Read the topic in the group and commit what was read, until Ctrl-C; if it hangs, get stuck in the first order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": GROUP,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 10_000,
            "heartbeat.interval.ms": 1_000,
        }
    )

    def assigned(_: Consumer, partitions: list[TopicPartition]) -> None:
        print(f"{name} owns {' '.join(str(each.partition) for each in partitions)}", flush=True)

    consumer.subscribe([TOPIC], on_assign=assigned)
    billed = 0
    with suppress(KeyboardInterrupt):
        while True:
            orders = consumer.consume(1_000, timeout=0.5)
            if orders and hangs:
                print(f"{name} asks the payment service, which does not answer", flush=True)
                threading.Event().wait()
            if orders:
                consumer.commit(asynchronous=False)
                billed += len(orders)
                print(f"{name} has billed {billed} orders", flush=True)
    consumer.close()
    print(f"{name} has left")


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    producing = commands.add_parser("produce")
    producing.add_argument("bootstrap_servers")
    producing.add_argument("--records", type=int, default=60)
    consuming = commands.add_parser("consume")
    consuming.add_argument("bootstrap_servers")
    consuming.add_argument("name")
    consuming.add_argument("--hang", action="store_true", help="Get stuck in the first order.")
    given = parser.parse_args()
    if given.command == "produce":
        produce(given.bootstrap_servers, given.records)
    else:
        consume(given.bootstrap_servers, given.name, hangs=given.hang)


if __name__ == "__main__":
    main()
