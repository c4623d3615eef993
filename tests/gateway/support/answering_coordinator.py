"""A coordinator without a state: it answers every request at once, so that only the gateway's own time is measured.

``python -m tests.gateway.support.answering_coordinator BOOTSTRAP_SERVERS TOPIC_PREFIX``. Heartbeats succeed; every
other request is answered that its group does not exist.
"""

import sys

import msgspec
from confluent_kafka import Consumer, Producer, TopicPartition

from coordinator_logic.errors import Error
from coordinator_logic.messages import HeartbeatResponse, Message, RequestEnvelope, ResponseEnvelope
from streaming.contract.topics import TopicNames
from tests.support.processes import Process
from tests.support.topics import create_topic, unique

READY = "answering"
PARTITIONS = 2
MAX_BATCH = 100
_decode_request = msgspec.json.Decoder(RequestEnvelope).decode
_encode = msgspec.json.Encoder().encode


class AnsweringCoordinator(Process):
    """The coordinator as a process of its own, on new topics with the prefix ``topic_prefix``."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.topic_prefix = unique("answered") + "-"
        self._bootstrap_servers = bootstrap_servers
        command = [sys.executable, "-m", __name__, bootstrap_servers, self.topic_prefix]
        super().__init__("answering coordinator", command)

    def start(self) -> None:
        """Create the topics, start the process, and return when it reads them."""
        topics = TopicNames(self.topic_prefix)
        for topic in (topics.requests, topics.responses, topics.directory):
            create_topic(self._bootstrap_servers, topic, PARTITIONS)
        super().start()
        self.await_line("that it answers", lambda line: line == READY)


def _serve(bootstrap_servers: str, topic_prefix: str) -> None:
    topics = TopicNames(topic_prefix)
    producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 0})
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "unused", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topics.requests, number, 0) for number in range(PARTITIONS)])
    print(READY, flush=True)
    while True:
        for record in consumer.consume(MAX_BATCH, 0.001):
            request = _decode_request(record.value() or b"")
            is_heartbeat = request.api == "Heartbeat"
            body: Message | None = HeartbeatResponse() if is_heartbeat else None
            error = Error.NONE if is_heartbeat else Error.GROUP_ID_NOT_FOUND
            answer = ResponseEnvelope(
                request.api, request.version, request.correlation_id, "group", error, msgspec.Raw(_encode(body))
            )
            producer.produce(topics.responses, _encode(answer), partition=request.reply_partition)
        producer.poll(0)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
