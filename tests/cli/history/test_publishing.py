"""``group-coordinator events --publish``: the topic of rebalances."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import jsonschema
import pytest

from streaming.client import CoordinatorClient
from streaming.contract.schema import json_schema
from streaming.explain.publishing.contract import REBALANCES
from tests.cli.test_commands import COMMAND, UNREACHABLE, run
from tests.cli.test_explain import await_empty, joined_member, leave
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import reading
from tests.support.processes import Process

SCHEMA = jsonschema.Draft202012Validator(json_schema([REBALANCES]))


@pytest.fixture
def new_publisher(coordinator: CoordinatorProcess) -> Iterator[Callable[[], Process]]:
    """Starts publishers, which are killed at the end."""
    connection = ["-b", coordinator.bootstrap_servers, "--topic-prefix", coordinator.topics.prefix]
    with ExitStack() as stack:

        def start() -> Process:
            publisher = Process(
                "events --publish", [str(COMMAND), "events", "--follow", "--publish", "--json", *connection]
            )
            stack.callback(publisher.kill)
            publisher.start()
            publisher.await_line("that it is ready", lambda line: line.startswith("publishing to"))
            return publisher

        yield start


def _rebalanced(coordinator: CoordinatorProcess, name: str) -> str:
    """A group with two rebalances, both in the journal."""
    group = f"{name}-{uuid.uuid4().hex[:8]}"
    with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix) as client:
        leave(client, group, joined_member(client, group))
    await_empty(coordinator, group)
    return group


def _is_end_of(group: str) -> Callable[[str], bool]:
    return lambda line: f'"groupId":"{group}"' in line and '"member left"' in line


def test_each_rebalance_is_in_the_topic_once_although_publishers_are_killed_and_overtaken(
    coordinator: CoordinatorProcess, new_publisher: Callable[[], Process]
) -> None:
    before = _rebalanced(coordinator, "before")
    first = new_publisher()
    groups = [_rebalanced(coordinator, "first")]
    first.await_line("the group that it follows", _is_end_of(groups[0]))
    first.kill()
    groups.append(_rebalanced(coordinator, "away"))
    second = new_publisher()
    second.await_line("the group that changed meanwhile", _is_end_of(groups[1]))
    third = new_publisher()
    groups.append(_rebalanced(coordinator, "third"))
    third.await_line("the group that it follows", _is_end_of(groups[2]))
    assert second.wait() == 1
    assert "may no longer publish" in second.tail()
    with reading(coordinator.bootstrap_servers, coordinator.topics.rebalances) as topic:
        topic.first(lambda record: record.key == groups[2].encode() and record.value["membersAfter"] == 0, "the last")
        told = [(record.key, record.value) for record in topic.records]
    assert before.encode() not in [key for key, _ in told]
    for group in groups:
        records = [value for key, value in told if key == group.encode()]
        assert [record["causes"][0]["trigger"] for record in records] == ["member joined", "member left"]
        assert [(record["membersBefore"], record["membersAfter"]) for record in records] == [(0, 1), (1, 0)]
        for record in records:
            SCHEMA.validate(record)


def test_publishing_needs_the_brokers() -> None:
    ended = run("events", "-b", UNREACHABLE, "--publish", "--timeout", "1")
    assert (ended.returncode, ended.stdout) == (1, "")
