"""Publishes the rebalances of a journal on from where the topic ends."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from coordinator_logic.records import JournalEntry
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.contract.topics import TopicNames
from streaming.explain.publishing.outbox import Outbox, sent
from streaming.explain.publishing.publisher import Publisher
from streaming.explain.publishing.records import PublishedRebalance
from streaming.explain.publishing.topic_end import published_positions
from streaming.job.topics.creation import ensure_topic
from streaming.job.topics.layout import rebalances_topic
from streaming.journal.reader import JournalReader


def publish_rebalances(
    config: LibrdkafkaConfig,
    names: TopicNames,
    timeout: float,
    reader: JournalReader,
    entries: Iterable[JournalEntry | None],
    report: Callable[[str], object],
    *,
    client_id: str,
    begins_now: bool,
    since: int = 0,
) -> Iterator[PublishedRebalance]:
    """Publish what ends with the entries that ``reader`` yields; yields each record once it is published.

    The topic of rebalances is created if it does not exist, and the process publishes alone from now on.

    Args:
        config: librdkafka's configuration, with ``bootstrap.servers``.
        names: The names of the topics.
        timeout: The limit of each answer of the brokers, in seconds.
        reader: Reads the entries.
        entries: Those to publish from; None when none has come for a moment.
        report: Is called with a line when it is ready.
        client_id: The client id of the consumer that reads the topic.
        since: What ended before this time (ms) is not published.
        begins_now: Whether a topic that never had a record begins with the first entry from now on, and not with the
            first of these.

    Raises:
        CannotRun: the topic cannot be created, has no record that a publication has written, or another process has
            taken over.
        CoordinatorError: the brokers do not answer, or the topic or the journal cannot be read.
    """
    topic = names.rebalances
    ensure_topic({key: str(value) for key, value in config.items()}, rebalances_topic(names))
    publisher = Publisher(config, topic, timeout)
    # Only now: an older process may have written until then.
    published = published_positions(config, topic, client_id, timeout)
    positions = first_positions(published, reader.ends(reader.partitions), begins_now=begins_now)
    report(f"publishing to {topic}{'' if positions else ', from the beginning of the journal'}")
    return sent(entries, lambda: reader.place, Outbox(positions, since), publisher.publish)


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
