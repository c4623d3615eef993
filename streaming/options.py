"""The job's options: from flags, environment variables and a TOML file, in this order of precedence.

Every option has one key, the same in all three places up to spelling:

==================  ================================  ========================================
flag                environment variable              TOML
==================  ================================  ========================================
trigger_interval_ms GROUP_COORDINATOR_TRIGGER_...     trigger-interval-ms = 50
group.max.size      GROUP_COORDINATOR_GROUP_MAX_SIZE  group.max.size = 100
kafka.<key>         GROUP_COORDINATOR_KAFKA_<KEY>     kafka.security.protocol = "SSL"
spark.<key>         none: Spark's keys have capitals  [spark]  executor.memory = "2g"
==================  ================================  ========================================

Options of the protocol have Kafka's own keys (:class:`coordinator_logic.config.CoordinatorConfig`). ``kafka.<key>``
goes to every Kafka client of the job; see :meth:`JobOptions.librdkafka_config` for the two dialects.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from coordinator_logic.config import CoordinatorConfig
from streaming.profiles import DEFAULT_PROFILE, PROFILES, ProfileName
from streaming.python_worker import ARROW, PythonWorker
from streaming.state_stores import PROVIDER, StateStore
from streaming.topics import TopicLayout, TopicNames

ENVIRONMENT_PREFIX = "GROUP_COORDINATOR_"

Count = Annotated[int, msgspec.Meta(ge=1)]

SET_BY_THE_JOB = frozenset({"requests.topic", "requests.partitions"})
"""Keys of CoordinatorConfig that are no options: they are what the topics say."""

REFUSED = {
    **dict.fromkeys(
        (
            "maxOffsetsPerTrigger",
            "maxBytesPerTrigger",
            "maxRecordsPerPartition",
            "minOffsetsPerTrigger",
            "maxTriggerDelay",
        ),
        "every batch must read all that is available, or members are expelled whose heartbeats wait unread",
    ),
    "spark.sql.shuffle.partitions": "use state-partitions: it is fixed when a checkpoint is made",
    PROVIDER: "use state-store: a checkpoint can be read by the provider that wrote it only",
    "spark.sql.streaming.noDataMicroBatches.enabled": "deadlines must fire although no request comes",
    "spark.master": "use master",
    "spark.driver.memory": "use driver-memory",
}
"""Keys that could be given but must not, with the reason."""

SHARED_WITH_LIBRDKAFKA = frozenset({"security.protocol", "sasl.mechanism", "ssl.endpoint.identification.algorithm"})
"""Keys of Java's Kafka client that librdkafka knows under the same name and with the same meaning."""

_JAAS_CREDENTIAL = re.compile(r'\b(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"')


class BadOptions(Exception):
    """Options that cannot be used; one line for each problem: what is wrong, and where it was given."""


class JobOptions(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """The job's options, validated. ``None`` leaves a choice to what exists already, or to a default."""

    bootstrap_servers: Annotated[str, msgspec.Meta(min_length=1)]
    """Where Kafka is: ``host:port``, several separated by commas."""

    checkpoint: Annotated[str, msgspec.Meta(min_length=1)]
    """Where the groups live: a folder, or a URI of any file system that Spark can write."""

    topic_prefix: Annotated[str, msgspec.Meta(pattern=r"^[a-zA-Z0-9._-]{0,200}$")] = ""
    request_partitions: Count | None = None
    response_partitions: Count | None = None
    replication_factor: Count | None = None

    profile: ProfileName = DEFAULT_PROFILE
    """``latency``, ``balanced`` or ``object-store``: what an answer may cost; see :mod:`streaming.profiles`."""

    trigger_interval_ms: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """The least time between the starts of two batches, if it is not to be the profile's.

    There are batches also when nobody asks: at 0, which is quickest, the next one follows at once and an idle
    coordinator keeps a core busy.
    """

    state_partitions: Count | None = None
    """In how many parts Spark keeps the groups; fixed when the checkpoint is made.

    With one, a batch is a single task, which is quickest as long as one core bears the load.
    """

    state_store: StateStore | None = None
    """``memory`` or ``rocksdb``, see :mod:`streaming.state_stores`; fixed when the checkpoint is made."""

    master: Annotated[str, msgspec.Meta(min_length=1)] = "local[*]"
    driver_memory: Annotated[str, msgspec.Meta(pattern=r"^[1-9][0-9]*[mgMG]$")] = "1g"

    python_worker: PythonWorker = ARROW
    """``arrow``, which is quicker where pyspark is the version that it knows, or ``stock``, pyspark's own."""

    metrics_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] | None = None
    """The port of the Prometheus metrics; 0 takes a free one."""

    kafka: dict[str, str] = {}
    librdkafka: dict[str, str] = {}
    spark: dict[str, str] = {}
    protocol: CoordinatorConfig = msgspec.field(default_factory=CoordinatorConfig)

    @property
    def topics(self) -> TopicNames:
        """The names of the topics."""
        return TopicNames(self.topic_prefix)

    @property
    def layout(self) -> TopicLayout:
        """What was asked of the topics."""
        return TopicLayout(self.request_partitions, self.response_partitions, self.replication_factor)

    @property
    def batch_interval_ms(self) -> int:
        """The least time between the starts of two batches."""
        if self.trigger_interval_ms is None:
            return PROFILES[self.profile].trigger_interval_ms
        return self.trigger_interval_ms

    @property
    def is_local(self) -> bool:
        """Whether driver and executors are one process on this machine."""
        return self.master == "local" or self.master.startswith("local[")

    @property
    def java_client_config(self) -> dict[str, str]:
        """The configuration of Spark's Kafka clients."""
        return {"bootstrap.servers": self.bootstrap_servers, **self.kafka}

    @property
    def librdkafka_config(self) -> dict[str, str]:
        """The configuration of the clients that are not Spark's (topics, metrics).

        Spark's clients are Java's, these are librdkafka's, and the two spell security differently. What they
        share is taken from ``kafka.*``, a user name and password also from ``kafka.sasl.jaas.config``; everything
        else that librdkafka needs (``ssl.ca.location``, ...) is given as ``librdkafka.<key>``.
        """
        shared = {key: value for key, value in self.kafka.items() if key in SHARED_WITH_LIBRDKAFKA}
        for field, value in _JAAS_CREDENTIAL.findall(self.kafka.get("sasl.jaas.config", "")):
            shared[f"sasl.{field}"] = re.sub(r"\\(.)", r"\1", value)
        return {"bootstrap.servers": self.bootstrap_servers, **shared, **self.librdkafka}


