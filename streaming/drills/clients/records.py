"""The topic whose records consumers read, and its producer."""

import threading

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

LIMIT_SECONDS = 60.0
INTERVAL_SECONDS = 0.05
NOT_LOGGED = 0
"""librdkafka's ``log_level`` below errors: that a broker or a gateway is away is what a drill is about."""


def create_topic(bootstrap_servers: str, topic: str, partitions: int) -> None:
    """Create the topic of the records."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(LIMIT_SECONDS)


class RecordProducer(threading.Thread):
    """Appends records to all partitions of a topic, one after the other, at a steady rate until :meth:`stop`."""

    def __init__(self, bootstrap_servers: str, topic: str, partitions: int, records_per_second: int) -> None:
        super().__init__(name="records", daemon=True)
        self._topic = topic
        self._partitions = partitions
        self._records = round(records_per_second * INTERVAL_SECONDS)
        self._producer = Producer(
            {"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "log_level": NOT_LOGGED}
        )
        self._stopping = threading.Event()

    def stop(self, seconds: float = 1.0) -> int:
        """End the thread, and wait for what it has appended, at most ``seconds``; returns how many records are not."""
        self._stopping.set()
        if self.is_alive():
            self.join()
        return self._producer.flush(seconds)

    def run(self) -> None:
        number = 0
        while not self._stopping.wait(INTERVAL_SECONDS):
            for _ in range(self._records):
                self._producer.produce(self._topic, f"record {number}".encode(), partition=number % self._partitions)
                number += 1
            self._producer.poll(0)
