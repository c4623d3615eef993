"""The coordinator is killed ten times while members live: nobody is expelled, nobody rejoins, no commit is lost."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from coordinator_logic.messages import (
    GroupToFetch,
    JoinedMember,
    OffsetCommitRequest,
    PartitionToCommit,
    TopicToCommit,
)
from streaming.broker import EmbeddedBroker
from streaming.client import (
    CoordinatorClient,
    CoordinatorError,
    Generation,
    GroupMember,
    MemberCallbacks,
    MemberConfig,
    MemberEvent,
    MemberEventKind,
)
from tests.streaming.client_support import wait_until
from tests.streaming.coordinator_process import CoordinatorProcess
from tests.streaming.kafka_io import reading

GROUPS = [f"group-{number}" for number in range(5)]
MEMBERS_A_GROUP = 4
KILLS = 10
SESSION_TIMEOUT_MS = 10_000
"""About as long as a restart takes. Members live on because what they appended meanwhile is read with its time."""

LIMIT_SECONDS = 180.0


class Worker(MemberCallbacks):
    """A member that is content with any assignment."""

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        return [("any", b"")]

    def assign(self, protocol_name: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        return {member.member_id: member.member_id.encode() for member in members}

    def on_assigned(self, generation: Generation, assignment: bytes) -> None:
        pass


class Crowd:
    """Twenty members who live, and one of each group who commits, on threads of their own."""

    def __init__(self, client: CoordinatorClient) -> None:
        self._client = client
        self.events: list[MemberEvent] = []
        self.acknowledged = dict.fromkeys(GROUPS, 0)
        self.failures: list[BaseException] = []
        self.members = [
            GroupMember(
                client,
                Worker(),
                MemberConfig(
                    group_id=group_id,
                    protocol_type="test",
                    session_timeout_ms=SESSION_TIMEOUT_MS,
                    heartbeat_interval_ms=1_000,
                ),
                self.events.append,
            )
            for group_id in GROUPS
            for _ in range(MEMBERS_A_GROUP)
        ]
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._poll, args=(member,)) for member in self.members]

    @property
    def generations(self) -> list[Generation]:
        return [member.generation for member in self.members]

    def start_committing(self) -> None:
        committers = [threading.Thread(target=self._commit, args=(group_id,)) for group_id in GROUPS]
        self._threads += committers
        for thread in committers:
            thread.start()

    @contextmanager
    def living(self) -> Iterator[None]:
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(LIMIT_SECONDS)

    def _poll(self, member: GroupMember) -> None:
        try:
            while not self._stop.wait(0.1):
                member.poll(0.5)
        except BaseException as failure:
            self.failures.append(failure)

    def _commit(self, group_id: str) -> None:
        member = self.members[GROUPS.index(group_id) * MEMBERS_A_GROUP]
        offset = 0
        while not self._stop.is_set():
            offset += 1
            partitions = [PartitionToCommit(0, offset)]
            generation = member.generation
            request = OffsetCommitRequest(
                group_id,
                [TopicToCommit("payments", partitions)],
                generation.generation_id,
                generation.member_id,
            )
            try:
                response = self._client.offset_commit(request)
            except CoordinatorError:
                continue  # not acknowledged, so it may be lost
            if response.topics[0].partitions[0].error_code != 0:
                self.failures.append(AssertionError(f"{group_id}: {response}"))
                return
            self.acknowledged[group_id] = offset


@pytest.mark.timeout(900)
def test_ten_kills_cost_no_member_and_no_acknowledged_commit(broker: EmbeddedBroker, tmp_path: Path) -> None:
    # Long enough that all members of a group are in its first generation, or nearly always.
    coordinator = CoordinatorProcess(broker.bootstrap_servers, tmp_path, {"group.initial.rebalance.delay.ms": 3_000})
    with ExitStack() as stack:
        stack.callback(coordinator.kill)
        coordinator.start()
        prefix = coordinator.topics.prefix
        client = stack.enter_context(CoordinatorClient(broker.bootstrap_servers, topic_prefix=prefix))
        crowd = Crowd(client)
        with crowd.living():
            wait_until(lambda: settled(crowd), "twenty members in five stable groups", LIMIT_SECONDS)
            generations, events = crowd.generations, len(crowd.events)
            crowd.start_committing()
            for _ in range(KILLS):
                before = dict(crowd.acknowledged)
                wait_until(lambda before=before: progress(crowd, before), "commits of all groups", LIMIT_SECONDS)  # type: ignore[misc]
                coordinator.kill()
                coordinator.start()
            before = dict(crowd.acknowledged)
            wait_until(lambda: progress(crowd, before), "commits after the last start", LIMIT_SECONDS)
            assert crowd.failures == []
            assert crowd.events[events:] == []
            assert crowd.generations == generations
        assert_nothing_was_lost(client, crowd)
    with reading(broker.bootstrap_servers, coordinator.topics.journal) as journal:
        removed = [r for r in journal.to_the_end() if r.value["record"]["type"] == "MemberRemoved"]
    assert removed == []


def settled(crowd: Crowd) -> bool:
    """Whether every member has its assignment, in the same generation as the others of its group."""
    assert crowd.failures == []
    generations = crowd.generations
    assigned = [event.generation for event in crowd.events if event.kind is MemberEventKind.ASSIGNED]
    groups = [generations[first : first + MEMBERS_A_GROUP] for first in range(0, len(generations), MEMBERS_A_GROUP)]
    is_shared = all(len({member.generation_id for member in group}) == 1 for group in groups)
    return is_shared and set(generations) <= set(assigned)


def progress(crowd: Crowd, before: Mapping[str, int]) -> bool:
    assert crowd.failures == []
    return all(crowd.acknowledged[group_id] > before[group_id] + 1 for group_id in GROUPS)


def assert_nothing_was_lost(client: CoordinatorClient, crowd: Crowd) -> None:
    for fetched in client.offset_fetch([GroupToFetch(group_id) for group_id in GROUPS]).groups:
        committed = fetched.topics[0].partitions[0].committed_offset
        # The last commit may have been made although its answer came too late for us.
        assert committed >= crowd.acknowledged[fetched.group_id]
