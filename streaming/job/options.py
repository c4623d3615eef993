"""The job's options, from command-line flags, environment variables and a TOML file.

Flags take precedence over the environment, and the environment over the file. An option has the same key everywhere:

========================  ====================================  ====================================
flag                      environment variable                  TOML
========================  ====================================  ====================================
``--trigger-interval-ms`` ``GROUP_COORDINATOR_TRIGGER_...``     ``trigger-interval-ms = 50``
``group.max.size``        ``GROUP_COORDINATOR_GROUP_MAX_SIZE``  ``group.max.size = 100``
``kafka.<key>``           ``GROUP_COORDINATOR_KAFKA_<KEY>``     ``kafka.security.protocol = "SSL"``
``spark.<key>``           none: Spark's keys need capitals      ``[spark]  executor.memory = "2g"``
========================  ====================================  ====================================

A flag whose key contains a dot is given with ``--set key=value``. Protocol options have Kafka's own keys, see
:class:`coordinator_logic.config.CoordinatorConfig`.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from coordinator_logic.config import CoordinatorConfig
from streaming.contract.option_sources import OptionLoader
from streaming.contract.option_values import Addresses, NotEmpty, TopicPrefix
from streaming.contract.topics import (
    BATCH_OVERHEAD_BYTES,
    LONGEST_GROUP_ID_BYTES,
    MAX_REQUEST_JSON_BYTES,
    MAX_ROW_BYTES,
    TopicNames,
)
from streaming.job.profiles import DEFAULT_PROFILE, PROFILES, ProfileName
from streaming.job.spark_internals.python_worker.worker_choice import ARROW, PythonWorker
from streaming.job.state_stores import PROVIDER, StateStore
from streaming.job.topics.layout import TopicLayout

ENVIRONMENT_PREFIX = "GROUP_COORDINATOR_"

Count = Annotated[int, msgspec.Meta(ge=1)]

Size = Annotated[str, msgspec.Meta(pattern=r"^[1-9][0-9]*[mgMG]\Z", description="a size such as 512m or 2g")]

MasterUrl = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^(local(-cluster)?(\[[\d*]+(\s*,\s*\d+)*\])?|yarn|\w+://\S+)\Z",
        description="a master of Spark's such as local[*], yarn, spark://HOST:PORT or k8s://URL",
    ),
]

SET_BY_THE_JOB = frozenset({"requests.topic", "requests.partitions", "late.answer.ms", "job.epoch", "logic.version"})
"""Keys of CoordinatorConfig that are not options: the job derives them from the topics, the batch interval, its
election and its release."""

REFUSED = {
    **dict.fromkeys(
        (
            "maxOffsetsPerTrigger",
            "maxBytesPerTrigger",
            "maxRecordsPerPartition",
            "minOffsetsPerTrigger",
            "maxTriggerDelay",
        ),
        "use max-requests-per-batch: it is the only limit of a batch that the job knows of",
    ),
    "spark.sql.shuffle.partitions": "use state-partitions: it is fixed when a checkpoint is made",
    PROVIDER: "use state-store: only the provider that wrote a checkpoint can read it",
    "spark.sql.streaming.noDataMicroBatches.enabled": "the job makes Spark run a batch whenever a deadline is due",
    "spark.master": "use master",
    "spark.driver.memory": "use driver-memory",
}
"""Keys that are rejected, each with the reason or the option to use instead."""

LEAST = dict.fromkeys(("kafka.max.request.size", "kafka.buffer.memory"), MAX_ROW_BYTES + BATCH_OVERHEAD_BYTES)
"""The least values of settings, bytes: with less, Spark's producer fails at the first large row, and ends the query."""

SHARED_WITH_LIBRDKAFKA = frozenset({"security.protocol", "sasl.mechanism", "ssl.endpoint.identification.algorithm"})
"""Keys that have the same name and meaning in Kafka's Java client and in librdkafka."""

_JAAS_CREDENTIAL = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')