class Given(NamedTuple):
    """A value, and where it was given, for whom it is to be told."""

    value: object
    where: str


_OWN_TYPES: dict[str, Any] = {
    field.encode_name: field.type
    for field in msgspec.structs.fields(JobOptions)
    if field.name not in ("kafka", "librdkafka", "spark", "protocol")
}
_PROTOCOL_TYPES: dict[str, Any] = {
    field.encode_name: field.type
    for field in msgspec.structs.fields(CoordinatorConfig)
    if field.encode_name not in SET_BY_THE_JOB
}
_GROUPS = ("kafka", "librdkafka", "spark")


def load_options(flags: Mapping[str, object], environ: Mapping[str, str], file: Path | None = None) -> JobOptions:
    """Put the options together. Flags that are None were not given.

    Raises :class:`BadOptions`, which names every problem and where it comes from.
    """
    given: dict[str, Given] = {}
    if file is not None:
        given.update(given_in_file(file))
    given.update(_from_environment(environ))
    given.update(_from_flags(flags))
    return _validated(given)


def _from_flags(flags: Mapping[str, object]) -> Iterator[tuple[str, Given]]:
    for name, value in flags.items():
        if value is not None:
            key = name if "." in name else name.replace("_", "-")
            yield key, Given(value, "given as a flag" if "." in name else f"given as --{key}")


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Given]]:
    """Variables with our prefix that are no option are left alone: Kubernetes makes some for a service."""
    known = {re.sub(r"[-.]", "_", key).upper(): key for key in (*_OWN_TYPES, *_PROTOCOL_TYPES)}
    for variable, value in environ.items():
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX)
        if name in known:
            yield known[name], Given(value, f"given as {variable}")
        elif name.startswith(("KAFKA_", "LIBRDKAFKA_")):
            yield name.lower().replace("_", "."), Given(value, f"given as {variable}")


def given_in_file(file: Path) -> Iterator[tuple[str, Given]]:
    """The options of a TOML file, by key. Raises :class:`BadOptions` when it cannot be read."""
    try:
        content = tomllib.loads(file.read_text())
    except OSError as error:
        raise BadOptions(f"{file} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadOptions(f"{file} is not TOML: {error}") from error
    for key, value in _flattened(content):
        yield key, Given(value, f"given in {file}")


def _flattened(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Unquoted dots make tables in TOML: ``group.max.size = 5`` and ``[group.max] size = 5`` are one key here."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _validated(given: Mapping[str, Given]) -> JobOptions:
    own: dict[str, object] = {}
    protocol: dict[str, object] = {}
    groups: dict[str, dict[str, str]] = {name: {} for name in _GROUPS}
    problems = []
    for key, (value, where) in given.items():
        group, _, rest = key.partition(".")
        try:
            if key in REFUSED:
                raise ValueError(f"refused: {REFUSED[key]}")
            if key in _OWN_TYPES:
                own[key] = msgspec.convert(value, _OWN_TYPES[key], strict=False)
            elif key in _PROTOCOL_TYPES:
                protocol[key] = msgspec.convert(value, _PROTOCOL_TYPES[key], strict=False)
            elif group in groups and rest:
                groups[group][rest] = _text(value)
            else:
                raise ValueError("there is no such option")
        except ValueError as error:
            problems.append(f"{key} ({where}): {error}")
    for required in ("bootstrap-servers", "checkpoint"):
        if required not in given:
            variable = ENVIRONMENT_PREFIX + required.replace("-", "_").upper()
            problems.append(f"{required} is missing: give --{required}, {variable} or {required} in the file")
    if problems:
        raise BadOptions("\n".join(problems))
    try:
        config = msgspec.convert(protocol, CoordinatorConfig)
    except msgspec.ValidationError as error:
        raise BadOptions(str(error)) from error
    return msgspec.convert({**own, **groups, "protocol": config}, JobOptions)


def _text(value: object) -> str:
    """A value of TOML as Kafka and Spark write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (str, int, float)):
        return str(value)
    raise ValueError(f"expected a text, a number or true/false, got {value!r}")
