"""``group-coordinator run``: the coordinator, in front of a Kafka cluster or with an embedded broker."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from streaming.cli.boundary import errors_as_lines
from streaming.cli.console import (
    KAFKA_PANEL,
    METRICS_HELP,
    AnyOption,
    Brokers,
    ConfigurationFile,
    JsonLines,
    Prefix,
    key_values,
    reporter,
    require,
)
from streaming.cli.first_steps import FirstSteps
from streaming.cli.help_output import flag, option
from streaming.cli.run_options import SPARK_PANEL, Master
from streaming.cli.usage import taking
from streaming.contract.errors import BadOptions
from streaming.contract.folders import require_writable
from streaming.contract.option_values import ListenAddress
from streaming.contract.ports import require_free_port
from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.broker_watch import ending_with_broker
from streaming.embedded.folder_lock import require_unused
from streaming.embedded.ports import HOST
from streaming.embedded.temporary_folder import temporary_folder
from streaming.job.options import JobOptions, load_options
from streaming.job.profiles import DEFAULT_PROFILE, PROFILES
from streaming.job.senders import read_senders
from streaming.job.state_stores import DEFAULT_STATE_STORE, STATE_STORES

CHECKPOINT_VARIABLE = "GROUP_COORDINATOR_CHECKPOINT"
EMBEDDED = "127.0.0.1:0"
"""The address of an embedded broker until it has started."""

STATE_PANEL, TOPICS_PANEL, GATEWAY_PANEL = "State and pace", "New topics", "Gateway"

CHECKPOINT_HELP = "Folder in which the groups are kept. With --embedded: a temporary folder unless given."
PROFILE_HELP = "latency, balanced or object-store: answer time against idle cost."
TRIGGER_HELP = "Time between batches that nobody waits for."
BUDGET_HELP = "CPU that batches may use before that time is over."
PARTITIONS_HELP = "Partitions of the state; fixed once the checkpoint exists."
STORE_HELP = "memory or rocksdb; fixed once the checkpoint exists."
LISTEN_HELP = "Address of the gateway's first listener."

Embedded = Annotated[bool, flag("--embedded", "Start a broker on this machine, instead of -b.", KAFKA_PANEL)]
EmbeddedPort = Annotated[
    int,
    option(
        metavar="PORT",
        text="Port of the embedded broker.",
        panel=KAFKA_PANEL,
        default="the last one, or any free one",
        min=0,
        max=65535,
    ),
]
Checkpoint = Annotated[str | None, option(metavar="FOLDER", text=CHECKPOINT_HELP, panel=STATE_PANEL)]
Standby = Annotated[bool | None, flag("--standby", "Wait while another job is active, and take over.", STATE_PANEL)]
NewCheckpoint = Annotated[
    bool | None, flag("--new-checkpoint", "Start without the groups of an earlier checkpoint.", STATE_PANEL)
]
Profile = Annotated[
    str | None,
    option(metavar="NAME", text=PROFILE_HELP, panel=STATE_PANEL, default=DEFAULT_PROFILE, values=tuple(PROFILES)),
]
TriggerInterval = Annotated[
    int | None, option(metavar="MS", text=TRIGGER_HELP, panel=STATE_PANEL, default="the profile's")
]
CpuBudget = Annotated[
    float | None, option(metavar="CORES", text=BUDGET_HELP, panel=STATE_PANEL, default="the profile's share")
]
StatePartitions = Annotated[int | None, option(metavar="COUNT", text=PARTITIONS_HELP, panel=STATE_PANEL, default=1)]
StateStore = Annotated[
    str | None,
    option(metavar="NAME", text=STORE_HELP, panel=STATE_PANEL, default=DEFAULT_STATE_STORE, values=tuple(STATE_STORES)),
]
Gateway = Annotated[bool, flag("--gateway", "Also start a gateway for unmodified Kafka clients.", GATEWAY_PANEL)]
GatewayListen = Annotated[
    str | None,
    option(
        metavar="HOST:PORT",
        text=LISTEN_HELP,
        panel=GATEWAY_PANEL,
        default="127.0.0.1:19092",
        callback=taking(ListenAddress),
    ),
]
RequestPartitions = Annotated[
    int | None, option(metavar="COUNT", text="Partitions of the request topic.", panel=TOPICS_PANEL, default=1)
]
ResponsePartitions = Annotated[
    int | None, option(metavar="COUNT", text="Partitions of the response topic.", panel=TOPICS_PANEL, default=8)
]
ReplicationFactor = Annotated[
    int | None,
    option(metavar="COUNT", text="Replication factor.", panel=TOPICS_PANEL, default="3, or one for each broker"),
]
DriverMemory = Annotated[
    str | None, option(metavar="SIZE", text="Heap of the driver.", panel=SPARK_PANEL, default="1g")
]
MetricsPort = Annotated[int | None, option(metavar="PORT", text=METRICS_HELP, panel=SPARK_PANEL)]

JOB_FLAGS = (
    *("checkpoint", "topic_prefix", "request_partitions", "response_partitions", "replication_factor"),
    *("profile", "trigger_interval_ms", "cpu_budget", "state_partitions", "state_store"),
    *("master", "driver_memory", "metrics_port", "standby", "new_checkpoint"),
)
"""Parameters of :func:`run` that are options of the job, by the names that ``load_options`` knows."""


def run(
    context: typer.Context,
    bootstrap_servers: Brokers = None,
    embedded: Embedded = False,
    embedded_port: EmbeddedPort = 0,
    topic_prefix: Prefix = None,
    checkpoint: Checkpoint = None,
    standby: Standby = None,
    new_checkpoint: NewCheckpoint = None,
    profile: Profile = None,
    trigger_interval_ms: TriggerInterval = None,
    cpu_budget: CpuBudget = None,
    state_partitions: StatePartitions = None,
    state_store: StateStore = None,
    gateway: Gateway = False,
    gateway_listen: GatewayListen = None,
    request_partitions: RequestPartitions = None,
    response_partitions: ResponsePartitions = None,
    replication_factor: ReplicationFactor = None,
    master: Master = None,
    driver_memory: DriverMemory = None,
    metrics_port: MetricsPort = None,
    config: ConfigurationFile = None,
    settings: AnyOption = None,
    as_json: JsonLines = False,
) -> None:
    """Run the coordinator until Ctrl-C or SIGTERM. The batch in flight finishes first.

    Each option is also an environment variable (GROUP_COORDINATOR_BOOTSTRAP_SERVERS for --bootstrap-servers) and a
    key of the TOML file (bootstrap-servers). A flag overrides the variable, and the variable overrides the file.

    Options without a flag are given with --set:
      --set group.max.size=100    the group protocol, by Kafka's own keys
      --set kafka.KEY=VALUE       Kafka clients of the job
      --set spark.KEY=VALUE       Spark
    """
    require("run", "job", *(("gateway",) if gateway else ()))
    flags: dict[str, object] = {name: context.params[name] for name in JOB_FLAGS} | key_values(settings, "--set")
    report = reporter(as_json)
    with errors_as_lines(), ExitStack() as stack:
        if embedded and bootstrap_servers is not None:
            raise BadOptions("--embedded starts a broker of its own: leave out --bootstrap-servers")
        data = _broker_data(flags, config, stack, report) if embedded else None
        servers = EMBEDDED if embedded else bootstrap_servers
        options = load_options({**flags, "bootstrap_servers": servers}, os.environ, config)
        # What refuses a start is found before anything is started or written: a broker and Spark take seconds.
        _require_place(options)
        read_senders(options)
        require_unused(data.folder if data else None)
        require_free_port(HOST, embedded_port, "--embedded-port")
        _require_free_ports(options, _gateway_options(options, gateway_listen) if gateway else None)
        if data is not None:
            servers = _start_broker(data, embedded_port, stack, report)
            options = load_options({**flags, "bootstrap_servers": servers}, os.environ, config)
        # Imported late: pyspark takes seconds, and wrong options are reported at once.
        from streaming.gateway.child import running_gateway
        from streaming.job.lifecycle.run import run_job

        guide = FirstSteps(report, options.bootstrap_servers, options.topic_prefix)
        if not gateway:
            run_job(options, guide.report)
            return
        stop_gateway = stack.enter_context(running_gateway(_gateway_options(options, gateway_listen), guide.report))
        # Together with the job: one after the other, the two would take twice as long while the brokers are away.
        run_job(options, guide.report, on_stop=stop_gateway)


class _BrokerData(NamedTuple):
    """The folder of the embedded broker's data and log, and whether it outlives this command."""

    folder: Path
    is_kept: bool


