"""The demo: its acts in their order, and what each of them checks."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from coordinator_logic.messages import DescribedGroup
from streaming.client import CoordinatorClient
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.contract.output.text import counted
from streaming.contract.topics import TopicNames
from streaming.drills.clients.offsets import committed_of
from streaming.drills.clients.records import RecordProducer, create_topic
from streaming.drills.console_output import ConsoleOutput
from streaming.drills.demo.consumer_process import ClientLibrary, installed_kafka_clients
from streaming.drills.demo.group_consumers import Check, GroupConsumers, committed_everything
from streaming.drills.own_coordinator import OwnCoordinator, Say, own_folder
from streaming.drills.recording import Recording
from streaming.drills.waiting import DrillFailed, await_until
from streaming.embedded.jars import resolve_jars
from streaming.explain.page.of_group import page_of_group

TOPIC, PARTITIONS, RECORDS_PER_SECOND = "orders", 6, 200
GROUP, KAFKA_GROUP = "billing", "invoices"
FIRST_MEMBER, KILLED_MEMBER, STATIC_MEMBER, STATIC_INSTANCE = "consumer-1", "consumer-2", "consumer-3", "till-3"
KILLED_SESSION_TIMEOUT_MS = 6_000
"""Short, because the demo waits for its end."""
WAIT_SECONDS = 60.0
TAKEOVER_LIMIT_MS = 180_000
"""A standby needs some seconds, and a minute where other programs use all cores."""
ERRORS_ONLY = 3


class Demo:
    """What the acts share until the end of ``stack``: the coordinator, its topic with a producer, and two groups."""

    def __init__(
        self, recording: Recording, output: ConsoleOutput, coordinator: OwnCoordinator, stack: ExitStack
    ) -> None:
        self.recording = recording
        self.coordinator = coordinator
        self.servers = coordinator.bootstrap_servers
        self.output = output
        create_topic(self.servers, TOPIC, PARTITIONS)
        self.producer = RecordProducer(self.servers, TOPIC, PARTITIONS, RECORDS_PER_SECOND)
        self.producer.start()
        stack.callback(self.producer.stop)
        consumers = partial(GroupConsumers, topic=TOPIC, folder=coordinator.folder, step=self.step, stack=stack)
        self.members = consumers(GROUP, bootstrap_servers=self.servers)
        self.kafka_clients = consumers(KAFKA_GROUP, bootstrap_servers=coordinator.gateway)

    def step(self, text: str) -> None:
        """Say what is done, or has happened. From any thread."""
        self.recording.step("step", text)

    def wait_until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds. Raises DrillFailed after :data:`WAIT_SECONDS`."""
        self.wait_for(what, lambda: await_until(condition, lambda: what, WAIT_SECONDS))

    def wait_for(self, what: str, wait: Callable[[], object]) -> None:
        """Wait, and say afterwards how long that took."""
        began = time.monotonic()
        with self.output.waiting(what):
            wait()
        self.recording.step("reached", f"{what} (after {time.monotonic() - began:.1f} s)")

    def client(self) -> CoordinatorClient:
        """A connection to the coordinator over its topics."""
        return CoordinatorClient(self.servers, client_id="demo", request_timeout_ms=TAKEOVER_LIMIT_MS)

    def admin(self) -> AdminClient:
        """An admin client at the gateway. Keep a reference until it has answered: its requests are lost with it."""
        # On closing it would warn of events that were never polled.
        return AdminClient({"bootstrap.servers": self.coordinator.gateway, "log_level": ERRORS_ONLY})


@dataclass(frozen=True)
class Act:
    """A part of the demo. what: what is done, and what to expect. play: does it, and checks what came of it."""

    title: str
    what: str
    play: Callable[[Demo], Iterator[Check]]


def join(demo: Demo) -> Iterator[Check]:
    """Start three consumers one after the other, and a job that stands by."""
    names: list[str] = []
    for name, more in (
        (FIRST_MEMBER, {}),
        (KILLED_MEMBER, {"session_timeout_ms": KILLED_SESSION_TIMEOUT_MS}),
        (STATIC_MEMBER, {"group_instance_id": STATIC_INSTANCE}),
    ):
        names.append(name)
        demo.members.start(name, ClientLibrary.STREAMING, **more)
        demo.wait_until(
            f"{name} owns all partitions" if len(names) == 1 else f"{len(names)} consumers share the partitions",
            lambda: demo.members.reports.shared_by(*names, partitions=PARTITIONS),
        )
    # Its start takes seconds, which the next acts need anyway.
    demo.coordinator.start_standby()
    yield from ()


