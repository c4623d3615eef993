"""Incidents that ordinary clients make through the gateway: ``explain`` names the cause of each, with its evidence."""

import json
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_commands import run_for
from tests.clients.group import KILLED_SESSION_MS, WatchedGroup
from tests.clients.live_consumer import LiveConsumer
from tests.clients.programs.java import tool
from tests.clients.programs.libraries import Library
from tests.clients.system import System
from tests.support.kafka_io import produce
from tests.support.topics import unique
from tests.support.waiting import wait_until

AT_ONCE = 4
"""Incidents that run at the same time: they mostly wait."""

POLL_INTERVAL_MS = SESSION_MS = 6_000
PARTITIONS = 2
FLAPS = 3
FULL_PIPE = [b"x" * 1_000] * 300
"""More than a pipe and a Java program's buffers hold."""

Incident = Callable[["Scene"], None]


class Scene:
    """A group of its own on the shared system, and what ``explain`` says of it."""

    def __init__(self, system: System, folder: Path, stack: ExitStack) -> None:
        self.system = system
        self.stack = stack
        self._folder = folder
        self.group_id, self.topic = unique("group"), system.new_topic(PARTITIONS)

    def consumer(self, client_id: str, **settings: Any) -> LiveConsumer:
        """A consumer that polls until the scene ends; the settings' names have ``_`` for each dot."""
        return self.stack.enter_context(self.new_consumer(client_id, **settings))

    def new_consumer(self, client_id: str, **settings: Any) -> LiveConsumer:
        """A consumer that polls within its ``with`` block."""
        shared = {
            "bootstrap.servers": self.system.bootstrap_servers,
            "group.id": self.group_id,
            "client.id": client_id,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": 500,
            "topic.metadata.refresh.interval.ms": 1_000,
            "log_level": 0,
        }
        return LiveConsumer(self.topic, shared | {key.replace("_", "."): value for key, value in settings.items()})

    def members(self) -> WatchedGroup:
        """The same group for members in processes of their own, which can be killed."""
        group = WatchedGroup(
            self.system.bootstrap_servers,
            self.group_id,
            self.topic,
            PARTITIONS,
            self._folder,
            session_ms=KILLED_SESSION_MS,
        )
        self.stack.callback(group.kill_all)
        return group

    def story(self) -> Any:
        """What ``explain --json`` says now; a group without entries has no rebalances."""
        told = run_for(self.system.coordinator, "explain", self.group_id, "--json")
        return json.loads(told.stdout) if told.returncode == 0 else {"rebalances": []}

    def await_refusal(self, api: str, error: str, client: str) -> list[Any]:
        """Wait until ``explain`` tells that a client's request was refused with this error; returns these refusals."""
        found: list[Any] = []

        def is_told() -> bool:
            refusals = (self.story().get("refused") or {"refusals": []})["refusals"]
            of_kind = [one for one in refusals if (one["api"], one["error"]) == (api, error)]
            found[:] = [one for one in of_kind if one["name"].startswith(f"{client} at ")]
            return bool(found)

        wait_until(is_told, f"{api} of {client} refused", pause=1.0, describe=lambda: str(self.story()))
        assert all(refusal["offset"] >= 0 for refusal in found), "the place of the request"
        return found

    def await_cause(self, trigger: str, client: str | None, *, count: int = 1) -> list[Any]:
        """Wait until so many rebalances have a cause with this trigger, by this client; returns these causes.

        Each of them names entries of the journal.
        """
        found: list[Any] = []

        def is_told() -> bool:
            causes = [cause for rebalance in self.story()["rebalances"] for cause in rebalance["causes"]]
            found[:] = [one for one in causes if one["trigger"] == trigger and _is_by(one["member"], client)]
            return len(found) >= count

        wait_until(is_told, f"{count} x {trigger!r} by {client}", pause=1.0, describe=lambda: str(self.story()))
        for cause in found:
            assert all(entry["record"] and entry["sequence"] > 0 for entry in cause["evidence"])
            assert cause["evidence"]
        return found


def _is_by(member_id: str | None, client: str | None) -> bool:
    return member_id is None if client is None else (member_id or "").startswith(client)


def slow_poll_loop(scene: Scene) -> None:
    """A console consumer whose output nobody reads: Java's client leaves, and gives its reason."""
    properties = {
        "max.poll.interval.ms": POLL_INTERVAL_MS,
        "session.timeout.ms": SESSION_MS,
        "heartbeat.interval.ms": 500,
        "client.id": "slow",
    }
    command = tool(
        "kafka-console-consumer",
        *("--bootstrap-server", scene.system.bootstrap_servers),
        *("--topic", scene.topic, "--group", scene.group_id, "--from-beginning"),
        *(part for name, value in properties.items() for part in ("--consumer-property", f"{name}={value}")),
    )
    produce(scene.system.bootstrap_servers, scene.topic, {0: FULL_PIPE})
    process = scene.stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
    scene.stack.callback(process.kill)
    (cause,) = scene.await_cause("poll interval exceeded", "slow")
    assert cause["isCertain"]


def slow_poll_loop_without_a_reason(scene: Scene) -> None:
    """librdkafka leaves, too, but says nothing: so the member may have left because of its application."""
    slow = scene.consumer("slow", max_poll_interval_ms=POLL_INTERVAL_MS)
    slow.await_partitions(0, 1)
    slow.stop_polling()
    scene.await_cause("member left", "slow")
    (cause,) = scene.await_cause("poll interval exceeded", "slow")
    assert not cause["isCertain"]


