"""The steps of the demo. Everything is real: the broker, the coordinator's query, the consumers and every kill -9."""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer as PlainConsumer
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console
from rich.table import Table

from coordinator_logic.messages import GroupToFetch
from streaming.client import CoordinatorClient
from streaming.client.librdkafka import LibrdkafkaConfig
from streaming.contract.errors import CannotRun
from streaming.contract.topics import TopicNames
from streaming.demo.consumer_reports import Check
from streaming.demo.environment import (
    GROUP,
    KILLED_MEMBER,
    KILLED_SESSION_TIMEOUT_MS,
    PARTITIONS,
    RECORDS_PER_SECOND,
    STATIC_MEMBER,
    TOPIC,
    WAIT_SECONDS,
    DemoFailed,
    Environment,
    RecordProducer,
)
from streaming.demo.gateway_clients import GatewayClients
from streaming.embedded.jars import resolve_jars
from streaming.embedded.job_process import JobProcess
from streaming.explain.page.of_group import page_of_group

__all__ = ["DemoFailed", "run_demo"]


def run_demo(console: Console, as_json: bool = False, page: Path | None = None) -> bool:
    """Run the whole demo, and leave neither processes nor other files behind; returns whether every check passed.

    as_json: also write the checks to standard output as JSON. page: the file for the story of the demo's group, as a
    page. Raises DemoFailed when a step does not finish.
    """
    with tempfile.TemporaryDirectory(prefix="group-coordinator-demo-") as folder, ExitStack() as stack:
        demo = Environment(console, Path(folder), stack)
        checks = list(_steps(demo, page))
        _print_summary(console, checks, time.monotonic() - demo.started)
        if page is not None:
            console.print(f"\nThe story of group {GROUP}, for a browser: {page.absolute().as_uri()}", soft_wrap=True)
        passed = all(check.passed for check in checks)
        if as_json:
            result = {"passed": passed, "checks": [vars(check) for check in checks]}
            sys.stdout.write(json.dumps(result, indent=2) + "\n")
        return passed


def _steps(demo: Environment, page: Path | None) -> Iterator[Check]:
    active, producer = _start_services(demo)
    _join_three_consumers(demo)
    # Its start takes seconds, which the next steps need anyway.
    standby = demo.stack.enter_context(demo.new_job("standby", "--standby"))
    _kill_consumer(demo)
    yield _restart_static_member(demo)
    clients = GatewayClients(demo.broker.bootstrap_servers, TOPIC, demo.folder, demo.log)
    yield _join_kafka_clients(demo, clients)
    assignments = clients.assignments
    yield _kill_active_job(demo, active, standby)
    yield clients.check_no_rebalance(assignments)
    yield from _finish(demo, producer, clients)
    if page is not None:
        page.parent.mkdir(parents=True, exist_ok=True)
        config: LibrdkafkaConfig = {"bootstrap.servers": demo.broker.bootstrap_servers}
        page.write_text(page_of_group(config, TopicNames().journal, GROUP, WAIT_SECONDS), "utf-8")
    exit_code = standby.process.terminate()
    yield Check("the coordinator shut down cleanly", exit_code == 0, f"exit code {exit_code}")