def _broker_data(
    flags: dict[str, object], config: Path | None, stack: ExitStack, report: Callable[[str], None]
) -> _BrokerData:
    """The embedded broker's data, beside the checkpoint.

    Adds a checkpoint in a temporary folder to the flags if none is given.
    """
    is_kept = flags.get("checkpoint") is not None or CHECKPOINT_VARIABLE in os.environ or config is not None
    if not is_kept:
        flags["checkpoint"] = str(stack.enter_context(temporary_folder()).path / "checkpoint")
        report("no checkpoint is given: the groups are lost when this command ends")
    checkpoint = load_options({**flags, "bootstrap_servers": EMBEDDED}, os.environ, config).checkpoint
    if "://" in checkpoint:
        raise BadOptions(
            f"checkpoint {checkpoint}: --embedded needs a local folder, beside which the broker keeps its data"
        )
    return _BrokerData(Path(f"{checkpoint.rstrip('/')}.kafka"), is_kept)


def _require_place(options: JobOptions) -> None:
    """Check that a local checkpoint can be written. Raises CannotRun."""
    from streaming.job.checkpoints.local_folder import local_path

    folder = local_path(options.checkpoint) if options.is_local else None
    if folder is not None:
        require_writable(folder)


def _require_free_ports(options: JobOptions, gateway_options: dict[str, str] | None) -> None:
    """Check the ports of the metrics and of the gateway. Raises BadOptions and CannotRun."""
    if options.metrics_port is not None:
        require_free_port(options.metrics_host, options.metrics_port, "--metrics-port")
    if gateway_options is not None:
        from streaming.gateway.options import load_gateway_options

        load_gateway_options({}, os.environ, defaults=gateway_options).require_free_ports("--gateway-listen")


def _start_broker(data: _BrokerData, port: int, stack: ExitStack, report: Callable[[str], None]) -> str:
    """Start a broker and return its address. If it ends by itself, so does what runs until the end of the stack."""
    report("starting a Kafka broker")
    broker = stack.enter_context(EmbeddedBroker(data_dir=data.folder, port=port))
    report(f"Kafka listens on {broker.bootstrap_servers}")
    stack.enter_context(ending_with_broker(broker, report, keeps_log=data.is_kept))
    return broker.bootstrap_servers


def _gateway_options(options: JobOptions, listen: str | None) -> dict[str, str]:
    """Options of a gateway in front of the job's brokers and topics, with the job's Kafka settings."""
    own = {} if listen is None else {"listen": listen}
    kafka = {f"kafka.{key}": value for key, value in options.librdkafka_config.items() if key != "bootstrap.servers"}
    identity = {} if options.identity_key_file is None else {"identity-key-file": options.identity_key_file}
    return {
        "bootstrap-servers": options.bootstrap_servers,
        "topic-prefix": options.topic_prefix,
        **own,
        **identity,
        **kafka,
    }
