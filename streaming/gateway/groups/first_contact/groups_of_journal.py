"""Which groups this coordinator has had: those that its journal names."""

import threading
from collections.abc import Iterable

from streaming.client.errors import CoordinatorNotAvailable
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.client.topic_consumer import EAGER, TopicConsumer
from streaming.gateway.options import CLIENT_ID

TIMEOUT_SECONDS = 10.0
FETCH_BYTES = 8 * 1024 * 1024

SETTINGS: LibrdkafkaConfig = {**EAGER, "fetch.message.max.bytes": FETCH_BYTES}


class GroupsOfJournal:
    """The groups that the journal names, from its beginning on. Any thread may ask.

    The journal outlives what else remembers a group: its state and its line in the directory end with its deletion. The
    first question reads all of it, later ones what was appended since. Only the hashes of the ids are kept, some 60
    bytes for each group.
    """

    def __init__(self, bootstrap_servers: str, topic: str, config: LibrdkafkaConfig) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._topic = topic
        self._config = config
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._positions: dict[int, int] = {}
        self._hashes: set[int] = set()

    def among(self, group_ids: Iterable[str]) -> set[str]:
        """Those of the groups that the journal names, up to its present end.

        Raises as :class:`TopicConsumer`, and CoordinatorNotAvailable after :meth:`close`.
        """
        with self._lock:
            self._read_on()
            return {group_id for group_id in group_ids if hash(group_id.encode()) in self._hashes}

    def close(self) -> None:
        """End a reading that goes on."""
        self._closing.set()

    def _read_on(self) -> None:
        with TopicConsumer(
            self._bootstrap_servers, self._topic, CLIENT_ID, self._config, TIMEOUT_SECONDS, SETTINGS
        ) as journal:
            journal.assign({partition: self._positions.get(partition, 0) for partition in journal.partitions})
            for record in journal.read_to_end():
                if self._closing.is_set():
                    raise CoordinatorNotAvailable("the gateway stops")
                key = record.key()
                if key is not None:
                    self._hashes.add(hash(key))
            self._positions = dict(journal.positions)
