"""Runs a soak: a broker, the job, a gateway, the members, the hostile clients, and the restarts."""

import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from streaming.client import CoordinatorClient
from streaming.embedded.broker import EmbeddedBroker
from tests.bench.environment import commit
from tests.soak.figures import Sample, Soak
from tests.soak.hostile import HostileClients
from tests.soak.members import TOPIC, Findings, PassingMember, StayingConsumer, StayingGroup
from tests.soak.sampler import SETTLING_SECONDS, Sampler
from tests.soak.slopes import slopes
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.topics import create_topic
from tests.support.waiting import wait_until

SETTLE_LIMIT_SECONDS = 240.0
END_LIMIT_SECONDS = 120.0
MEMBERS_A_GROUP = 4
PARTITIONS = 4

JOB = {
    "driver-memory": "1g",
    # A heap that is in memory from the start leaves only the rest of the JVM to grow; the live objects are a figure of
    # their own.
    "spark.driver.defaultJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xms1g -XX:+AlwaysPreTouch",
}

Work = Callable[[threading.Event], None]
Report = Callable[[str], None]


class Plan(NamedTuple):
    """How a soak runs. Half of the members stay, in groups over topics and behind the gateway; the others pass.

    The processes are restarted in the first ``restarting_minutes``. Then they live until the end.
    """

    minutes: float
    members: int
    restarting_minutes: float
    restart_every_seconds: float
    sample_every_seconds: float = 10.0
    settling_seconds: float = SETTLING_SECONDS
    seed: int = 1


def soak(plan: Plan, report: Report) -> Soak:
    """Run the soak. Everything that it starts ends with it."""
    findings = Findings()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="group-coordinator-soak-")))
        report("starting a broker, the job and a gateway")
        broker = stack.enter_context(EmbeddedBroker(data_dir=folder / "kafka"))
        coordinator = CoordinatorProcess(broker.bootstrap_servers, folder, JOB)
        stack.callback(coordinator.kill)
        coordinator.start()
        gateway = GatewayProcess(broker.bootstrap_servers, coordinator.topics.prefix)
        stack.callback(gateway.kill)
        gateway.start()
        create_topic(broker.bootstrap_servers, TOPIC, PARTITIONS)
        client = stack.enter_context(
            CoordinatorClient(broker.bootstrap_servers, topic_prefix=coordinator.topics.prefix)
        )
        groups, consumers, passing = _members(plan, client, gateway, findings)
        with _running([work for group in groups for work in group.works()], findings) as start:
            start([consumer.run for consumer in consumers])
            report(f"waiting until {plan.members // 2} members are settled")
            _settle(groups, consumers, plan)
            hostile = HostileClients(gateway.port, broker.bootstrap_servers, coordinator.topics, findings, plan.seed)
            start([member.run for member in passing])
            start([hostile.through_the_gateway, hostile.over_the_topics])
            samples = _watch(plan, coordinator, gateway, findings, report)
            for group in groups:
                group.release()
            for consumer in consumers:
                consumer.release()
    return Soak(
        date=datetime.now().astimezone().isoformat(timespec="seconds"),
        commit=commit(),
        minutes=plan.minutes,
        members=plan.members,
        counts=dict(sorted(findings.counts.items())),
        wrong=findings.wrong,
        slopes=slopes(samples, plan.minutes * 60),
        samples=samples,
    )


def _members(
    plan: Plan, client: CoordinatorClient, gateway: GatewayProcess, findings: Findings
) -> tuple[list[StayingGroup], list[StayingConsumer], list[PassingMember]]:
    quarter = max(1, plan.members // 4 // MEMBERS_A_GROUP)
    groups = [StayingGroup(client, f"stays-{number}", MEMBERS_A_GROUP, findings) for number in range(quarter)]
    consumers = [
        StayingConsumer(gateway.bootstrap_servers, f"behind-the-gateway-{number % quarter}", findings)
        for number in range(quarter * MEMBERS_A_GROUP)
    ]
    names = [f"passing-{number}" for number in range(quarter)]
    rest = plan.members - len(consumers) - quarter * MEMBERS_A_GROUP
    return groups, consumers, [PassingMember(client, names, findings, plan.seed + number) for number in range(rest)]


def _settle(groups: list[StayingGroup], consumers: list[StayingConsumer], plan: Plan) -> None:
    wait_until(lambda: all(group.is_settled for group in groups), "settled groups", SETTLE_LIMIT_SECONDS)
    for consumer in consumers:
        assert consumer.has_partitions.wait(SETTLE_LIMIT_SECONDS), "a consumer behind the gateway got no partition"
    for group in groups:
        group.settle()
    for consumer in consumers:
        consumer.settle()


@contextmanager
def _running(works: list[Work], findings: Findings) -> Iterator[Callable[[list[Work]], None]]:
    """Run work on threads until the block ends; yields a function that starts more."""
    ended = threading.Event()
    threads: list[threading.Thread] = []

    def run(work: Work) -> None:
        try:
            work(ended)
        except BaseException as failure:
            findings.is_wrong(f"{work}: {failure!r}")

    def start(more: list[Work]) -> None:
        started = [threading.Thread(target=run, args=(work,), daemon=True) for work in more]
        threads.extend(started)
        for thread in started:
            thread.start()

    start(works)
    try:
        yield start
    finally:
        ended.set()
        deadline = time.monotonic() + END_LIMIT_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))


def _watch(
    plan: Plan, coordinator: CoordinatorProcess, gateway: GatewayProcess, findings: Findings, report: Report
) -> list[Sample]:
    """Sample and restart until the time is over."""
    sampler = Sampler(coordinator, gateway, findings, plan.settling_seconds)
    restarts = _restarts(coordinator, gateway, sampler, random.Random(plan.seed))
    began = time.monotonic()
    until, last_restart = began + plan.minutes * 60, began + plan.restarting_minutes * 60
    next_restart = began + plan.restart_every_seconds
    samples: list[Sample] = []
    while time.monotonic() < until:
        time.sleep(plan.sample_every_seconds)
        sample = sampler.sample()
        if sample is not None:
            samples.append(sample)
        if next_restart < time.monotonic() < last_restart:
            what = next(restarts)
            findings.count(what)
            report(f"{what}; {len(findings.wrong)} wrong so far")
            next_restart = time.monotonic() + plan.restart_every_seconds
    return samples


def _restarts(
    coordinator: CoordinatorProcess, gateway: GatewayProcess, sampler: Sampler, chance: random.Random
) -> Iterator[str]:
    """Restart one of the two processes with each call, gracefully or by ``kill -9``; yields what was done."""
    while True:
        process, name = chance.choice(((coordinator, "coordinator"), (gateway, "gateway")))
        ending = chance.choice(("kill -9", "SIGTERM"))
        if ending == "SIGTERM":
            # A process that does not end in time is killed below.
            with suppress(AssertionError):
                process.stop()
        process.kill()
        process.start()
        sampler.restarted(name)
        yield f"{ending} and start of the {name}"
