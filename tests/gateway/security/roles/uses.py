"""For each right of each role, the quickest thing that needs it, done by the code that needs it.

A use returns what its user reads when the brokers refuse it, and None when it works.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import KafkaException

from streaming.client import Consumer as ServiceConsumer
from streaming.client import CoordinatorClient
from streaming.client.announced_epoch import announced_epoch
from streaming.client.directory import read_directory
from streaming.client.errors import CoordinatorError
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.contract.errors import CannotRun
from streaming.contract.rights.table import OF_USERS, Kind, Operation
from streaming.contract.topics import TopicNames
from streaming.gateway.groups.first_contact.groups_of_journal import GroupsOfJournal
from streaming.gateway.options import GatewayOptions
from streaming.gateway.proxy.cluster import Cluster
from streaming.gateway.security.topic_catalog import TopicCatalog
from streaming.gateway.transactions.participation_log import ParticipationLog, ParticipationLogUnavailable
from streaming.gateway.transactions.timeouts import TransactionTimeouts
from streaming.job.backups.last_job import find_last_job
from streaming.job.backups.topic_reach import topic_reach
from streaming.job.election.announcements import ActiveJob, AnnouncementWatch
from streaming.job.election.lease import Lease
from streaming.job.options import load_options
from streaming.job.topics.creation import admin_client, ensure_topics
from streaming.job.topics.inspection import describe_topics, topic_settings
from streaming.job.wake_events.producer import WakeEvents
from streaming.journal.reader import journal_entries
from tests.gateway.security.roles.cluster import GROUP, NEW, TOPIC, SecuredCluster
from tests.gateway.security.roles.job import SecuredJob
from tests.gateway.security.roles.members import begins_transaction, commits_in_transaction, consumes, fetches_offset
from tests.gateway.transactions.test_participation_log import participations
from tests.support.gateway_process import GatewayProcess
from tests.support.kafka_io import append
from tests.support.waiting import wait_until

LIMIT = 10.0
"""Seconds for each answer of the brokers, which are at hand."""


@dataclass(frozen=True)
class Processes:
    """What runs with the rights: a broker, an active job and a gateway."""

    cluster: SecuredCluster
    job: SecuredJob
    gateway: GatewayProcess


Use = Callable[[Processes], str | None]

REFUSED = (CannotRun, CoordinatorError, KafkaException, ParticipationLogUnavailable)


@contextmanager
def warnings_of_project() -> Iterator[list[str]]:
    """The warnings that this process logs within the block."""
    lines: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("streaming")
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)


def refusal(action: Callable[[], object]) -> str | None:
    """What the exception of an action says, and the warnings before it; None if it has none."""
    with warnings_of_project() as warned:
        try:
            action()
        except REFUSED as failure:
            return "\n".join([*warned, str(failure)])
    return None


def command(role: str, *arguments: str) -> Use:
    """A command of a role."""

    def use(processes: Processes) -> str | None:
        done = processes.cluster.command(role, *arguments)
        return None if done.exit_code == 0 else done.stderr

    return use


# ---- the job ---------------------------------------------------------------------------------------------------


def creates(name: str) -> Use:
    """The job's start, without one topic of a new prefix."""

    def use(processes: Processes) -> str | None:
        names, options = TopicNames(NEW), processes.job.options
        processes.cluster.delete_topic(f"{NEW}{name}")
        return refusal(lambda: ensure_topics(options.librdkafka_config, names, options.layout))

    return use


def starts(first: Callable[[Processes], object]) -> Use:
    """The job's start, which names the right if the brokers refuse the request that needs it."""

    def use(processes: Processes) -> str | None:
        options = processes.job.options
        if refusal(lambda: first(processes)) is None:
            return None
        return refusal(lambda: ensure_topics(options.librdkafka_config, options.topics, options.layout))

    return use


def reads_settings(name: str) -> Use:
    """A start that reads the settings of a topic."""

    def settings(processes: Processes) -> object:
        with admin_client(processes.job.options.librdkafka_config) as admin:
            return topic_settings(admin, [f"{processes.cluster.names.prefix}{name}"], LIMIT)

    return starts(settings)


def describes_transactions(processes: Processes) -> object:
    with admin_client(processes.job.options.librdkafka_config) as admin:
        return describe_topics(admin, [processes.cluster.names.transactions], LIMIT)


def runs(append: Callable[[SecuredJob], object]) -> Use:
    """The running query, after a request."""

    def use(processes: Processes) -> str | None:
        job = processes.job
        return job.refusal(lambda: append(job))

    return use


def appends_wake_event(processes: Processes) -> str | None:
    config = processes.job.options.librdkafka_config
    return refusal(WakeEvents(config, processes.cluster.names.requests).append_first)


def takes_over(processes: Processes) -> str | None:
    config, topic = processes.job.options.librdkafka_config, processes.cluster.names.journal
    return refusal(lambda: list(journal_entries(config, topic, LIMIT)))


