"""Members of a group that is not a consumer group, against a real coordinator."""

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from coordinator_logic.messages import DescribedGroup, JoinedMember
from streaming.client import (
    CoordinatorClient,
    FencedInstanceId,
    Generation,
    GroupMember,
    MemberCallbacks,
    MemberConfig,
)
from tests.support.background_loop import BackgroundLoop
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.topics import unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

SESSION_TIMEOUT_MS = 60_000
"""Long, so that no member is removed because the machine was slow."""

KILLED_SESSION_TIMEOUT_MS = 6_000
"""Short, because the test waits for its end."""


class Worker(MemberCallbacks):
    """Assigns the numbers 0 to 11 to the members, as Connect assigns connectors to its workers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.work: list[int] | None = None
        self.generation = Generation()
        self.calls: list[str] = []

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        return [("sessioned", self.name.encode()), ("compatible", b"")]

    def assign(self, protocol_name: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        assert protocol_name == "sessioned"
        in_order = sorted(members, key=lambda member: member.metadata)
        return {member.member_id: bytes(range(index, 12, len(members))) for index, member in enumerate(in_order)}

    def on_assigned(self, generation: Generation, assignment: bytes) -> None:
        self.calls.append("assigned")
        self.work, self.generation = list(assignment), generation

    def on_revoked(self, *, leaving: bool) -> None:
        self.calls.append("revoked")
        self.work = None

    def on_lost(self) -> None:
        self.calls.append("lost")
        self.work = None


class RunningWorker:
    """A worker whose member is polled on a background thread."""

    def __init__(self, client: CoordinatorClient, group_id: str, name: str, instance_id: str | None = None) -> None:
        self.worker = Worker(name)
        self.member = GroupMember(
            client,
            self.worker,
            MemberConfig(
                group_id=group_id,
                protocol_type="connect",
                group_instance_id=instance_id,
                session_timeout_ms=SESSION_TIMEOUT_MS,
                rebalance_timeout_ms=30_000,
                heartbeat_interval_ms=500,
            ),
        )
        self.loop = BackgroundLoop(lambda: self.member.poll(0.1))

    def close(self) -> None:
        self.loop.end()
        self.member.close()


StartWorker = Callable[..., RunningWorker]


@pytest.fixture
def group_id() -> str:
    return unique("workers")


@pytest.fixture
def client(coordinator: CoordinatorProcess) -> Iterator[CoordinatorClient]:
    with CoordinatorClient(
        coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix, client_id="worker"
    ) as client:
        yield client


@pytest.fixture
def start(client: CoordinatorClient, group_id: str) -> Iterator[StartWorker]:
    started: list[RunningWorker] = []

    def start(name: str, instance_id: str | None = None) -> RunningWorker:
        worker = RunningWorker(client, group_id, name, instance_id)
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.close()


def share_the_work(*workers: RunningWorker) -> bool:
    """Whether these workers, in one generation, have all of the work and share none of it."""
    work = [running.worker.work for running in workers]
    generations = {running.worker.generation.generation_id for running in workers}
    return (
        len(generations) == 1 and None not in work and sorted(n for part in work for n in part or []) == list(range(12))
    )


def described(client: CoordinatorClient, group_id: str) -> DescribedGroup:
    return client.describe_groups([group_id]).groups[0]


def test_a_single_worker_has_all_of_the_work(client: CoordinatorClient, group_id: str, start: StartWorker) -> None:
    worker = start("a")
    wait_until(lambda: share_the_work(worker), "the worker has the work")
    group = described(client, group_id)
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "connect", "sessioned")
    assert [member.member_assignment for member in group.members] == [bytes(range(12))]
    worker.close()
    assert described(client, group_id).group_state == "Empty"
    assert worker.worker.calls == ["assigned", "revoked"]


def test_three_workers_share_the_work_and_take_over_from_one_that_leaves(start: StartWorker) -> None:
    first = start("a")
    wait_until(lambda: share_the_work(first), "the first has the work")
    second, third = start("b"), start("c")
    wait_until(lambda: share_the_work(first, second, third), "all three share the work")
    assert first.worker.work == [0, 3, 6, 9]
    second.close()
    wait_until(lambda: share_the_work(first, third), "the other two share the work")


MEMBER_PROCESS = """
    import sys, time
    from streaming.client import CoordinatorClient, GroupMember, MemberConfig
    from tests.client.membership.test_group_member import KILLED_SESSION_TIMEOUT_MS, Worker

    bootstrap_servers, prefix, group_id = sys.argv[1:]
    client = CoordinatorClient(bootstrap_servers, topic_prefix=prefix)
    worker = Worker("z")
    config = MemberConfig(group_id=group_id, protocol_type="connect", rebalance_timeout_ms=30_000,
                          session_timeout_ms=KILLED_SESSION_TIMEOUT_MS, heartbeat_interval_ms=500)
    member = GroupMember(client, worker, config)
    printed = None
    while True:
        member.poll(0.1)
        if worker.work != printed:
            printed = worker.work
            print(printed, flush=True)