def _start_services(demo: Environment) -> tuple[JobProcess, RecordProducer]:
    demo.heading(
        "1. A Kafka broker, the coordinator, and a topic with six partitions",
        f"A producer appends {RECORDS_PER_SECOND} records per second to topic {TOPIC} until the last step.",
    )
    resolve_jars(demo.log)
    with demo.waiting_for("the broker is ready"):
        demo.stack.enter_context(demo.broker)
    active = demo.stack.enter_context(demo.new_job("coordinator"))
    admin = AdminClient({"bootstrap.servers": demo.broker.bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(WAIT_SECONDS)
    producer = RecordProducer(demo.broker.bootstrap_servers)
    demo.stack.callback(producer.finish)
    producer.start()
    demo.await_job("the coordinator is ready", active.await_ready)
    return active, producer


def _join_three_consumers(demo: Environment) -> None:
    demo.heading(
        "2. Three consumers join, one after the other",
        f"Every join makes group {GROUP} rebalance: a new generation begins, and all members share the partitions.",
    )
    names: list[str] = []
    for name in ("consumer-1", KILLED_MEMBER, STATIC_MEMBER):
        names.append(name)
        demo.start_consumer(name)
        demo.await_reports(
            f"{name} owns all partitions" if len(names) == 1 else f"{len(names)} consumers share the partitions",
            lambda: demo.reports.shared_by(*names, partitions=PARTITIONS),
        )


def _kill_consumer(demo: Environment) -> None:
    demo.heading(
        f"3. {KILLED_MEMBER} is killed (kill -9)",
        f"It cannot leave the group. The coordinator removes it after its session timeout of "
        f"{KILLED_SESSION_TIMEOUT_MS // 1000} s, and the other two take over its partitions.",
    )
    reports, before = demo.reports, demo.reports.delivered
    demo.await_reports("all consumers are consuming", lambda: reports.delivered > before + RECORDS_PER_SECOND)
    demo.consumers[KILLED_MEMBER].kill()
    reports.forget(KILLED_MEMBER)
    demo.log(f"[red]{KILLED_MEMBER} is dead[/red]")
    demo.await_reports(
        "the other two share all partitions",
        lambda: reports.shared_by("consumer-1", STATIC_MEMBER, partitions=PARTITIONS),
    )


def _restart_static_member(demo: Environment) -> Check:
    demo.heading(
        f"4. {STATIC_MEMBER}, a static member, restarts",
        "It has a group.instance.id (KIP-345), so the group keeps its partitions for it and does not rebalance.",
    )
    reports = demo.reports
    generation, owned = reports.generations[STATIC_MEMBER], set(reports.owned[STATIC_MEMBER])
    demo.consumers[STATIC_MEMBER].terminate()
    demo.log(f"{STATIC_MEMBER} has closed")
    demo.start_consumer(STATIC_MEMBER)
    demo.await_reports(f"{STATIC_MEMBER} is back", lambda: bool(reports.owned.get(STATIC_MEMBER)))
    new_generation, new_owned = reports.generations[STATIC_MEMBER], reports.owned[STATIC_MEMBER]
    detail = f"generation {generation} before, {new_generation} after; partitions {sorted(owned)}, {sorted(new_owned)}"
    unchanged = (new_generation, new_owned) == (generation, owned)
    return Check("the static member returned without a rebalance", unchanged, detail)


def _join_kafka_clients(demo: Environment, clients: GatewayClients) -> Check:
    demo.heading(
        "5. Unmodified Kafka clients join through the gateway",
        "The gateway speaks Kafka's wire protocol: the clients change nothing but their bootstrap address.",
    )
    try:
        demo.stack.enter_context(clients.running())
    except CannotRun as failure:
        raise DemoFailed(str(failure)) from failure
    demo.await_reports("the Kafka clients share the partitions", lambda: clients.share(PARTITIONS), clients.reports)
    return clients.check_description(PARTITIONS)


def _kill_active_job(demo: Environment, active: JobProcess, standby: JobProcess) -> Check:
    demo.heading(
        "6. The active job is killed (kill -9), and a standby takes its place",
        "A second job has started with --standby. The checkpoint holds every group: members keep consuming and retry "
        "their requests, and no group rebalances.",
    )
    demo.await_job("the second job stands by", standby.await_standby)
    before = dict(demo.reports.generations)
    with _client(demo) as client:
        active.process.send_kill()
        killed_at = time.monotonic()
        demo.log("[red]the active job is dead[/red]; the consumers keep consuming")
        with demo.waiting_for("the standby describes the group"):
            group = client.describe_groups([GROUP]).groups[0]
        seconds = time.monotonic() - killed_at
    after = dict(demo.reports.generations)
    stable = group.group_state == "Stable" and len(group.members) == len(before)
    detail = (
        f"first answer after {seconds:.1f} s; {group.group_state}, {len(group.members)} members, "
        f"generations {before} before, {after} after"
    )
    return Check("the take-over caused no rebalance", stable and before == after, detail)


def _finish(demo: Environment, producer: RecordProducer, clients: GatewayClients) -> Iterator[Check]:
    demo.heading(
        "7. The producer stops, and all consumers close",
        "Every record must have been consumed and committed, in spite of the kills.",
    )
    producer.finish()
    ends = _end_offsets(demo)
    for group, reports in (("the consumers", demo.reports), ("the Kafka clients", clients.reports)):
        demo.await_reports(f"{group} have consumed every record", partial(reports.has_consumed, ends), reports)
    for name in list(demo.reports.owned):
        demo.consumers[name].terminate()
        demo.log(f"{name} has closed")
    with _client(demo) as client:
        topics = client.offset_fetch([GroupToFetch(GROUP)]).groups[0].topics
    committed = {p.partition_index: p.committed_offset for topic in topics for p in topic.partitions}
    yield demo.reports.every_record_consumed(ends)
    yield demo.reports.one_owner_per_generation()
    yield demo.reports.committed_everything(committed, ends)
    yield from clients.close(ends)


def _client(demo: Environment) -> CoordinatorClient:
    return CoordinatorClient(demo.broker.bootstrap_servers, client_id="demo")


def _end_offsets(demo: Environment) -> dict[int, int]:
    consumer = PlainConsumer({"bootstrap.servers": demo.broker.bootstrap_servers, "group.id": "unused"})
    try:
        return {
            partition: consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), WAIT_SECONDS)[1]
            for partition in range(PARTITIONS)
        }
    finally:
        consumer.close()


def _print_summary(console: Console, checks: list[Check], seconds: float) -> None:
    table = Table("", "CHECK", "DETAIL", title=f"\nThe demo took {seconds:.0f} s")
    for check in checks:
        table.add_row("[green]ok[/green]" if check.passed else "[red]FAILED[/red]", check.name, check.detail)
    console.print(table)