def kill_consumer(demo: Demo) -> Iterator[Check]:
    """Kill a consumer, and wait until the others have its partitions."""
    reports, before = demo.members.reports, demo.members.reports.delivered
    demo.wait_until("all consumers are consuming", lambda: reports.delivered > before + RECORDS_PER_SECOND)
    demo.members.kill(KILLED_MEMBER)
    demo.recording.step("fault", f"{KILLED_MEMBER} is dead")
    demo.wait_until(
        "the other two share all partitions",
        lambda: reports.shared_by(FIRST_MEMBER, STATIC_MEMBER, partitions=PARTITIONS),
    )
    yield from ()


def restart_static_member(demo: Demo) -> Iterator[Check]:
    """Close a static member and start it again."""
    reports = demo.members.reports
    generation, owned = reports.generations[STATIC_MEMBER], set(reports.owned[STATIC_MEMBER])
    demo.members.close(STATIC_MEMBER)
    demo.members.start(STATIC_MEMBER, ClientLibrary.STREAMING, group_instance_id=STATIC_INSTANCE)
    demo.wait_until(f"{STATIC_MEMBER} is back", lambda: bool(reports.owned.get(STATIC_MEMBER)))
    new_generation, new_owned = reports.generations[STATIC_MEMBER], reports.owned[STATIC_MEMBER]
    detail = f"generation {generation} before, {new_generation} after; partitions {sorted(owned)}, {sorted(new_owned)}"
    unchanged = (new_generation, new_owned) == (generation, owned)
    yield Check("the static member returned without a rebalance", unchanged, detail)


def join_kafka_clients(demo: Demo) -> Iterator[Check]:
    """Start a consumer of each Kafka client, and check that an admin client sees a stable group of them."""
    libraries = installed_kafka_clients()
    if ClientLibrary.KAFKA_PYTHON not in libraries:
        demo.step("kafka-python is not installed (extra `demo`): librdkafka joins alone")
    for library in libraries:
        demo.kafka_clients.start(library, library)
    demo.wait_until(
        "the Kafka clients share the partitions",
        lambda: demo.kafka_clients.reports.shared_by(*libraries, partitions=PARTITIONS),
    )
    admin = demo.admin()
    group = admin.describe_consumer_groups([KAFKA_GROUP])[KAFKA_GROUP].result(WAIT_SECONDS)
    owners = {
        member.client_id: sorted(assigned.partition for assigned in member.assignment.topic_partitions)
        for member in group.members
    }
    owned = sorted(partition for share in owners.values() for partition in share)
    passed = group.state.name == "STABLE" and set(owners) == set(libraries) and owned == list(range(PARTITIONS))
    shares = ", ".join(f"{name} {' '.join(map(str, share))}" for name, share in sorted(owners.items()))
    yield Check(f"a group of {' and '.join(libraries)} is stable", passed, f"{group.state.name.lower()}; {shares}")


def kill_active_job(demo: Demo) -> Iterator[Check]:
    """Kill the active job while another one stands by, and check that no group rebalances."""
    coordinator = demo.coordinator
    demo.wait_for("the second job stands by", coordinator.standby.await_standby)
    before, assignments = dict(demo.members.reports.generations), demo.kafka_clients.reports.assignments
    with demo.client() as client:
        coordinator.job.send_kill()
        killed_at = time.monotonic()
        coordinator.switch_to_standby()
        demo.recording.step("fault", "the active job is dead; the consumers keep consuming")
        answers: list[DescribedGroup] = []
        demo.wait_for(
            "the standby describes the group", lambda: answers.append(client.describe_groups([GROUP]).groups[0])
        )
        seconds = time.monotonic() - killed_at
    group, after = answers[0], dict(demo.members.reports.generations)
    stable = group.group_state == "Stable" and len(group.members) == len(before)
    detail = (
        f"first answer after {seconds:.1f} s; {group.group_state}, {counted(len(group.members), 'member')}, "
        f"generations {before} before, {after} after"
    )
    yield Check("the take-over caused no rebalance", stable and before == after, detail)
    count = demo.kafka_clients.reports.assignments - assignments
    yield Check("the take-over caused no rebalance of the Kafka clients", count == 0, f"{count} new assignments")


