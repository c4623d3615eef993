"""Publishes the rebalances of a journal on from where the topic ends."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from coordinator_logic.records import JournalEntry
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.contract.topics import TopicNames
from streaming.explain.publishing.outbox import Outbox
from streaming.explain.publishing.publisher import Publisher
from streaming.explain.publishing.records import PublishedRebalance
from streaming.explain.publishing.sending import sent
from streaming.explain.publishing.topic_end import published_positions
from streaming.job.topics.creation import ensure_topic
from streaming.job.topics.layout import rebalances_topic
from streaming.journal.reader import JournalReader


class Publication:
    """The topic of rebalances, which is created if it does not exist; the process publishes alone from now on.

    Args:
        config: librdkafka's configuration, with ``bootstrap.servers``.
        names: The names of the topics.
        client_id: The client id of the consumer that reads the topic.
        timeout: The limit of each answer of the brokers, in seconds.
        report: Is called with a line when it is ready.

    Raises:
        CannotRun: the topic cannot be created, or has no record that a publication has written.
        CoordinatorError: the brokers do not answer, or the topic cannot be read.
    """

    def __init__(
        self,
        config: LibrdkafkaConfig,
        names: TopicNames,
        client_id: str,
        timeout: float,
        report: Callable[[str], object],
    ) -> None:
        ensure_topic({key: str(value) for key, value in config.items()}, rebalances_topic(names))
        self._topic = names.rebalances
        self._report = report
        self._publisher = Publisher(config, self._topic, timeout)
        # Only now: an older process may have written until then.
        self._positions = published_positions(config, self._topic, client_id, timeout)

    def publish(
        self, reader: JournalReader, entries: Iterable[JournalEntry | None], *, begins_now: bool
    ) -> Iterator[PublishedRebalance]:
        """Publish what ends with the entries that ``reader`` yields; yields each record once it is published.

        A topic that never had a record begins with the first of these entries, or with the first one from now on.

        Raises:
            CannotRun: another process has taken over.
            CoordinatorError: the brokers do not answer, or the journal cannot be read.
        """
        ends = reader.ends(reader.partitions)
        positions = first_positions(self._positions, ends, begins_now=begins_now)
        self._report(f"publishing to {self._topic}{'' if positions else ', from the beginning of the journal'}")
        return sent(entries, lambda: reader.place, Outbox(positions), self._publisher.publish)


def first_positions(
    published: Mapping[int, int] | None, ends: Mapping[int, int], *, begins_now: bool
) -> Mapping[int, int]:
    """Where to begin: by partition of the journal, the offset of the first entry of which nothing was published.

    ``published`` is what the topic says, None if it never had a record; ``ends`` are the ends of the journal. A
    position behind the end is that of a journal that was deleted.
    """
    if published is None:
        return ends if begins_now else {}
    return {partition: end for partition, end in published.items() if end <= ends.get(partition, 0)}
