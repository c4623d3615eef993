"""The command ``group-coordinator``.

Commands that ask the coordinator need only a Kafka client; Spark is imported by ``run`` and ``demo`` alone.

Exit codes: 0 done; 1 refused by the coordinator, not found, or failed; 2 wrong usage or configuration; 3 nobody
answered (no broker, no topics, or no running coordinator); 130 interrupted.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from coordinator_logic.consumer_protocol import ConsumerProtocolError, decode_assignment
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    DescribedGroup,
    DescribedMember,
    FetchedGroup,
    GroupToFetch,
    OffsetCommitRequest,
    PartitionToCommit,
    TopicToCommit,
)
from streaming.broker import BrokerStartError, EmbeddedBroker
from streaming.client import CoordinatorClient, CoordinatorError, CoordinatorNotAvailable, RequestTimedOut
from streaming.client.errors import error_of
from streaming.console import (
    INTERRUPTED,
    REFUSED,
    UNANSWERED,
    USAGE,
    AsJson,
    BootstrapServers,
    TopicPrefix,
    err,
    fail,
    key_values,
    out,
    print_json,
    reporter,
)
from streaming.errors import CannotRun
from streaming.gateway.command import gateway as gateway_command
from streaming.jars import JarResolutionError, MissingPrerequisite
from streaming.signals import stop_requested

app = typer.Typer(
    name="group-coordinator",
    help="Kafka's group coordinator as a Spark Structured Streaming job.\n\n"
    "Start with `group-coordinator demo`, or with `group-coordinator run --embedded` in one terminal and "
    "`group-coordinator groups list` in another.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
groups = typer.Typer(name="groups", help="List, describe and delete groups.", no_args_is_help=True)
offsets = typer.Typer(name="offsets", help="Show and set what groups have committed.", no_args_is_help=True)
app.add_typer(groups)
app.add_typer(offsets)

Timeout = Annotated[int, typer.Option("--timeout", min=1, help="Seconds to wait for an answer.")]
ClientProperties = Annotated[
    list[str] | None,
    typer.Option("--property", "-X", metavar="KEY=VALUE", help="A librdkafka property, e.g. for TLS. Repeatable."),
]


# ---- common ----------------------------------------------------------------------------------------------------


@contextmanager
def asking(
    bootstrap_servers: str, prefix: str, timeout: int, pairs: Sequence[str] | None
) -> Iterator[CoordinatorClient]:
    """A client whose failures end the command with one clear line."""
    try:
        with CoordinatorClient(
            bootstrap_servers,
            topic_prefix=prefix,
            client_id="group-coordinator-cli",
            request_timeout_ms=timeout * 1000,
            config=key_values(pairs, "--property"),
        ) as client:
            yield client
    except RequestTimedOut as error:
        fail(f"{error.message} (is `group-coordinator run` running?)", UNANSWERED)
    except CoordinatorNotAvailable as error:
        fail(str(error), UNANSWERED)
    except CoordinatorError as error:
        fail(str(error), REFUSED)


# ---- groups ----------------------------------------------------------------------------------------------------


@groups.command("list")
def list_groups(
    bootstrap_servers: BootstrapServers,
    topic_prefix: TopicPrefix = "",
    state: Annotated[list[str] | None, typer.Option(help="Only groups in this state, e.g. Stable. Repeatable.")] = None,
    group_type: Annotated[list[str] | None, typer.Option("--type", help="Only groups of this type.")] = None,
    timeout: Timeout = 10,
    as_json: AsJson = False,
    properties: ClientProperties = None,
) -> None:
    """List all groups, from the coordinator's directory topic.

    Example: `group-coordinator groups list -b localhost:9092 --state Stable`
    """
    with asking(bootstrap_servers, topic_prefix, timeout, properties) as client:
        listing = client.list_groups(state or (), group_type or ())
    if as_json:
        print_json(listing.groups)
        return
    table = Table("GROUP", "STATE", "TYPE", "PROTOCOL TYPE")
    for group in listing.groups:
        table.add_row(group.group_id, group.group_state, group.group_type, group.protocol_type or "-")
    out.print(table)


@groups.command("describe")
def describe_groups(
    group: Annotated[list[str], typer.Argument(help="Group ids.")],
    bootstrap_servers: BootstrapServers,
    topic_prefix: TopicPrefix = "",
    timeout: Timeout = 10,
    as_json: AsJson = False,
    properties: ClientProperties = None,
) -> None:
    """Show groups: state, protocol and every member with its assignment.

    Example: `group-coordinator groups describe billing -b localhost:9092`
    """
    with asking(bootstrap_servers, topic_prefix, timeout, properties) as client:
        described = client.describe_groups(group).groups
    if as_json:
        print_json(described)
    else:
        for entry in described:
            print_group(entry)
    exit_on_errors({entry.group_id: entry.error_code for entry in described})


def print_group(group: DescribedGroup) -> None:
    """A group as a headline and a table of its members."""
    if group.error_code:
        return
    protocol = f"{group.protocol_type or 'no protocol type'}, {group.protocol_data or 'no protocol chosen'}"
    out.print(f"[bold]{group.group_id}[/bold]: {group.group_state} ({protocol}), {len(group.members)} member(s)")
    if not group.members:
        return
    table = Table("MEMBER", "INSTANCE", "CLIENT", "HOST", "ASSIGNMENT")
    for member in group.members:
        instance = member.group_instance_id or "-"
        assignment = describe_assignment(group.protocol_type, member)
        table.add_row(member.member_id, instance, member.client_id, member.client_host, assignment)
    out.print(table)


def describe_assignment(protocol_type: str, member: DescribedMember) -> str:
    """A consumer's assignment as ``topic: 0, 1``; of other protocol types only the size can be told."""
    assignment = member.member_assignment
    if not assignment:
        return "-"
    if protocol_type == "consumer":
        try:
            partitions = decode_assignment(assignment).partitions
        except ConsumerProtocolError:
            return f"{len(assignment)} bytes, unreadable"
        by_topic: dict[str, list[str]] = {}
        for topic, partition in sorted(partitions):
            by_topic.setdefault(topic, []).append(str(partition))
        return "\n".join(f"{topic}: {', '.join(numbers)}" for topic, numbers in by_topic.items()) or "-"
    return f"{len(assignment)} bytes"


