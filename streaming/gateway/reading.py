"""Topics that a gateway reads from their beginning for as long as it runs."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

from confluent_kafka import Consumer, Message

from streaming.client.errors import CoordinatorError, CoordinatorNotAvailable
from streaming.client.librdkafka import LibrdkafkaConfig, new_consumer

__all__ = ["TopicReader"]

log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
RETRY_SECONDS = 0.5
SETTINGS: LibrdkafkaConfig = {"enable.partition.eof": True, "auto.offset.reset": "earliest"}


class TopicReader:
    """A thread that calls ``read`` with a consumer, and again with a new one when that ends or fails.

    ``read`` assigns partitions and takes what :meth:`records` gives. It may raise: the topic may not be there yet.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        client_id: str,
        config: LibrdkafkaConfig,
        read: Callable[[Consumer], None],
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._client_id = client_id
        self._config = config
        self._read = read
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{client_id}-reads-{topic}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        self._thread.join()

    def records(self, consumer: Consumer) -> Iterator[Message]:
        """What the consumer polls, errors and ends of partitions too, until this is closed."""
        while not self._closing.is_set():
            record = consumer.poll(POLL_SECONDS)
            if record is not None:
                yield record

    def _run(self) -> None:
        while not self._closing.is_set():
            with closing(new_consumer(self._bootstrap_servers, self._client_id, self._config, SETTINGS)) as consumer:
                try:
                    self._read(consumer)
                except CoordinatorNotAvailable as failure:
                    log.debug("topic %s cannot be read yet: %s", self._topic, failure)
                except CoordinatorError as failure:
                    log.warning("topic %s cannot be read: %s", self._topic, failure)
                except Exception:
                    # Without this thread, what depends on the topic would stand still for ever.
                    log.exception("reading %s", self._topic)
            self._closing.wait(RETRY_SECONDS)
