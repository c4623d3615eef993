"""The demo's story, act by act. Everything is real: broker, query, consumers, and the kill -9s."""

import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import msgspec
from confluent_kafka import Consumer as PlainConsumer
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from coordinator_logic.messages import GroupToFetch
from streaming.broker import EmbeddedBroker
from streaming.client import CoordinatorClient
from streaming.demo.consumer_process import ConsumerReport
from streaming.demo.gateway_act import KafkaClients
from streaming.demo.ledger import Check, Ledger
from streaming.demo.processes import Child
from streaming.errors import CannotRun
from streaming.jars import resolve_jars

TOPIC, GROUP, PARTITIONS = "orders", "billing", 6
RECORDS_PER_SECOND = 200
SESSION_TIMEOUT_MS = 30_000
KILLED_SESSION_TIMEOUT_MS = 6_000
"""What is left of it has to be waited for."""
KILLED_MEMBER = "consumer-2"
STATIC_MEMBER, STATIC_INSTANCE = "consumer-3", "till-3"
WAIT_SECONDS = 60.0
COORDINATOR_START_SECONDS = 120.0


class StoryFailed(Exception):
    """Something that the story waits for did not happen; the message says what."""


class Stage:
    """Where the story is played: the console, the processes, and the ledger of what the consumers say."""

    def __init__(self, console: Console, folder: Path, stack: ExitStack) -> None:
        self.console = console
        self.folder = folder
        self.stack = stack
        self.ledger = Ledger()
        self.started = time.monotonic()
        self.consumers: dict[str, Child] = {}
        self.broker = EmbeddedBroker(data_dir=folder / "kafka")
        self.coordinator_ready = threading.Event()

    def say(self, text: str) -> None:
        """A line with the time since the beginning."""
        self.console.print(f"[dim]{time.monotonic() - self.started:5.1f}s[/dim]  {text}", highlight=False)

    def act(self, title: str) -> None:
        """The headline of an act."""
        self.console.print(f"\n[bold]{title}[/bold]")

    @contextmanager
    def waiting_for(self, what: str) -> Iterator[None]:
        """Show that something is waited for, and how long it took."""
        began = time.monotonic()
        with self.console.status(f"waiting for {what} ..."):
            yield
        self.say(f"[green]{what}[/green] (took {time.monotonic() - began:.1f} s)")

    def await_reports(self, what: str, condition: Callable[[], bool], ledger: Ledger | None = None) -> None:
        """Wait until consumers' reports amount to something: those in ``ledger``, by default the stage's own."""
        with self.waiting_for(what):
            if not (ledger or self.ledger).wait_until(condition, WAIT_SECONDS):
                raise StoryFailed(f"waited {WAIT_SECONDS:.0f} s in vain for: {what}")

    # ---- processes -----------------------------------------------------------------------------------------

    def coordinator(self) -> Child:
        """The coordinator's process; its checkpoint stays the same through every start."""
        command = [
            sys.executable,
            *("-m", "streaming.cli", "run", "--json"),
            *("--bootstrap-servers", self.broker.bootstrap_servers),
            *("--checkpoint", str(self.folder / "checkpoint")),
        ]
        return Child("coordinator", command, self.folder / "coordinator.log", self._on_coordinator_line)

    def _on_coordinator_line(self, line: str) -> None:
        if line.startswith("{") and json.loads(line).get("ready"):
            self.coordinator_ready.set()

    def await_coordinator(self, child: Child) -> None:
        """Wait until the coordinator says that it is ready."""
        deadline = time.monotonic() + COORDINATOR_START_SECONDS
        with self.waiting_for("coordinator is ready"):
            while not self.coordinator_ready.wait(0.2):
                if not child.is_running or time.monotonic() > deadline:
                    tail = "\n".join((self.folder / "coordinator.log").read_text().splitlines()[-20:])
                    raise StoryFailed(f"the coordinator did not start; the end of its log:\n{tail}")

    def start_consumer(self, name: str) -> None:
        """Start a consumer's process, for the first time or once more."""
        if name not in self.consumers:
            self.consumers[name] = self._consumer(name)
            self.stack.enter_context(self.consumers[name])
        else:
            self.consumers[name].start()
        self.say(f"{name} starts")

    def _consumer(self, name: str) -> Child:
        command = [
            sys.executable,
            *("-m", "streaming.demo.consumer_process", "--bootstrap-servers", self.broker.bootstrap_servers),
            *("--group", GROUP, "--topic", TOPIC, "--name", name),
            *("--session-timeout-ms", str(KILLED_SESSION_TIMEOUT_MS if name == KILLED_MEMBER else SESSION_TIMEOUT_MS)),
            *(("--instance-id", STATIC_INSTANCE) if name == STATIC_MEMBER else ()),
        ]
        return Child(name, command, self.folder / f"{name}.log", lambda line: self._on_consumer_line(name, line))

    def _on_consumer_line(self, name: str, line: str) -> None:
        if not line.startswith("{"):
            return
        report = msgspec.json.decode(line, type=ConsumerReport)
        self.ledger.take(name, report)
        partitions = " ".join(map(str, report.partitions)) or "nothing"
        if report.event == "owns":
            self.say(f"{name} owns [cyan]{partitions}[/cyan] in generation {report.generation}")
        elif report.event in ("revoked", "lost"):
            self.say(f"{name} {'gives up' if report.event == 'revoked' else 'loses'} [yellow]{partitions}[/yellow]")