@groups.command("delete")
def delete_groups(
    group: Annotated[list[str], typer.Argument(help="Group ids.")],
    bootstrap_servers: BootstrapServers,
    topic_prefix: TopicPrefix = "",
    timeout: Timeout = 10,
    as_json: AsJson = False,
    properties: ClientProperties = None,
) -> None:
    """Delete groups that have no members, with their committed offsets.

    Example: `group-coordinator groups delete billing -b localhost:9092`
    """
    with asking(bootstrap_servers, topic_prefix, timeout, properties) as client:
        results = client.delete_groups(group).results
    if as_json:
        print_json(results)
    else:
        for result in results:
            if not result.error_code:
                out.print(f"{result.group_id}: deleted")
    exit_on_errors({result.group_id: result.error_code for result in results})


def exit_on_errors(error_codes: dict[str, int]) -> None:
    """One line per failed entry, and exit code 1 if there is any."""
    failed = {name: error_of(code).name for name, code in error_codes.items() if code != Error.NONE}
    if failed:
        fail("; ".join(f"{name}: {error}" for name, error in failed.items()), REFUSED)


# ---- offsets ---------------------------------------------------------------------------------------------------


@offsets.command("list")
def list_offsets(
    group: Annotated[str, typer.Argument(help="Group id.")],
    bootstrap_servers: BootstrapServers,
    topic_prefix: TopicPrefix = "",
    timeout: Timeout = 10,
    as_json: AsJson = False,
    properties: ClientProperties = None,
) -> None:
    """Show every offset that a group has committed.

    Example: `group-coordinator offsets list billing -b localhost:9092`
    """
    with asking(bootstrap_servers, topic_prefix, timeout, properties) as client:
        fetched = client.offset_fetch([GroupToFetch(group)]).groups[0]
    if as_json:
        print_json(fetched)
    elif not fetched.error_code:
        out.print(offsets_table(fetched))
    exit_on_errors({group: fetched.error_code})


def offsets_table(fetched: FetchedGroup) -> Table:
    """The offsets by topic and partition."""
    table = Table("TOPIC", "PARTITION", "OFFSET", "LEADER EPOCH", "METADATA")
    for topic in sorted(fetched.topics, key=lambda topic: topic.name):
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index):
            epoch = "-" if partition.committed_leader_epoch < 0 else str(partition.committed_leader_epoch)
            index, offset = str(partition.partition_index), str(partition.committed_offset)
            table.add_row(topic.name, index, offset, epoch, partition.metadata)
    return table