"""


def test_another_worker_takes_over_the_work_of_a_killed_one(
    coordinator: CoordinatorProcess, group_id: str, start: StartWorker
) -> None:
    survivor = start("a")
    wait_until(lambda: share_the_work(survivor), "the survivor has the work")
    program = [sys.executable, "-c", textwrap.dedent(MEMBER_PROCESS)]
    with subprocess.Popen(
        [*program, coordinator.bootstrap_servers, coordinator.topics.prefix, group_id],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            wait_until(lambda: survivor.worker.work == [0, 2, 4, 6, 8, 10], "the other process has its half")
            assert process.stdout is not None
            while process.stdout.readline().strip() != "[1, 3, 5, 7, 9, 11]":
                assert process.poll() is None, "the other process ended"
        finally:
            process.kill()
    wait_until(lambda: share_the_work(survivor), "the survivor has everything again")


def test_a_static_worker_returns_without_a_rebalance(
    client: CoordinatorClient, group_id: str, start: StartWorker
) -> None:
    leader, follower = start("a", "i-a"), start("b", "i-b")
    wait_until(lambda: share_the_work(leader, follower), "both share the work")
    generation = leader.worker.generation.generation_id
    assert follower.worker.generation.generation_id == generation
    calls = list(leader.worker.calls)

    follower.close()
    back = start("b", "i-b")
    wait_until(lambda: share_the_work(leader, back), "the worker that returned has its work")
    assert back.worker.generation.generation_id == generation
    assert back.worker.generation.member_id != follower.worker.generation.member_id
    assert leader.worker.calls == calls
    assert described(client, group_id).group_state == "Stable"


def test_a_static_leader_returns_without_a_new_assignment(start: StartWorker) -> None:
    leader = start("a", "i-a")
    wait_until(lambda: share_the_work(leader), "the leader has the work")
    leader.close()
    back = start("a", "i-a")
    wait_until(lambda: share_the_work(back), "the leader has the work again")
    assert back.worker.generation.generation_id == leader.worker.generation.generation_id


def test_the_second_process_of_an_instance_fences_the_first(start: StartWorker) -> None:
    first = start("a", "i-a")
    wait_until(lambda: share_the_work(first), "the first has the work")
    second = start("a", "i-a")
    wait_until(lambda: share_the_work(second), "the second has the work")
    wait_until(lambda: first.loop.failure, "the first is fenced")
    assert isinstance(first.loop.failure, FencedInstanceId)
    assert first.worker.calls[-1] == "lost"
    with pytest.raises(FencedInstanceId):
        first.member.poll(LIMIT_SECONDS)
    assert share_the_work(second)


def test_a_requested_rejoin_rebalances_the_group(start: StartWorker) -> None:
    first, second = start("a"), start("b")
    wait_until(lambda: share_the_work(first, second), "both share the work")
    generation = first.worker.generation.generation_id
    second.worker.name = "B"  # sorts before "a"
    second.member.request_rejoin("its name has changed")
    wait_until(
        lambda: share_the_work(first, second) and first.worker.generation.generation_id > generation,
        "they share the work in a new generation",
    )
    assert second.worker.work == [0, 2, 4, 6, 8, 10]