def finish(demo: Demo) -> Iterator[Check]:
    """Stop the producer, close all consumers, and check what was consumed and committed."""
    if missing := demo.producer.stop(WAIT_SECONDS):
        raise DrillFailed(f"{missing} records could not be written to the topic")
    admin = demo.admin()
    places = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    newest = admin.list_offsets(dict.fromkeys(places, latest))
    ends = {place.partition: future.result(WAIT_SECONDS).offset for place, future in newest.items()}
    for who, group in (("the consumers", demo.members), ("the Kafka clients", demo.kafka_clients)):
        demo.wait_until(f"{who} have consumed every record", partial(group.reports.has_consumed, ends))
        for name in group.live:
            group.close(name)
    with demo.client() as client:
        committed = {partition: offset for (_, partition), offset in committed_of(client, [GROUP]).items()}
    yield demo.members.reports.every_record_consumed(ends)
    yield demo.members.reports.one_owner_per_generation()
    yield committed_everything(committed, ends)
    yield _through_gateway(demo.kafka_clients.reports.every_record_consumed(ends))
    futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(KAFKA_GROUP)])
    offsets = futures[KAFKA_GROUP].result(WAIT_SECONDS).topic_partitions
    yield _through_gateway(committed_everything({each.partition: each.offset for each in offsets}, ends))
    exit_code = demo.coordinator.job.terminate()
    yield Check("the coordinator shut down cleanly", exit_code == 0, f"exit code {exit_code}")


def _through_gateway(check: Check) -> Check:
    return Check(f"{check.name} (through the gateway)", check.passed, check.detail)


FIRST_TITLE = "A Kafka broker, the coordinator with a gateway, and a topic with six partitions"
FIRST_WHAT = f"A producer appends {RECORDS_PER_SECOND} records per second to topic {TOPIC} until the last act."

JOIN, KILL_CONSUMER, RESTART_STATIC_MEMBER, JOIN_KAFKA_CLIENTS, KILL_ACTIVE_JOB, FINISH = ACTS = (
    Act(
        "Three consumers join, one after the other",
        f"Every join makes group {GROUP} rebalance: a new generation begins, and all members share the partitions.",
        join,
    ),
    Act(
        f"{KILLED_MEMBER} is killed (kill -9)",
        f"It cannot leave the group. The coordinator removes it after its session timeout of "
        f"{KILLED_SESSION_TIMEOUT_MS // 1000} s, and the other two take over its partitions.",
        kill_consumer,
    ),
    Act(
        f"{STATIC_MEMBER}, a static member, restarts",
        "It has a group.instance.id (KIP-345), so the group keeps its partitions for it and does not rebalance.",
        restart_static_member,
    ),
    Act(
        "Unmodified Kafka clients join through the gateway",
        "The gateway speaks Kafka's wire protocol: the clients change nothing but their bootstrap address.",
        join_kafka_clients,
    ),
    Act(
        "The active job is killed (kill -9), and a standby takes its place",
        "A second job has started with --standby. The checkpoint holds every group: members keep consuming and retry "
        "their requests, and no group rebalances.",
        kill_active_job,
    ),
    Act(
        "The producer stops, and all consumers close",
        "Every record must have been consumed and committed, in spite of the kills.",
        finish,
    ),
)


@contextmanager
def playing(output: ConsoleOutput, title: str, coordinator: Callable[[Say], OwnCoordinator]) -> Iterator[Demo]:
    """A demo whose coordinator and topic are there, until the end of the block; its start is the first act.

    coordinator: makes one that says what it does.
    """
    recording = Recording(output.step)
    output.begin(f"1. {title}", FIRST_WHAT)
    with coordinator(recording.step) as started, ExitStack() as stack:
        yield Demo(recording, output, started, stack)


def played(demo: Demo, number: int, act: Act) -> list[Check]:
    """Play an act, and print its checks; returns them."""
    demo.output.begin(f"{number}. {act.title}", act.what)
    checks = []
    for check in act.play(demo):
        checks.append(check)
        demo.output.check(check.passed, f"{check.name}: {check.detail}")
    return checks


def run_demo(output: ConsoleOutput, page: Path | None = None) -> list[Check]:
    """Run the whole demo, and leave neither processes nor other files behind; returns what was checked.

    page: the file for the story of the demo's group, as a page.

    Raises:
        DrillFailed, NotReported, CoordinatorError: an act does not finish.
        BrokerStartError, JarResolutionError, MissingPrerequisite, CannotRun: see the broker and the gateway.
    """
    began = time.monotonic()
    resolve_jars(output.line)
    with own_folder() as folder, playing(output, FIRST_TITLE, partial(OwnCoordinator, folder, ())) as demo:
        checks = [check for number, act in enumerate(ACTS, 2) for check in played(demo, number, act)]
        if page is not None:
            page.parent.mkdir(parents=True, exist_ok=True)
            config: LibrdkafkaConfig = {"bootstrap.servers": demo.servers}
            page.write_text(page_of_group(config, TopicNames().journal, GROUP, WAIT_SECONDS), "utf-8")
    output.line("")
    output.end("passed" if all(check.passed for check in checks) else "FAILED", time.monotonic() - began)
    if page is not None:
        output.line(f"The story of group {GROUP}, for a browser: {page.absolute().as_uri()}")
    return checks