@offsets.command("commit")
def commit_offsets(
    group: Annotated[str, typer.Argument(help="Group id.")],
    position: Annotated[list[str], typer.Argument(metavar="TOPIC:PARTITION=OFFSET...", help="What to commit.")],
    bootstrap_servers: BootstrapServers,
    topic_prefix: TopicPrefix = "",
    metadata: Annotated[str, typer.Option(help="Free text to store with the offsets.")] = "",
    timeout: Timeout = 10,
    as_json: AsJson = False,
    properties: ClientProperties = None,
) -> None:
    """Set offsets of a group that has no members now; a group that does not exist is created.

    Example: `group-coordinator offsets commit billing orders:0=42 orders:1=0 -b localhost:9092`
    """
    request = OffsetCommitRequest(group, topics_to_commit(position, metadata))
    with asking(bootstrap_servers, topic_prefix, timeout, properties) as client:
        committed = client.offset_commit(request)
    if as_json:
        print_json(committed)
    errors = {
        f"{topic.name}:{partition.partition_index}": partition.error_code
        for topic in committed.topics
        for partition in topic.partitions
    }
    exit_on_errors(errors)
    if not as_json:
        out.print(f"{group}: committed {len(errors)} offset(s)")


def topics_to_commit(positions: Sequence[str], metadata: str) -> list[TopicToCommit]:
    """``TOPIC:PARTITION=OFFSET`` arguments as Kafka's request has them."""
    topics: dict[str, list[PartitionToCommit]] = {}
    for position in positions:
        where, _, offset = position.rpartition("=")
        topic, _, partition = where.rpartition(":")
        if not (topic and partition.isdecimal() and offset.isdecimal()):
            fail(f"{position!r} is not TOPIC:PARTITION=OFFSET", USAGE)
        entry = PartitionToCommit(int(partition), int(offset), committed_metadata=metadata)
        topics.setdefault(topic, []).append(entry)
    return [TopicToCommit(topic, partitions) for topic, partitions in topics.items()]


# ---- the coordinator itself ------------------------------------------------------------------------------------


JOB_FLAGS = (
    *("checkpoint", "topic_prefix", "request_partitions", "response_partitions", "replication_factor"),
    *("profile", "trigger_interval_ms", "state_partitions", "state_store"),
    *("master", "driver_memory", "metrics_port"),
)
"""Options of ``run`` that are the job's own, by the names that :func:`streaming.options.load_options` knows."""


