"""Compare the topics on the brokers with what the job needs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, TopicCollection, Uuid
from confluent_kafka.admin import AdminClient, ConfigResource, TopicDescription

from streaming.contract.output.text import counted
from streaming.contract.topics import MAX_REQUEST_BYTES, TopicNames
from streaming.job.topics.layout import (
    DAY_MS,
    HOUR_MS,
    LOG_APPEND_TIME,
    TIMESTAMP_TYPE,
    Partitions,
    RequiredTopic,
    TopicLayout,
    required_topics,
)

ADMIN_LIMIT_SECONDS = 30.0

OUTAGE_MS = DAY_MS
"""The outage of the job that the requests topic should outlast; see "Outages" in docs/operations/runbook.md."""

ANSWER_LIFE_MS = 5 * 60_000
"""How long an answer should stay in the responses topic: as long as a rebalance may take by Kafka's defaults."""

TOMBSTONE_LIFE_MS = HOUR_MS
"""How long a tombstone should stay in a compacted topic, for readers that were disconnected."""

SAFE_REPLICAS = 3
"""From this replication factor on, a topic can require two replicas for every write and still lose a broker."""

URL_SAFE = str.maketrans("+/", "-_")

NO_TOPIC_ID = "A" * 22
"""What a broker without topic ids (before Kafka 2.8) reports: 16 zero bytes in base64."""


@dataclass(frozen=True)
class TopicInspection:
    """What :func:`inspect_topics` found.

    ``problems`` keep the job from running; ``risks`` do not. Both have a line for each, with the remedy in brackets.
    """

    missing: list[str]
    """The names of the topics that do not exist."""
    problems: list[str]
    risks: list[str]
    partitions: Mapping[str, int] = field(default_factory=dict)
    """The number of partitions of each topic that exists, by name."""
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """The ids of the topics that exist, by name. A topic that is deleted and created again has a new one."""

    def partition_counts(self, names: TopicNames) -> Partitions:
        """The counts that other components need. Raises KeyError if one of the topics is missing."""
        counts = self.partitions
        return Partitions(*(counts[each] for each in (names.requests, names.responses, names.directory, names.journal)))


@dataclass(frozen=True)
class ExistingTopic:
    """A topic with what the brokers report; ``replicas`` are the fewest of any partition."""

    topic: RequiredTopic
    partitions: int
    replicas: int
    settings: Mapping[str, str]

    def number(self, key: str) -> int:
        """The value of a numeric setting."""
        return int(self.settings[key])

    def alter(self, key: str, value: object) -> str:
        """The command that changes a setting."""
        tool = "kafka-configs.sh --alter --entity-type topics"
        return f"{tool} --entity-name {self.topic.name} --add-config {key}={value}"


def inspect_topics(
    admin: AdminClient, names: TopicNames, layout: TopicLayout, limit_seconds: float = ADMIN_LIMIT_SECONDS
) -> TopicInspection:
    """Compare the topics with what the job needs, and change nothing. A topic is missing if a broker does not know it.

    ``limit_seconds`` limits each request to the brokers. Raises KafkaException.
    """
    topics = required_topics(names, layout)
    described = describe_topics(admin, [topic.name for topic in topics], limit_seconds)
    # Another broker answers, which may not know a topic yet that was created a moment ago.
    settings = topic_settings(admin, described, limit_seconds)
    described = {name: description for name, description in described.items() if name in settings}
    existing = [
        _existing(topic, described[topic.name], settings[topic.name]) for topic in topics if topic.name in described
    ]
    brokers = len(admin.describe_cluster(request_timeout=limit_seconds).result().nodes)
    return TopicInspection(
        missing=[topic.name for topic in topics if topic.name not in described],
        problems=[*problems_of(existing, names, layout)],
        risks=[*risks_of(existing, names, brokers)],
        partitions={name: len(description.partitions) for name, description in described.items()},
        topic_ids={
            name: topic_id
            for name, description in described.items()
            if (topic_id := text_of_id(description.topic_id)) is not None
        },
    )


def describe_topics(admin: AdminClient, names: Sequence[str], limit_seconds: float) -> dict[str, TopicDescription]:
    """Describe the topics, by name, without those that do not exist. Raises KafkaException.

    Not for every second: confluent-kafka 2.16.1 leaks a ``Uuid``, 102 bytes, for each topic that it describes.
    """
    described = {}
    futures = admin.describe_topics(TopicCollection(list(names)), request_timeout=limit_seconds)
    for name, future in futures.items():
        try:
            described[name] = future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    return described


def topic_settings(admin: AdminClient, names: Iterable[str], limit_seconds: float) -> dict[str, dict[str, str]]:
    """The settings of the topics, by name, without those that do not exist. Raises KafkaException."""
    resources = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
    if not resources:
        return {}
    settings = {}
    for resource, future in admin.describe_configs(resources, request_timeout=limit_seconds).items():
        try:
            settings[resource.name] = {key: entry.value for key, entry in future.result().items()}
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    return settings


def partition_counts(admin: AdminClient, names: Iterable[str], limit_seconds: float) -> dict[str, int]:
    """The number of partitions of each topic that exists, by name. Raises KafkaException.

    ``admin`` needs ``allow.auto.create.topics=false``: otherwise brokers may create a topic that is missing.
    ``limit_seconds`` limits each topic's request.
    """
    counts = {}
    for name in names:
        found = admin.list_topics(name, timeout=limit_seconds).topics[name]
        if found.error is None:
            counts[name] = len(found.partitions)
        elif found.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise KafkaException(found.error)
    return counts


