"""Reads a topic from its beginning, on a thread that survives errors."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

from confluent_kafka import Consumer, Message

from streaming.client.errors import CoordinatorError, CoordinatorNotAvailable, NotAuthorized
from streaming.client.librdkafka import LibrdkafkaConfig, new_consumer, required_partition_count
from streaming.client.topic_consumer import GROWTH_LIMIT_SECONDS, GROWTH_SECONDS, TO_END

__all__ = ["TopicReader"]

log = logging.getLogger(__name__)

POLL_SECONDS = 0.2
RETRY_SECONDS = 0.5

CLOSE_SECONDS = 2.0
"""How long :meth:`TopicReader.close` waits. A request for metadata may wait for the brokers several times as long."""


class TopicReader:
    """A thread that calls ``read`` with a consumer, and again with a new one whenever ``read`` returns or raises.

    ``read`` assigns partitions to the consumer and iterates over :meth:`records`. It may raise CoordinatorError, e.g.
    because the topic does not exist yet; that is logged and retried after :data:`RETRY_SECONDS`. So is any other
    exception, also one that prevents the consumer; ``on_failure`` is called on the thread for each of those.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        client_id: str,
        config: LibrdkafkaConfig,
        read: Callable[[Consumer], None],
        on_failure: Callable[[], object] = lambda: None,
    ) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._client_id = client_id
        self._config = config
        self._read = read
        self._on_failure = on_failure
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{client_id}-reads-{topic}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """End the thread, and wait for its end; a request that the brokers do not answer is left to it."""
        self._closing.set()
        self._thread.join(CLOSE_SECONDS)

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def records(self, consumer: Consumer) -> Iterator[Message]:
        """Everything that the consumer polls, including errors and ends of partitions.

        They end with :meth:`close`, and when the topic has more partitions than the consumer was assigned: then
        ``read`` begins again, with all of them.
        """
        assigned = len(consumer.assignment())
        look_at = time.monotonic() + GROWTH_SECONDS
        while not self._closing.is_set():
            record = consumer.poll(POLL_SECONDS)
            if record is not None:
                yield record
            if time.monotonic() >= look_at:
                if self._has_more_partitions(consumer, assigned):
                    log.warning("topic %s has got more partitions: reading all of them", self._topic)
                    return
                look_at = time.monotonic() + GROWTH_SECONDS

    def _has_more_partitions(self, consumer: Consumer, than: int) -> bool:
        with suppress(CoordinatorError):
            return required_partition_count(consumer, self._topic, GROWTH_LIMIT_SECONDS) > than
        return False

    def _run(self) -> None:
        refusal = None
        while not self._closing.is_set():
            try:
                with closing(self._new_consumer()) as consumer:
                    self._read(consumer)
            except NotAuthorized as failure:
                # Once: it is tried again until somebody grants the right.
                log.log(logging.DEBUG if str(failure) == refusal else logging.WARNING, "%s", failure.message)
                refusal = str(failure)
            except CoordinatorNotAvailable as failure:
                log.debug("topic %s cannot be read yet, retrying: %s", self._topic, failure)
            except CoordinatorError as failure:
                log.warning("topic %s cannot be read, retrying: %s", self._topic, failure)
            except Exception:
                # The thread must survive: everything that depends on the topic would stop with it.
                log.exception("topic %s cannot be read, retrying", self._topic)
                self._on_failure()
            self._closing.wait(RETRY_SECONDS)

    def _new_consumer(self) -> Consumer:
        return new_consumer(self._bootstrap_servers, self._client_id, self._config, TO_END)