@app.command()
def run(
    context: typer.Context,
    bootstrap_servers: Annotated[str | None, typer.Option("--bootstrap-servers", "-b", help="Kafka brokers.")] = None,
    checkpoint: Annotated[str | None, typer.Option(help="Where the groups live: a folder, or a URI for Spark.")] = None,
    embedded: Annotated[bool, typer.Option("--embedded", help="Start a Kafka broker for it on this machine.")] = False,
    embedded_port: Annotated[int, typer.Option(min=0, max=65535, help="The broker's port; 0 takes a free one.")] = 0,
    gateway: Annotated[
        bool, typer.Option("--gateway", help="Start a gateway with it, for Kafka clients as they are.")
    ] = False,
    gateway_listen: Annotated[
        str | None, typer.Option(help="`HOST:PORT` of the gateway; 127.0.0.1:19092 by default.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with any of the options.")] = None,
    topic_prefix: Annotated[str | None, typer.Option(help="What the names of its topics begin with.")] = None,
    request_partitions: Annotated[int | None, typer.Option(help="Partitions of a new request topic.")] = None,
    response_partitions: Annotated[int | None, typer.Option(help="Partitions of a new response topic.")] = None,
    replication_factor: Annotated[int | None, typer.Option(help="Replicas of new topics.")] = None,
    profile: Annotated[str | None, typer.Option(help="latency, balanced or object-store.")] = None,
    trigger_interval_ms: Annotated[int | None, typer.Option(help="Least time between two batches.")] = None,
    state_partitions: Annotated[int | None, typer.Option(help="Parts of the state; fixed with the checkpoint.")] = None,
    state_store: Annotated[str | None, typer.Option(help="memory or rocksdb; fixed with the checkpoint.")] = None,
    master: Annotated[str | None, typer.Option(help="Spark's master, e.g. `local[2]`.")] = None,
    driver_memory: Annotated[str | None, typer.Option(help="Heap of the driver, e.g. `1g`.")] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="Port of the Prometheus metrics; 0 takes a free one.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any option, e.g. `group.max.size=100`. Repeatable."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Report as JSON lines.")] = False,
) -> None:
    """Run the coordinator until Ctrl-C or SIGTERM; the batch in flight finishes first.

    Every option can also be an environment variable, `GROUP_COORDINATOR_BOOTSTRAP_SERVERS` for
    `--bootstrap-servers`, or a key of the TOML file. The protocol's options have Kafka's own keys:
    `--set group.initial.rebalance.delay.ms=0`. `--set kafka.KEY=VALUE` goes to Kafka's clients,
    `--set spark.KEY=VALUE` to Spark.

    Examples:

    `group-coordinator run --embedded`

    `group-coordinator run --embedded --gateway`

    `group-coordinator run -b kafka-1:9092 --checkpoint /var/lib/coordinator --metrics-port 9404`
    """
    flags = {name: context.params[name] for name in JOB_FLAGS} | key_values(settings, "--set")
    from streaming.run import BadOptions, GatewayChoice, run_coordinator

    try:
        run_coordinator(
            flags,
            bootstrap_servers,
            config,
            embedded_port if embedded else None,
            reporter(as_json),
            GatewayChoice(gateway_listen) if gateway else None,
        )
    except BadOptions as error:
        fail(str(error), USAGE)
    except (CannotRun, BrokerStartError, JarResolutionError, MissingPrerequisite) as error:
        fail(str(error), REFUSED)


app.command("gateway")(gateway_command)


@app.command()
def demo(as_json: AsJson = False) -> None:
    """Show it all on this machine: a broker, a coordinator, consumers, and what happens when they are killed."""
    try:
        from streaming.demo.story import StoryFailed, play
    except ModuleNotFoundError as missing:
        fail(f"{missing.name} is not installed: install the extra `demo`", REFUSED)
    try:
        passed = play(err if as_json else out, as_json)
    except (StoryFailed, BrokerStartError, JarResolutionError, MissingPrerequisite) as error:
        fail(str(error), REFUSED)
    if not passed:
        raise typer.Exit(REFUSED)


# ---- the rest --------------------------------------------------------------------------------------------------


@app.command()
def broker(
    data_dir: Annotated[Path | None, typer.Option(help="Where its data lives; a temporary folder by default.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Run a real Kafka broker on this machine until Ctrl-C.

    Example: `group-coordinator broker --port 9092 --data-dir /tmp/kafka`
    """
    try:
        # From before the address is printed: whoever reads it may ask for the end at once.
        with stop_requested() as stop, EmbeddedBroker(data_dir=data_dir, port=port) as running:
            if as_json:
                print_json({"bootstrapServers": running.bootstrap_servers, "dataDir": str(running.data_dir)})
            else:
                out.print(
                    f"Kafka listens on {running.bootstrap_servers} (data in {running.data_dir}); Ctrl-C stops it."
                )
            stop.wait()
    except (BrokerStartError, MissingPrerequisite) as error:
        fail(str(error), REFUSED)


@app.command()
def schema() -> None:
    """Print the JSON Schema of everything that travels over the topics."""
    from streaming.schema import json_schema

    print_json(json_schema())


@app.command()
def version(as_json: AsJson = False) -> None:
    """Print the versions of this program and of what it stands on."""
    names = ("spark-group-coordinator", "pyspark", "confluent-kafka", "msgspec", "pyarrow", "pandas")
    versions = {name: found for name in names if (found := _version_of(name))}
    versions["python"] = ".".join(map(str, sys.version_info[:3]))
    if as_json:
        print_json(versions)
        return
    for name, found in versions.items():
        out.print(f"{name} {found}", highlight=False)


def _version_of(distribution: str) -> str | None:
    from importlib.metadata import PackageNotFoundError

    try:
        return installed_version(distribution)
    except PackageNotFoundError:
        return None


def main() -> None:
    """The console command."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