def becomes_active(processes: Processes) -> str | None:
    """The election on the topics of the new prefix."""
    config, topic = processes.job.options.librdkafka_config, TopicNames(NEW).coordinators
    servers = config["bootstrap.servers"]
    # A reader of an empty topic reads nothing.
    append(processes.cluster.open_address, topic, (b"unknown", b"{}"))
    me = ActiveJob(epoch=1, host="host", process_id=1, started_at=1, version="1")

    def acquire() -> None:
        with AnnouncementWatch(servers, "test", config, topic, LIMIT) as watch:
            watch.look()
            Lease(servers, config, topic, topic, LIMIT).acquire(watch, me)

    return refusal(acquire)


# ---- who uses the topics ---------------------------------------------------------------------------------------


def connects(role: str) -> Use:
    """A client of the coordinator's topics, which is what a gateway, a service and a command are."""

    def use(processes: Processes) -> str | None:
        cluster = processes.cluster

        def describe() -> None:
            with CoordinatorClient(
                cluster.address,
                topic_prefix=cluster.names.prefix,
                client_id=role,
                config=cluster.login(role),
                request_timeout_ms=round(LIMIT * 1000),
            ) as client:
                client.describe_groups([GROUP])

        return refusal(describe)

    return use


def looks_for_epoch(role: str) -> Use:
    def use(processes: Processes) -> str | None:
        cluster = processes.cluster
        topic = cluster.names.coordinators
        return refusal(lambda: announced_epoch(cluster.address, topic, role, cluster.login(role), LIMIT))

    return use


def lists(role: str) -> Use:
    def use(processes: Processes) -> str | None:
        cluster = processes.cluster
        topic = cluster.names.directory
        return refusal(lambda: read_directory(cluster.address, topic, role, cluster.login(role), LIMIT))

    return use


def service_consumes(processes: Processes) -> str | None:
    cluster = processes.cluster
    with (
        warnings_of_project() as warned,
        ServiceConsumer(
            cluster.address,
            "service-group",
            topic_prefix=cluster.names.prefix,
            auto_offset_reset="earliest",
            config=cluster.login("service"),
        ) as consumer,
    ):
        consumer.subscribe([TOPIC])
        wait_until(lambda: consumer.poll(0.1) or warned, "a record or a refusal")
    return "\n".join(warned) or None


# ---- the gateway and its clients -------------------------------------------------------------------------------


def asks_journal(processes: Processes) -> str | None:
    cluster = processes.cluster
    journal = GroupsOfJournal(cluster.address, cluster.names.journal, cluster.login("gateway"))
    return refusal(lambda: journal.among([GROUP]))


def participation(writes: bool) -> Use:
    """The gateways' log of transactions: another gateway's participations, or one of its own."""

    def use(processes: Processes) -> str | None:
        cluster = processes.cluster
        timeouts = TransactionTimeouts(log_metadata_seconds=LIMIT, log_read_seconds=2.0, log_delivery_seconds=LIMIT)

        async def run() -> None:
            log = ParticipationLog(
                cluster.address, cluster.names.transactions, "gateway", cluster.login("gateway"), timeouts
            )
            log.start()
            try:
                if writes:
                    await log.write(participations(1))
                    await log.erase(participations(1))
                else:
                    await log.read()
            finally:
                await asyncio.to_thread(log.close)

        return refusal(lambda: asyncio.run(run()))

    return use


def describes_topics(processes: Processes) -> str | None:
    cluster = processes.cluster
    options = GatewayOptions(bootstrap_servers=cluster.address, kafka=cluster.login("gateway"))

    async def run() -> None:
        brokers = Cluster(options, {})
        await brokers.open()
        await TopicCatalog(brokers).find([TOPIC])

    return refusal(lambda: asyncio.run(run()))


def at_gateway(does: Callable[[GatewayProcess, Mapping[str, str]], str | None]) -> Use:
    """What an ordinary client does at the gateway; it returns Kafka's error."""
    return lambda processes: does(processes.gateway, processes.cluster.login_at_gateway("client"))


def logged(use: Use) -> Use:
    """What the gateway logs about the right that it lacks itself, when its client is refused."""

    def logging_use(processes: Processes) -> str | None:
        begin = len(processes.gateway.output)
        if use(processes) is None:
            return None
        wait_until(
            lambda: any("do not allow" in line for line in processes.gateway.output[begin:]),
            "a line of the gateway",
            describe=processes.gateway.tail,
        )
        return "\n".join(processes.gateway.output[begin:])

    return logging_use


def publishes_anew(processes: Processes) -> str | None:
    """Publish everything on a topic that does not exist."""
    processes.cluster.delete_topic(processes.cluster.names.rebalances)
    return command("publisher", "events", "--publish")(processes)


# ---- recovery --------------------------------------------------------------------------------------------------


def recovers(first: Callable[[LibrdkafkaConfig, TopicNames], object]) -> Use:
    """What `checkpoint rebuild` does first with a topic."""

    def use(processes: Processes) -> str | None:
        config = processes.cluster.login("recovery") | {"bootstrap.servers": processes.cluster.address}
        return refusal(lambda: first(config, processes.cluster.names))

    return use