def text_of_id(topic_id: Uuid) -> str | None:
    """A topic's id as Kafka prints it, safe in a file's name; None for the id of a broker that has none."""
    text = str(topic_id).translate(URL_SAFE)
    return None if text == NO_TOPIC_ID else text


def _existing(topic: RequiredTopic, description: TopicDescription, settings: Mapping[str, str]) -> ExistingTopic:
    replicas = min(len(partition.replicas) for partition in description.partitions)
    return ExistingTopic(topic, len(description.partitions), replicas, settings)


def problems_of(existing: Sequence[ExistingTopic], names: TopicNames, layout: TopicLayout) -> Iterator[str]:
    """A line for each setting and partition count with which the job cannot run."""
    wanted = {names.requests: layout.request_partitions, names.responses: layout.response_partitions}
    for found in existing:
        yield from _wrong_settings(found)
        topic = found.topic.name
        if wanted.get(topic) not in (None, found.partitions):
            yield f"topic {topic} has {counted(found.partitions, 'partition')}, the options say {wanted[topic]}"


def _wrong_settings(found: ExistingTopic) -> Iterator[str]:
    topic, settings = found.topic, found.settings
    for key, value in topic.required.items():
        if settings[key] != value:
            yield f"topic {topic.name} has {key}={settings[key]}, it needs {value} ({found.alter(key, value)})"
    for key, minimum in topic.minimum.items():
        if found.number(key) < minimum:
            remedy = found.alter(key, minimum)
            yield f"topic {topic.name} has {key}={settings[key]}, it needs {minimum} or more ({remedy})"
    key = "min.insync.replicas"
    if found.number(key) > found.replicas:
        yield (
            f"topic {topic.name} has {key}={settings[key]} and {counted(found.replicas, 'replica')}: no record can be "
            f"acknowledged ({found.alter(key, found.replicas)})"
        )


def risks_of(existing: Sequence[ExistingTopic], names: TopicNames, brokers: int) -> Iterator[str]:
    """A line for each risk on a cluster of so many brokers: first those that topics share, then those of one topic."""
    synced = "min.insync.replicas"
    for what, remedy, topics in (
        (
            f"one replica on a cluster of {brokers} brokers: the loss of a broker stops the job",
            "add replicas with kafka-reassign-partitions.sh",
            [found for found in existing if found.replicas == 1 < brokers],
        ),
        (
            f"{synced}=1: an acknowledged record may be on one broker only, and be lost with it",
            f"set {synced}=2 with kafka-configs.sh",
            [found for found in existing if found.replicas >= SAFE_REPLICAS and found.number(synced) < 2],
        ),
        (
            f"{synced} is the number of replicas: the loss of a broker stops the job",
            f"add a replica with kafka-reassign-partitions.sh, or lower {synced} with kafka-configs.sh",
            [found for found in existing if 1 < found.replicas == found.number(synced)],
        ),
        (
            f"{TIMESTAMP_TYPE}=CreateTime: brokers refuse or delete the records of a writer whose clock is wrong",
            f"set {TIMESTAMP_TYPE}={LOG_APPEND_TIME} with kafka-configs.sh",
            [
                found
                for found in existing
                if TIMESTAMP_TYPE not in found.topic.required and found.settings[TIMESTAMP_TYPE] != LOG_APPEND_TIME
            ],
        ),
        (
            "unclean.leader.election.enable=true: acknowledged records may be lost",
            "set unclean.leader.election.enable=false with kafka-configs.sh",
            [found for found in existing if found.settings["unclean.leader.election.enable"] == "true"],
        ),
    ):
        if topics:
            yield f"{', '.join(found.topic.name for found in topics)}: {what} ({remedy})"
    for found in existing:
        yield from _risks_of_one(found, names)


def _risks_of_one(found: ExistingTopic, names: TopicNames) -> Iterator[str]:
    compacted = "a reader that is disconnected for longer misses what was deleted"
    minima: dict[str, tuple[tuple[str, int, str], ...]] = {
        names.requests: (
            ("retention.ms", OUTAGE_MS, "requests are deleted unread when the job is away for longer"),
            ("max.message.bytes", MAX_REQUEST_BYTES, "clients cannot send larger requests"),
        ),
        names.responses: (("retention.ms", ANSWER_LIFE_MS, "a slow client loses answers"),),
        names.directory: (("delete.retention.ms", TOMBSTONE_LIFE_MS, compacted),),
        names.transactions: (("delete.retention.ms", TOMBSTONE_LIFE_MS, compacted),),
    }
    for key, minimum, consequence in minima.get(found.topic.name, ()):
        # -1 is unlimited.
        if 0 <= found.number(key) < minimum:
            remedy = found.alter(key, minimum)
            yield f"topic {found.topic.name} has {key}={found.settings[key]}: {consequence} ({remedy})"
    if found.topic.name in (names.directory, names.transactions, names.coordinators) and found.partitions > 1:
        yield (
            f"topic {found.topic.name} has {counted(found.partitions, 'partition')}: its keys stay in those that it "
            "had at first, the others are of no use (Kafka cannot remove them)"
        )
    key = "retention.bytes"
    if found.topic.name == names.requests and found.number(key) >= 0:
        consequence = "requests may be deleted unread, however short the job is away"
        yield f"topic {found.topic.name} has {key}={found.settings[key]}: {consequence} ({found.alter(key, -1)})"
