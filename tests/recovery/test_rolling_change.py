"""A rolling change of job and gateway, from an earlier commit to this one, in both orders, under live consumers.

Of two gateways in front of the same job, one is changed before the job and the other after it. So today's gateway
answers with an earlier job, and an earlier gateway with today's job.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from streaming.embedded.broker import EmbeddedBroker
from tests.clients.live_consumer import LiveConsumer
from tests.support.coordinator_process import QUICK_OF_0_1, CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.kafka_io import produce
from tests.support.processes import Process
from tests.support.source_tree import BEFORE_TYPES_OF_GROUPS, CommitNotThere, code_of, imported_from, unpack_commit
from tests.support.topics import create_topic, unique
from tests.support.waiting import wait_until

PARTITIONS = {0, 1}
PROTOCOLS: Mapping[str, Mapping[str, Any]] = {
    "classic": {"heartbeat.interval.ms": 500, "session.timeout.ms": 60_000},
    "consumer": {"group.protocol": "consumer"},
}
OPTIONS = {"group.consumer.heartbeat.interval.ms": 1_000, "group.consumer.session.timeout.ms": 60_000}


class LiveGroup:
    """A group at one gateway, with a member that stays through all changes."""

    def __init__(self, gateway: GatewayProcess, protocol: str, topic: str, stack: ExitStack) -> None:
        self._topic = topic
        self._settings = {
            "bootstrap.servers": gateway.bootstrap_servers,
            "group.id": unique(protocol),
            "log_level": 0,
            **PROTOCOLS[protocol],
        }
        self._commits = 0
        self.member = self.join("stays", stack)

    def join(self, client_id: str, stack: ExitStack) -> LiveConsumer:
        """A further member, until the end of the stack."""
        settings = self._settings | {"client.id": client_id}
        return stack.enter_context(LiveConsumer(self._topic, settings))

    def await_owners(self, *members: LiveConsumer) -> None:
        """Wait until these members share the partitions evenly."""
        sizes = [len(PARTITIONS) // len(members)] * len(members)

        def is_shared() -> bool:
            owned = [member.partitions for member in members]
            return set().union(*owned) == PARTITIONS and [len(each) for each in owned] == sizes

        wait_until(is_shared, f"{sizes} partitions", describe=lambda: str([member.partitions for member in members]))

    def commit(self, *members: LiveConsumer) -> None:
        """Let each member commit for its partitions, and fetch what was committed."""
        self._commits += 1
        for member in members:
            for partition in member.partitions:
                # The gateway may have closed the connection meanwhile, and a rebalance may be about to end.
                wait_until(lambda: member.commit(partition, self._commits) is None, "a commit", pause=0.1)  # noqa: B023
                assert member.committed(partition) == self._commits


def check(groups: Iterable[LiveGroup]) -> None:
    """Each group's member is undisturbed; another one joins and leaves; both commit, fetch offsets and consume."""
    groups = list(groups)
    for group in groups:
        assignments = group.member.assignments
        group.commit(group.member)
        assert group.member.assignments == assignments
    with ExitStack() as stack:
        others = [group.join("comes and goes", stack) for group in groups]
        for group, other in zip(groups, others, strict=True):
            group.await_owners(group.member, other)
            group.commit(group.member, other)
    for group in groups:
        group.await_owners(group.member)
        group.commit(group.member)


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The variables of a process that runs the code of the earlier commit."""
    try:
        tree = unpack_commit(BEFORE_TYPES_OF_GROUPS, tmp_path_factory.mktemp("earlier") / BEFORE_TYPES_OF_GROUPS)
    except CommitNotThere as reason:
        pytest.skip(f"no earlier job and gateway: {reason}")
    assert imported_from(tree).is_relative_to(tree)
    return code_of(tree)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def change(process: Process) -> None:
    """Stop a process of the earlier commit, and start it with today's code."""
    process.stop()
    process.environment.clear()
    process.start()


@pytest.mark.long
def test_clients_are_answered_while_job_and_gateway_are_changed_in_either_order(
    broker: EmbeddedBroker, tmp_path: Path, earlier: Mapping[str, str], stack: ExitStack
) -> None:
    job = CoordinatorProcess(broker.bootstrap_servers, tmp_path, OPTIONS, defaults=QUICK_OF_0_1, environment=earlier)
    changed_first, changed_last = (
        GatewayProcess(broker.bootstrap_servers, job.topics.prefix, name=name, environment=earlier)
        for name in ("gateway that is changed before the job", "gateway that is changed after the job")
    )
    for process in (job, changed_first, changed_last):
        stack.callback(process.kill)
        process.start()
    topic = unique("topic")
    create_topic(broker.bootstrap_servers, topic, len(PARTITIONS))
    at_first, at_last = (
        [LiveGroup(gateway, protocol, topic, stack) for protocol in PROTOCOLS]
        for gateway in (changed_first, changed_last)
    )
    for group in (*at_first, *at_last):
        group.await_owners(group.member)

    change(changed_first)
    check(at_first)
    change(job)
    check([*at_first, *at_last])
    change(changed_last)
    check(at_last)

    produce(changed_last.bootstrap_servers, topic, {partition: [b"record"] for partition in PARTITIONS})
    for group in (*at_first, *at_last):
        consumed = {(partition, 0) for partition in PARTITIONS}
        wait_until(lambda: group.member.consumed == consumed, "the records")  # noqa: B023