def finds_last_job(processes: Processes) -> str | None:
    """On the new topics, where no job is active."""
    own: dict[str, object] = {**processes.cluster.job_options("recovery"), "topic-prefix": NEW}
    unused: dict[str, object] = {"bootstrap-servers": processes.cluster.address, "checkpoint": "unused"}
    return refusal(lambda: find_last_job(load_options({**own, **unused}, {}), None, LIMIT))


Key = tuple[str, Kind, str, Operation]

READ, WRITE, CREATE = Operation.READ, Operation.WRITE, Operation.CREATE
DESCRIBE, SETTINGS = Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS

JOB_TOPICS = ("requests", "responses", "journal", "directory", "rejects", "transactions", "coordinators")


def _topics(role: str, uses: Mapping[tuple[str, Operation], Use]) -> dict[Key, Use]:
    return {
        (role, Kind.TOPIC, name if name == OF_USERS else f"group-{name}", operation): use
        for (name, operation), use in uses.items()
    }


USES: Mapping[Key, Use] = {
    **_topics("job", {(name, CREATE): creates(f"group-{name}") for name in JOB_TOPICS}),
    **_topics("job", {(name, SETTINGS): reads_settings(f"group-{name}") for name in JOB_TOPICS}),
    **_topics(
        "job",
        {
            ("requests", READ): runs(SecuredJob.append_commit),
            ("requests", WRITE): appends_wake_event,
            ("responses", WRITE): runs(SecuredJob.append_commit),
            ("journal", READ): takes_over,
            ("journal", WRITE): runs(SecuredJob.append_commit),
            ("directory", READ): lists("job"),
            ("directory", WRITE): runs(SecuredJob.append_commit),
            ("rejects", WRITE): runs(SecuredJob.append_garbage),
            ("transactions", DESCRIBE): starts(describes_transactions),
            ("coordinators", READ): becomes_active,
            ("coordinators", WRITE): becomes_active,
        },
    ),
    ("job", Kind.TRANSACTIONAL_ID, "group-coordinators", WRITE): becomes_active,
    **_topics(
        "gateway",
        {
            ("requests", WRITE): connects("gateway"),
            ("responses", READ): connects("gateway"),
            ("coordinators", READ): looks_for_epoch("gateway"),
            ("directory", READ): lists("gateway"),
            ("journal", READ): asks_journal,
            ("transactions", READ): participation(writes=False),
            ("transactions", WRITE): participation(writes=True),
            (OF_USERS, DESCRIBE): describes_topics,
        },
    ),
    ("gateway", Kind.TRANSACTIONAL_ID, OF_USERS, WRITE): logged(at_gateway(commits_in_transaction)),
    ("gateway", Kind.GROUP, OF_USERS, READ): logged(at_gateway(commits_in_transaction)),
    **_topics(
        "service",
        {
            ("requests", WRITE): connects("service"),
            ("responses", READ): connects("service"),
            ("coordinators", READ): looks_for_epoch("service"),
            ("directory", READ): lists("service"),
            (OF_USERS, READ): service_consumes,
        },
    ),
    ("client", Kind.TOPIC, OF_USERS, READ): at_gateway(consumes),
    ("client", Kind.GROUP, OF_USERS, READ): at_gateway(fetches_offset),
    ("client", Kind.TRANSACTIONAL_ID, OF_USERS, WRITE): at_gateway(begins_transaction),
    **_topics(
        "reader",
        {
            ("journal", READ): command("reader", "events"),
            ("requests", READ): command("reader", "explain", GROUP, "--refused"),
        },
    ),
    **_topics(
        "operator",
        {
            ("requests", WRITE): command("operator", "groups", "describe", GROUP),
            ("responses", READ): command("operator", "groups", "describe", GROUP),
            ("coordinators", READ): looks_for_epoch("operator"),
            ("directory", READ): command("operator", "groups", "list"),
            ("journal", READ): command("operator", "offsets", "history", GROUP),
            ("requests", READ): command("operator", "explain", GROUP, "--refused"),
            (OF_USERS, DESCRIBE): command("operator", "offsets", "reset", GROUP, "--topic", TOPIC, "--to-earliest"),
        },
    ),
    **_topics(
        "publisher",
        {
            ("journal", READ): command("publisher", "events", "--publish"),
            ("rebalances", CREATE): publishes_anew,
            ("rebalances", READ): command("publisher", "events", "--publish"),
            ("rebalances", WRITE): publishes_anew,
        },
    ),
    **_topics(
        "recovery",
        {
            ("requests", READ): recovers(lambda config, names: topic_reach(config, names.requests, LIMIT)),
            ("journal", READ): recovers(lambda config, names: list(journal_entries(config, names.journal, LIMIT))),
            ("directory", READ): lists("recovery"),
            ("coordinators", READ): finds_last_job,
        },
    ),
    ("publisher", Kind.TRANSACTIONAL_ID, "group-rebalances", WRITE): command("publisher", "events", "--publish"),
}

ON_NEW_TOPICS = frozenset(
    key
    for key, use in USES.items()
    if use in (becomes_active, finds_last_job) or (key[3] is CREATE and key[0] == "job")
)
"""Those that use the topics with the prefix of :data:`NEW`, beside those of the running job."""
