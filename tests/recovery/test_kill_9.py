"""The coordinator is killed several times: no member is removed or rejoins, and no acknowledged commit is lost."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from coordinator_logic.messages import (
    GroupToFetch,
    OffsetCommitRequest,
    PartitionToCommit,
    TopicToCommit,
)
from streaming.client import (
    CoordinatorClient,
    CoordinatorError,
    Generation,
    GroupMember,
    MemberConfig,
    MemberEvent,
    MemberEventKind,
)
from streaming.embedded.broker import EmbeddedBroker
from tests.recovery.any_protocol import AnyProtocol
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import reading
from tests.support.waiting import wait_until

GROUPS = [f"group-{number}" for number in range(5)]
MEMBERS_A_GROUP = 4
KILLS = int(os.environ.get("KILLS", "2"))
"""``make kills`` kills it ten times."""

SESSION_TIMEOUT_MS = 10_000
"""About the duration of a restart. Members survive it, because their requests count from the time of their append."""

LIMIT_SECONDS = 180.0


class Members:
    """Twenty members, each polled by a thread; one member of each group also commits in a thread."""

    def __init__(self, client: CoordinatorClient) -> None:
        self._client = client
        self.events: list[MemberEvent] = []
        self.acknowledged = dict.fromkeys(GROUPS, 0)
        self.failures: list[BaseException] = []
        self.members = [
            GroupMember(
                client,
                AnyProtocol(),
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
    def polling(self) -> Iterator[None]:
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
                continue  # a commit that is not acknowledged may be lost
            if response.topics[0].partitions[0].error_code != 0:
                self.failures.append(AssertionError(f"{group_id}: {response}"))
                return
            self.acknowledged[group_id] = offset


@pytest.mark.timeout(900)
def test_kills_lose_no_member_and_no_acknowledged_commit(broker: EmbeddedBroker, tmp_path: Path) -> None:
    # Long enough for all members of a group to join its first generation, nearly always.
    coordinator = CoordinatorProcess(broker.bootstrap_servers, tmp_path, {"group.initial.rebalance.delay.ms": 3_000})
    with ExitStack() as stack:
        stack.callback(coordinator.kill)
        coordinator.start()
        prefix = coordinator.topics.prefix
        client = stack.enter_context(CoordinatorClient(broker.bootstrap_servers, topic_prefix=prefix))
        members = Members(client)
        with members.polling():
            wait_until(lambda: settled(members), "twenty members in five stable groups", LIMIT_SECONDS)
            generations, events = members.generations, len(members.events)
            members.start_committing()
            for _ in range(KILLS):
                before = dict(members.acknowledged)
                wait_until(lambda before=before: progress(members, before), "commits of all groups", LIMIT_SECONDS)  # type: ignore[misc]
                coordinator.kill()
                coordinator.start()
            before = dict(members.acknowledged)
            wait_until(lambda: progress(members, before), "commits after the last start", LIMIT_SECONDS)
            assert members.failures == []
            assert members.events[events:] == []
            assert members.generations == generations
        assert_nothing_was_lost(client, members)
    with reading(broker.bootstrap_servers, coordinator.topics.journal) as journal:
        removed = [r for r in journal.to_the_end() if r.value["record"]["type"] == "MemberRemoved"]
    assert removed == []


def settled(members: Members) -> bool:
    """Whether every member has its assignment, and the members of each group have the same generation."""
    assert members.failures == []
    generations = members.generations
    assigned = [event.generation for event in members.events if event.kind is MemberEventKind.ASSIGNED]
    groups = [generations[first : first + MEMBERS_A_GROUP] for first in range(0, len(generations), MEMBERS_A_GROUP)]
    is_shared = all(len({member.generation_id for member in group}) == 1 for group in groups)
    return is_shared and set(generations) <= set(assigned)


def progress(members: Members, before: Mapping[str, int]) -> bool:
    assert members.failures == []
    return all(members.acknowledged[group_id] > before[group_id] + 1 for group_id in GROUPS)


def assert_nothing_was_lost(client: CoordinatorClient, members: Members) -> None:
    for fetched in client.offset_fetch([GroupToFetch(group_id) for group_id in GROUPS]).groups:
        committed = fetched.topics[0].partitions[0].committed_offset
        # The last commit may have been accepted although its response came too late for the client.
        assert committed >= members.acknowledged[fetched.group_id]
