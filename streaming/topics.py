"""The six topics: their names, partitions and settings, how they are made, and what is checked at start."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, TopicMetadata

from streaming.errors import CannotRun

MAX_REQUEST_BYTES = 1024 * 1024
"""The largest record of ``group-requests``, as Kafka's own default for a topic."""

MAX_ROW_BYTES = 8 * MAX_REQUEST_BYTES
"""The largest key and value together of what the job writes: answers and journal lines repeat what requests
said, the answer to a leader even what every member said. What is larger is replaced by an error."""

BATCH_OVERHEAD_BYTES = 64 * 1024
"""What a record batch may add around one record, generously."""

DEFAULT_REQUEST_PARTITIONS = 1
"""With one state partition, a batch reads them one after the other, which takes some 10 ms each. A single one carries
more than 10,000 requests a second; where several cores or executors share the state, as many as there are of those."""
DEFAULT_RESPONSE_PARTITIONS = 8
DEFAULT_JOURNAL_PARTITIONS = 4
MOST_REPLICAS = 3
ADMIN_LIMIT_SECONDS = 30.0

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True)
class TopicNames:
    """The names of the topics, each behind a configurable prefix."""

    prefix: str = ""

    @property
    def requests(self) -> str:
        """Where clients append requests, keyed by group id."""
        return f"{self.prefix}group-requests"

    @property
    def responses(self) -> str:
        """Where answers are found, in the partition that the request named."""
        return f"{self.prefix}group-responses"

    @property
    def journal(self) -> str:
        """The audit log: what changed in which group, and why."""
        return f"{self.prefix}group-journal"

    @property
    def directory(self) -> str:
        """One line per group, compacted."""
        return f"{self.prefix}group-directory"

    @property
    def transactions(self) -> str:
        """The gateways' own: which groups have a part in a producer's transaction, compacted."""
        return f"{self.prefix}group-transactions"

    @property
    def rejects(self) -> str:
        """What could not be read, with the reason."""
        return f"{self.prefix}group-rejects"


@dataclass(frozen=True)
class TopicLayout:
    """What the user asked of the topics. None: take what is there, or the default when there is nothing."""

    request_partitions: int | None = None
    response_partitions: int | None = None
    replication_factor: int | None = None


@dataclass(frozen=True)
class Partitions:
    """How many partitions the topics have whose count others depend on."""

    requests: int
    responses: int
    directory: int


@dataclass(frozen=True)
class _Topic:
    """A topic as it should be. ``required`` is checked on an existing one, ``chosen`` only set on a new one."""

    name: str
    partitions: int
    required: Mapping[str, str]
    chosen: Mapping[str, str]
    least: Mapping[str, int]


def _topics(names: TopicNames, layout: TopicLayout) -> list[_Topic]:
    written = {"max.message.bytes": MAX_ROW_BYTES + BATCH_OVERHEAD_BYTES}
    # A response is worth something until its client gives up; the others are for people.
    delete, week = {"cleanup.policy": "delete"}, {"retention.ms": str(7 * DAY_MS)}
    return [
        _Topic(
            names.requests,
            layout.request_partitions or DEFAULT_REQUEST_PARTITIONS,
            # The append time is the coordinator's clock: a producer's own could expel anybody.
            {**delete, "message.timestamp.type": "LogAppendTime"},
            {**week, "max.message.bytes": str(MAX_REQUEST_BYTES)},
            {},
        ),
        _Topic(
            names.responses,
            layout.response_partitions or DEFAULT_RESPONSE_PARTITIONS,
            delete,
            {"retention.ms": str(HOUR_MS)},
            written,
        ),
        _Topic(names.journal, DEFAULT_JOURNAL_PARTITIONS, delete, {"retention.ms": str(365 * DAY_MS)}, written),
        # Tombstones stay for a day, so that a reader that was away learns of a group's end.
        _Topic(names.directory, 1, {"cleanup.policy": "compact"}, {"delete.retention.ms": str(DAY_MS)}, written),
        # One partition, so that who has read to its end knows everything.
        _Topic(names.transactions, 1, {"cleanup.policy": "compact"}, {"delete.retention.ms": str(DAY_MS)}, {}),
        _Topic(names.rejects, 1, delete, week, written),
    ]