class Records(threading.Thread):
    """Produces records to all partitions until it is told to stop."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(name="records", daemon=True)
        self._producer = Producer({"bootstrap.servers": bootstrap_servers, "linger.ms": 5})
        self._stop_producing = threading.Event()

    def run(self) -> None:
        """Produce at a steady pace."""
        number = 0
        while not self._stop_producing.wait(0.05):
            for _ in range(RECORDS_PER_SECOND // 20):
                self._producer.produce(TOPIC, value=f"order {number}".encode(), partition=number % PARTITIONS)
                number += 1
            self._producer.poll(0)

    def finish(self) -> None:
        """Stop, once every record is in the topic."""
        self._stop_producing.set()
        if self.is_alive():
            self.join(WAIT_SECONDS)
        if self._producer.flush(WAIT_SECONDS):
            raise StoryFailed("records could not be produced")


# ---- the acts --------------------------------------------------------------------------------------------------


def play(console: Console, as_json: bool = False) -> bool:
    """Play the whole story; whether every check passed. Nothing is left running, and no file is left behind."""
    with tempfile.TemporaryDirectory(prefix="group-coordinator-demo-") as folder, ExitStack() as stack:
        stage = Stage(console, Path(folder), stack)
        checks = list(_acts(stage))
        _print_summary(console, checks, time.monotonic() - stage.started)
        passed = all(check.passed for check in checks)
        if as_json:
            result = {"passed": passed, "checks": [vars(check) for check in checks]}
            sys.stdout.write(json.dumps(result, indent=2) + "\n")
        return passed


def _acts(stage: Stage) -> Iterator[Check]:
    coordinator, records = _set_the_stage(stage)
    _three_consumers_join(stage)
    _one_is_killed(stage)
    yield _static_member_returns(stage)
    clients = KafkaClients(stage.broker.bootstrap_servers, TOPIC, stage.folder, stage.say)
    yield _kafka_clients_join(stage, clients)
    before = clients.rebalances
    yield _coordinator_is_killed(stage, coordinator)
    yield clients.not_rebalanced_since(before)
    yield from _the_end(stage, records, clients)
    exit_code = coordinator.terminate()
    yield Check("the coordinator stopped in order", exit_code == 0, f"exit code {exit_code}")


def _set_the_stage(stage: Stage) -> tuple[Child, Records]:
    stage.act("A broker, a coordinator, a topic with six partitions")
    resolve_jars(stage.say)
    with stage.waiting_for("broker is ready"):
        stage.stack.enter_context(stage.broker)
    coordinator = stage.stack.enter_context(stage.coordinator())
    admin = AdminClient({"bootstrap.servers": stage.broker.bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(WAIT_SECONDS)
    records = Records(stage.broker.bootstrap_servers)
    stage.stack.callback(records.finish)
    records.start()
    stage.await_coordinator(coordinator)
    return coordinator, records


def _three_consumers_join(stage: Stage) -> None:
    stage.act("Three consumers join, one after the other")
    names: list[str] = []
    for name in ("consumer-1", KILLED_MEMBER, STATIC_MEMBER):
        names.append(name)
        stage.start_consumer(name)
        stage.await_reports(
            f"{len(names)} consumer(s) share the partitions",
            lambda: stage.ledger.shared_by(*names, partitions=PARTITIONS),
        )


def _one_is_killed(stage: Stage) -> None:
    stage.act(f"{KILLED_MEMBER} is killed with -9; after its session timeout the others take over")
    ledger, before = stage.ledger, stage.ledger.delivered
    stage.await_reports("everybody is at work", lambda: ledger.delivered > before + RECORDS_PER_SECOND)
    stage.consumers[KILLED_MEMBER].kill()
    ledger.forget(KILLED_MEMBER)
    stage.say(f"[red]{KILLED_MEMBER} is dead[/red]")
    stage.await_reports(
        "the others share its partitions",
        lambda: ledger.shared_by("consumer-1", STATIC_MEMBER, partitions=PARTITIONS),
    )


def _static_member_returns(stage: Stage) -> Check:
    stage.act(f"{STATIC_MEMBER} is a static member: it closes and comes back without a rebalance")
    ledger = stage.ledger
    generation, owned = ledger.generations[STATIC_MEMBER], set(ledger.owned[STATIC_MEMBER])
    stage.consumers[STATIC_MEMBER].terminate()
    stage.say(f"{STATIC_MEMBER} is closed")
    stage.start_consumer(STATIC_MEMBER)
    stage.await_reports(f"{STATIC_MEMBER} is back", lambda: bool(ledger.owned.get(STATIC_MEMBER)))
    now = (ledger.generations[STATIC_MEMBER], ledger.owned[STATIC_MEMBER])
    detail = f"generation {generation} before, {now[0]} after; partitions {sorted(owned)} and {sorted(now[1])}"
    return Check("the static member came back without a rebalance", now == (generation, owned), detail)


def _kafka_clients_join(stage: Stage, clients: KafkaClients) -> Check:
    stage.act("Kafka clients as they are join through the gateway: librdkafka, kafka-python")
    try:
        stage.stack.enter_context(clients.running())
    except CannotRun as failure:
        raise StoryFailed(str(failure)) from failure
    stage.await_reports("both share the partitions", lambda: clients.share(PARTITIONS), clients.ledger)
    return clients.described(PARTITIONS)


def _coordinator_is_killed(stage: Stage, coordinator: Child) -> Check:
    stage.act("The coordinator is killed with -9 while consumers run, and restarted from its checkpoint")
    before = dict(stage.ledger.generations)
    stage.coordinator_ready.clear()
    coordinator.kill()
    stage.say("[red]the coordinator is dead[/red]; consumers go on reading")
    coordinator.start()
    stage.await_coordinator(coordinator)
    with stage.waiting_for("group answers again"), _client(stage) as client:
        group = client.describe_groups([GROUP]).groups[0]
    after = dict(stage.ledger.generations)
    stable = group.group_state == "Stable" and len(group.members) == len(before)
    detail = f"{group.group_state}, {len(group.members)} members, generations {before} before, {after} after"
    return Check("members went on in the same generation after the kill", stable and before == after, detail)


def _the_end(stage: Stage, records: Records, clients: KafkaClients) -> Iterator[Check]:
    stage.act("The end: everything is consumed and committed")
    records.finish()
    ends = _end_offsets(stage)
    for ledger in (stage.ledger, clients.ledger):
        stage.await_reports("every record is consumed", partial(ledger.has_consumed, ends), ledger)
    for name in list(stage.ledger.owned):
        stage.consumers[name].terminate()
        stage.say(f"{name} is closed")
    with _client(stage) as client:
        topics = client.offset_fetch([GroupToFetch(GROUP)]).groups[0].topics
    committed = {p.partition_index: p.committed_offset for topic in topics for p in topic.partitions}
    yield stage.ledger.every_record_consumed(ends)
    yield stage.ledger.one_owner_per_generation()
    yield stage.ledger.committed_everything(committed, ends)
    yield from clients.end(ends)


def _client(stage: Stage) -> CoordinatorClient:
    return CoordinatorClient(stage.broker.bootstrap_servers, client_id="demo")


def _end_offsets(stage: Stage) -> dict[int, int]:
    reader = PlainConsumer({"bootstrap.servers": stage.broker.bootstrap_servers, "group.id": "unused"})
    try:
        return {p: reader.get_watermark_offsets(TopicPartition(TOPIC, p), WAIT_SECONDS)[1] for p in range(PARTITIONS)}
    finally:
        reader.close()


def _print_summary(console: Console, checks: list[Check], seconds: float) -> None:
    table = Table("", "CHECK", "DETAIL", title=f"\nThe demo took {seconds:.0f} s")
    for check in checks:
        table.add_row("[green]ok[/green]" if check.passed else "[red]FAILED[/red]", check.name, check.detail)
    console.print(table)