def rolling_restart(scene: Scene) -> None:
    """Each of two members is stopped, and another one comes once the rebalance of its departure has ended."""
    group = scene.members()
    group.start("old-0", Library.LIBRDKAFKA)
    group.start("old-1", Library.LIBRDKAFKA)
    group.await_shared_by("old-0", "old-1")
    group.stop("old-0")
    group.await_shared_by("old-1")
    group.start("new-0", Library.LIBRDKAFKA)
    group.await_shared_by("new-0", "old-1")
    group.stop("old-1")
    group.await_shared_by("new-0")
    group.start("new-1", Library.LIBRDKAFKA)
    group.await_shared_by("new-0", "new-1")
    scene.await_cause("member left", "rdkafka", count=2)
    scene.await_cause("member joined", "rdkafka", count=3)


def host_lost(scene: Scene) -> None:
    """One of two members is killed."""
    group = scene.members()
    group.start("stays", Library.LIBRDKAFKA)
    group.start("lost", Library.LIBRDKAFKA)
    group.await_shared_by("stays", "lost")
    group.kill("lost")
    group.await_shared_by("stays")
    (cause,) = scene.await_cause("session expired", "rdkafka")
    assert cause["isCertain"]


def topic_grown(scene: Scene) -> None:
    """A topic gets a partition, and the leader joins again when it learns that."""
    leader = scene.consumer("leader")
    leader.await_partitions(0, 1)
    scene.system.grow_topic(scene.topic, PARTITIONS + 1)
    leader.await_partitions(0, 1, 2)
    (cause,) = scene.await_cause("topic changed", "leader")
    assert not cause["isCertain"]


def flapping_member(scene: Scene) -> None:
    """A member comes and goes, beside one that stays."""
    scene.consumer("steady").await_partitions(0, 1)
    for _ in range(FLAPS):
        with scene.new_consumer("flapping") as flapping:
            wait_until(lambda: len(flapping.partitions) == 1, "its share")
    scene.await_cause("member left", "flapping", count=FLAPS)
    summary = scene.story()["summary"]
    assert summary["busiest"].startswith("flapping at ")
    assert summary["busiestCount"] >= FLAPS
    assert summary["flapping"] > 0


def offset_reset_by_an_operator(scene: Scene) -> None:
    """An operator resets offsets of a group with members."""
    scene.system.produce(scene.topic, range(PARTITIONS), 5)
    member = scene.consumer("member")
    member.await_partitions(0, 1)
    assert member.commit(0, 3) is None
    reset = run_for(
        scene.system.coordinator,
        *("offsets", "reset", scene.group_id, "--topic", scene.topic, "--to-earliest"),
        *("--execute", "--force", "--reason", "lost e-mails"),
    )
    assert reset.returncode == 0, reset.stderr
    (cause,) = scene.await_cause("offsets reset by an operator", None)
    assert cause["isCertain"]
    assert "lost e-mails" in cause["text"]


def wrong_assignor(scene: Scene) -> None:
    """One member has another assignor than the others: it cannot join, and nobody else is disturbed."""
    scene.consumer("member", partition_assignment_strategy="range").await_partitions(0, 1)
    scene.consumer("wrong", partition_assignment_strategy="roundrobin")
    (refusal,) = scene.await_refusal("JoinGroup", "INCONSISTENT_GROUP_PROTOCOL", "wrong")
    assert "range" in refusal["text"]


def static_id_used_twice(scene: Scene) -> None:
    """Two processes have the same instance id: the later one takes the place of the earlier, whose commit is lost."""
    # So late a heartbeat that the commit comes first.
    first = scene.consumer("first", group_instance_id="i", heartbeat_interval_ms=SESSION_MS // 2)
    first.await_partitions(0, 1)
    scene.consumer("second", group_instance_id="i").await_partitions(0, 1)
    assert first.commit(0, 3) == "FENCED_INSTANCE_ID"
    (refusal,) = scene.await_refusal("OffsetCommit", "FENCED_INSTANCE_ID", "first")
    assert "second" in refusal["text"]
    assert refusal["evidence"]


INCIDENTS = [
    slow_poll_loop,
    slow_poll_loop_without_a_reason,
    rolling_restart,
    host_lost,
    topic_grown,
    flapping_member,
    offset_reset_by_an_operator,
    wrong_assignor,
    static_id_used_twice,
]


@pytest.fixture(scope="module")
def incidents(system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[None]]]:
    """The incidents, several at the same time."""
    folder = tmp_path_factory.mktemp("incidents")

    def play(incident: Incident) -> None:
        with ExitStack() as stack:
            incident(Scene(system, folder, stack))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            yield {incident.__name__: pool.submit(play, incident) for incident in INCIDENTS}
        finally:
            pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("incident", [incident.__name__ for incident in INCIDENTS])
def test_explain_names_the_cause_of(incidents: dict[str, Future[None]], incident: str) -> None:
    incidents[incident].result()


def test_explain_names_both_possible_causes_of_an_expiry_after_the_coordinator_was_killed(
    system: System, incidents: dict[str, Future[None]], tmp_path: Path
) -> None:
    wait(incidents.values())
    with ExitStack() as stack:
        scene = Scene(system, tmp_path, stack)
        group = scene.members()
        group.start("stays", Library.LIBRDKAFKA)
        group.start("lost", Library.LIBRDKAFKA)
        group.await_shared_by("stays", "lost")
        system.coordinator.kill()
        group.kill("lost")
        system.coordinator.start()
        group.await_shared_by("stays")
        (expired,) = scene.await_cause("session expired", "rdkafka")
        (away,) = scene.await_cause("coordinator was away", "rdkafka")
        assert not expired["isCertain"]
        assert not away["isCertain"]