def ensure_topics(client_config: Mapping[str, str], names: TopicNames, layout: TopicLayout) -> Partitions:
    """Create the topics that are missing and check the others.

    ``client_config`` is librdkafka's, with ``bootstrap.servers``. Raises :class:`CannotRun`, with one line for each
    problem, when the cluster does not answer or a topic is not what the job needs.
    """
    reasons: list[KafkaError] = []
    # What librdkafka logs comes from threads of its own, also after the one line that names the problem.
    settings: dict[str, Any] = {"log_level": 0, **client_config, "error_cb": reasons.append}
    admin = AdminClient(settings)
    try:
        topics = _topics(names, layout)
        cluster = admin.list_topics(timeout=ADMIN_LIMIT_SECONDS)
        missing = [topic for topic in topics if topic.name not in cluster.topics]
        created = _create(admin, missing, layout.replication_factor or min(MOST_REPLICAS, len(cluster.brokers)))
        metadata = _metadata_of_all(admin, topics)
        existing = [topic for topic in topics if topic.name not in created]
        _check(admin, existing, metadata, names, layout)
    except KafkaException as error:
        admin.poll(0)
        why = [reason.str() for reason in reasons if reason.code() != KafkaError._ALL_BROKERS_DOWN][-1:]
        said = "; ".join([error.args[0].str(), *why])
        raise CannotRun(f"Kafka at {client_config['bootstrap.servers']}: {said}") from error
    return Partitions(
        requests=len(metadata[names.requests].partitions),
        responses=len(metadata[names.responses].partitions),
        directory=len(metadata[names.directory].partitions),
    )


def _create(admin: AdminClient, topics: list[_Topic], replicas: int) -> set[str]:
    """The names of those that were created: a topic that a broker did not know yet may exist all the same."""
    new = []
    for topic in topics:
        config = {**topic.required, **topic.chosen, **{key: str(value) for key, value in topic.least.items()}}
        new.append(NewTopic(topic.name, num_partitions=topic.partitions, replication_factor=replicas, config=config))
    created = set()
    for name, future in admin.create_topics(new, operation_timeout=ADMIN_LIMIT_SECONDS).items() if new else ():
        try:
            future.result(ADMIN_LIMIT_SECONDS)
            created.add(name)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise CannotRun(f"topic {name} cannot be created: {error.args[0].str()}") from error
    return created


def _metadata_of_all(admin: AdminClient, topics: list[_Topic]) -> Mapping[str, TopicMetadata]:
    """A broker learns of a new topic a moment after it was created."""
    deadline = time.monotonic() + ADMIN_LIMIT_SECONDS
    while True:
        metadata = admin.list_topics(timeout=ADMIN_LIMIT_SECONDS).topics
        missing = [topic.name for topic in topics if topic.name not in metadata]
        if not missing:
            return metadata
        if time.monotonic() > deadline:
            raise CannotRun(f"topics {', '.join(missing)} were created, but the brokers do not show them")
        time.sleep(0.05)


def _check(
    admin: AdminClient,
    topics: list[_Topic],
    metadata: Mapping[str, TopicMetadata],
    names: TopicNames,
    layout: TopicLayout,
) -> None:
    if not topics:
        return
    wanted = {names.requests: layout.request_partitions, names.responses: layout.response_partitions}
    resources = {topic.name: ConfigResource(ConfigResource.Type.TOPIC, topic.name) for topic in topics}
    described = admin.describe_configs(list(resources.values()))
    problems: list[str] = []
    for topic in topics:
        entries = described[resources[topic.name]].result(ADMIN_LIMIT_SECONDS)
        settings = {key: entry.value for key, entry in entries.items()}
        problems += _wrong_settings(topic, settings)
        partitions = len(metadata[topic.name].partitions)
        if wanted.get(topic.name) not in (None, partitions):
            problems.append(f"topic {topic.name} has {partitions} partitions, the options say {wanted[topic.name]}")
    if problems:
        raise CannotRun("\n".join(problems))


def _wrong_settings(topic: _Topic, settings: Mapping[str, str]) -> Iterator[str]:
    alter = f"kafka-configs.sh --alter --entity-type topics --entity-name {topic.name} --add-config"
    for key, value in topic.required.items():
        if settings[key] != value:
            yield f"topic {topic.name} has {key}={settings[key]}, it needs {value} ({alter} {key}={value})"
    for key, least in topic.least.items():
        if int(settings[key]) < least:
            yield f"topic {topic.name} has {key}={settings[key]}, it needs {least} or more ({alter} {key}={least})"