class JobOptions(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The job's options, validated. Where an option may be ``None``, its docstring names the default."""

    bootstrap_servers: Addresses
    """The Kafka brokers to connect to first: ``host:port``, separated by commas."""

    checkpoint: NotEmpty
    """The folder of the query's checkpoint, which holds all groups: a path, or ``s3a://bucket/folder``.

    Spark's other file systems go to Spark as they are; ``hdfs://`` is tested.
    """

    standby: bool = False
    """Whether the job may wait while another one is active for the same topics, and take over when that one is gone."""

    new_checkpoint: bool = False
    """Whether a new checkpoint may be made for topics on which a coordinator had groups before: only what the requests
    that are still in the topic contain is restored."""

    make_class_archive: bool = True
    """Whether the job makes an archive of the classes that it loads, in the background, if there is none yet."""

    topic_prefix: TopicPrefix = ""
    """The prefix of the names of all topics: jobs with different prefixes can share a cluster."""

    request_partitions: Count | None = None
    """The number of partitions of the requests topic. ``None``: as many as it has, or 1 when the job creates it.

    For an existing topic the number is checked, not changed.
    """

    response_partitions: Count | None = None
    """The number of partitions of the responses topic. ``None``: as many as it has, or 8 when the job creates it.

    Each client reads one of them: with more partitions, a client receives fewer responses of other clients.
    """

    replication_factor: Count | None = None
    """The replication factor of topics that the job creates. ``None``: 3, or the number of brokers if that is less."""

    profile: ProfileName = DEFAULT_PROFILE
    """``latency``, ``balanced`` or ``object-store``: the trade-off between response time and the cost of idling.

    See :mod:`streaming.job.profiles`.
    """

    trigger_interval_ms: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How long after the start of a batch requests that can wait start the next one, ms. ``None``: the profile's.

    Heartbeats that change nothing can wait (:data:`streaming.contract.topics.CAN_WAIT`). What somebody waits for
    starts a batch at once, unless the job has used up its CPU budget. With 0, a batch starts as soon as the one before
    has ended.
    """

    cpu_budget: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """The cores that the job may use for batches that start before the trigger interval is over. ``None``: the
    profile's share of the cores, of a container's limit if there is one.

    What the job has not used in the last 5 s is its credit: a burst is answered at once. With 0, no batch starts
    before the interval is over.
    """

    max_requests_per_batch: Count = 50_000
    """The most requests that a batch reads; what is left waits for the next batch.

    It bounds the memory that a backlog takes, about 2 kB a request of a few hundred bytes in a Python worker. Members
    whose heartbeats wait unread are not expelled. A larger number works a backlog off somewhat faster.
    """

    state_partitions: Count | None = None
    """The number of partitions of Spark's state; fixed when the checkpoint is created. ``None``: 1, or as created.

    With one partition a batch is a single task, which is fastest while one core can carry the load.
    """

    state_store: StateStore | None = None
    """``memory`` or ``rocksdb``; fixed when the checkpoint is created. ``None``: ``memory``, or as created.

    See :mod:`streaming.job.state_stores`.
    """

    master: MasterUrl = "local[*]"
    """Spark's master URL; by default the job runs on all cores of this machine."""

    driver_memory: Size = "1g"
    """The maximum heap of the driver's JVM, such as ``512m`` or ``2g``. It holds the groups if the master is local."""

    python_worker: PythonWorker = ARROW
    """``arrow``, the faster worker, or ``stock``, pyspark's own.

    ``arrow`` supports certain versions of pyspark only; with any other the job uses ``stock``.
    """

    max_request_bytes: Annotated[int, msgspec.Meta(ge=LONGEST_GROUP_ID_BYTES, le=MAX_ROW_BYTES)] = (
        MAX_REQUEST_JSON_BYTES
    )
    """The maximum size of a request's value, bytes; a larger one is cut and rejected. The same applies to keys.

    The requests topic limits the compressed size only: 30 MB of zeros are 29 kB there. At half the limit of the rows
    that the job writes, the default is far beyond what a client sends, and a rejected value fits into its dead letter.
    """

    identity_key_file: str | None = None
    """A file with the keys with which gateways sign the sender of a request, one a line, each of 32 bytes or more.

    ``None``: the journal marks every sender as claimed. See docs/security.md.
    """

    principal_key_file: str | None = None
    """A file with keys of principals that write requests themselves: in each line a principal such as ``User:billing``,
    a space and its key of 32 bytes or more. ``None``: only gateways can sign.

    A principal signs with its key for itself only. See docs/security.md.
    """

    require_signature: bool = False
    """Whether a request is refused (GROUP_AUTHORIZATION_FAILED) unless a gateway or its principal has signed it."""

    group_acl_file: str | None = None
    """A TOML file with rules: which principal may do what with which groups. All other requests are refused
    (GROUP_AUTHORIZATION_FAILED), and all without a signature. ``None``: all may do everything.

    See docs/security.md.
    """

    metrics_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] | None = None
    """The port of the Prometheus metrics and of the health pages; 0 chooses a free port. ``None``: not served."""

    metrics_host: NotEmpty = "127.0.0.1"
    """The address at which metrics and health pages are served. They need no authentication: ``0.0.0.0`` shows them to
    the network."""

    health_batch_limit_ms: Count = 120_000
    """How long requests may wait without a batch that ends, or Spark without an answer, ms: beyond it, ``/health/live``
    reports that the job hangs."""

    health_backlog_limit: Annotated[int, msgspec.Meta(ge=0)] = 100_000
    """How many requests may wait: beyond it, ``/health/ready`` reports that answers are late."""

    progress_file: str | None = None
    """A file to which Spark's report of each completed batch is appended, a line of JSON each. ``None``: no file."""

    kafka: dict[str, str] = {}
    """Settings of all Kafka clients of the job, under the keys of Kafka's Java client.

    ``librdkafka_config`` names those that librdkafka's clients take over."""

    librdkafka: dict[str, str] = {}
    """Settings of the Kafka clients outside of Spark only, under librdkafka's keys."""

    spark: dict[str, str] = {}
    """Settings of Spark, without the prefix ``spark.``. They take precedence over the job's own settings."""

    protocol: CoordinatorConfig = msgspec.field(default_factory=CoordinatorConfig)
    """Options of the group protocol, under the keys of Kafka's brokers."""

    @property
    def topics(self) -> TopicNames:
        """The names of the topics, with the prefix."""
        return TopicNames(self.topic_prefix)

    @property
    def layout(self) -> TopicLayout:
        """The partitions and replicas that the options ask for."""
        return TopicLayout(self.request_partitions, self.response_partitions, self.replication_factor)

    @property
    def batch_interval_ms(self) -> int:
        """The minimum time between the starts of two batches, ms: the option's, or the profile's."""
        if self.trigger_interval_ms is None:
            return PROFILES[self.profile].trigger_interval_ms
        return self.trigger_interval_ms

    @property
    def is_local(self) -> bool:
        """Whether driver and executors are a single process on this machine."""
        return self.master == "local" or self.master.startswith("local[")

    @property
    def java_client_config(self) -> dict[str, str]:
        """The configuration of Spark's Kafka clients."""
        return {"bootstrap.servers": self.bootstrap_servers, **self.kafka}

    @property
    def librdkafka_config(self) -> dict[str, str]:
        """The configuration of the Kafka clients outside of Spark, which create topics and follow the directory.

        Spark's clients are Kafka's Java clients, these are librdkafka's, and many security settings differ. Settings
        with the same meaning are copied from ``kafka.*``, user name and password also from
        ``kafka.sasl.jaas.config``. All others, such as ``ssl.ca.location``, must be given as ``librdkafka.<key>``.
        """
        shared = {key: value for key, value in self.kafka.items() if key in SHARED_WITH_LIBRDKAFKA}
        for field, value in _JAAS_CREDENTIAL.findall(self.kafka.get("sasl.jaas.config", "")):
            shared[f"sasl.{field}"] = re.sub(r"\\(.)", r"\1", value)
        return {"bootstrap.servers": self.bootstrap_servers, **shared, **self.librdkafka}


_LOADER = OptionLoader(
    JobOptions,
    ENVIRONMENT_PREFIX,
    not_options=SET_BY_THE_JOB,
    refused=REFUSED,
    not_in_environment={"spark"},
    least=LEAST,
)


def load_options(
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    file: Path | None = None,
    defaults: Mapping[str, object] | None = None,
) -> JobOptions:
    """Load the job's options, see :meth:`OptionLoader.load`. Raises :class:`BadOptions`."""
    return _LOADER.load(flags, environ, file, defaults)
