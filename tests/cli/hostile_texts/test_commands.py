"""Every command with group ids, members, client ids, topics, metadata, reasons and arguments that would do harm."""

import json
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from typer.main import get_command

from coordinator_logic.apis import CONSUMER_GROUP_HEARTBEAT
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    LeavingMember,
    OffsetCommitRequest,
    PartitionToCommit,
    Protocol,
    TopicToCommit,
)
from streaming.cli.app import app
from streaming.client import CoordinatorClient, CoordinatorError
from streaming.contract.output.text import printable
from streaming.explain.offsets.files import FileFormat, decoded
from tests.cli.hostile_texts.runs import CONSUMERS, ELSEWHERE, LEFT, ON_COORDINATOR, TOPIC, UNUSED, Run
from tests.cli.test_commands import run_for
from tests.cli.test_help import commands
from tests.contract.output.hostile_texts import HOSTILE, unprintable
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.kafka_io import append
from tests.support.parameters.long_tests import mostly_long

OF_EACH_OUTPUT = [("groups", "list"), ("groups", "describe"), ("offsets", "history"), ("events",), ("explain",)]
"""A table, details, a table with wrapped cells, lines, a story."""

SESSION_MS = 600_000
TRACE = "Traceback (most recent call last)"


def test_every_command_is_tried_or_tested_elsewhere() -> None:
    found = {words for words, command in commands(get_command(app)).items() if not hasattr(command, "commands")}
    assert {*ON_COORDINATOR, *ELSEWHERE} == found
    assert all(
        "hostile_texts" in Path(test).read_text() or "PIECES" in Path(test).read_text() for test in ELSEWHERE.values()
    )


def joined(client: CoordinatorClient, group_id: str, instance_id: str) -> str:
    """Let a static member join and be alone in its group; returns its id."""
    protocols = [Protocol(HOSTILE, b"")]
    join = JoinGroupRequest(group_id, SESSION_MS, HOSTILE, protocols, SESSION_MS, "", instance_id, HOSTILE)
    return client.join_group(join).member_id


def commit(client: CoordinatorClient, group_id: str, member_id: str = "", generation: int = -1) -> None:
    partition = PartitionToCommit(0, 5, committed_metadata=HOSTILE)
    client.offset_commit(OffsetCommitRequest(group_id, [TopicToCommit(TOPIC, [partition])], generation, member_id))


@pytest.fixture(scope="module")
def folder(coordinator: CoordinatorProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for files; the coordinator has the groups of the runs. Their members stay for longer than the runs."""
    servers, prefix = coordinator.bootstrap_servers, coordinator.topics.prefix
    with CoordinatorClient(
        servers, topic_prefix=prefix, client_id=HOSTILE, client_host=HOSTILE, principal=HOSTILE
    ) as client:
        commit(client, HOSTILE)
        joined(client, HOSTILE, HOSTILE)
        leaving = joined(client, LEFT, HOSTILE)
        with suppress(CoordinatorError):
            client.heartbeat(HeartbeatRequest(LEFT, 99, leaving, HOSTILE))
        client.leave_group(LeaveGroupRequest(LEFT, members=[LeavingMember(leaving, HOSTILE, reason=HOSTILE)]))
        joins = ConsumerGroupHeartbeatRequest(
            CONSUMERS,
            HOSTILE,
            0,
            rack_id=HOSTILE,
            rebalance_timeout_ms=SESSION_MS,
            subscribed_topic_names=[TOPIC],
            topic_partitions=[],
        )
        client.ask(CONSUMER_GROUP_HEARTBEAT, CONSUMERS, joins).result().unwrap()
        commit(client, UNUSED)
    append(servers, coordinator.topics.requests, (HOSTILE.encode(), HOSTILE.encode()), (b"\xff\x1b", b"{"))
    return tmp_path_factory.mktemp("hostile")


def tried(coordinator: CoordinatorProcess, folder: Path, words: tuple[str, ...], run: Run) -> str:
    """Run a command line; returns what is wrong with its output or its exit code, empty if nothing is."""
    arguments = [argument.replace("{folder}", str(folder)) for argument in run.arguments]
    try:
        ended = run_for(coordinator, *words, *arguments)
    except subprocess.TimeoutExpired:
        return f"{words} {run.arguments}: it does not end"
    output = ended.stdout + ended.stderr
    # A file for programs, which keeps its texts; to a terminal, it is shown with escapes.
    shown = ended.stderr if words == ("offsets", "export") else output
    as_json = "--json" in arguments and ended.returncode == 0 and words != ("events",)
    wrong = [
        *(f"unprintable: {line!r}" for line in unprintable(shown)),
        *(["a traceback"] if TRACE in output else []),
        *([f"exit code {ended.returncode}"] if ended.returncode != run.exit_code else []),
        *(["no JSON"] if as_json and not is_json(ended.stdout) else []),
    ]
    return f"{words} {run.arguments}: {', '.join(wrong)}\n{output}" if wrong else ""


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("words", mostly_long(ON_COORDINATOR, OF_EACH_OUTPUT), ids=" ".join)
def test_a_command_shows_texts_that_would_do_harm(
    coordinator: CoordinatorProcess, folder: Path, words: tuple[str, ...]
) -> None:
    problems = [problem for run in ON_COORDINATOR[words] if (problem := tried(coordinator, folder, words, run))]
    assert not problems, "\n".join(problems)


def test_groups_are_listed_by_their_ids(coordinator: CoordinatorProcess, folder: Path) -> None:
    listed = run_for(coordinator, "groups", "list").stdout
    assert printable(LEFT)[:40] in listed
    found = json.loads(run_for(coordinator, "groups", "list", "--json").stdout)
    assert LEFT in {group["groupId"] for group in found}


def test_the_files_of_commands_have_no_control_characters(coordinator: CoordinatorProcess, folder: Path) -> None:
    run_for(coordinator, "offsets", "export", HOSTILE, "-o", str(folder / "offsets.json"))
    run_for(coordinator, "explain", LEFT, "--html", str(folder / "s.html"), "--trace", str(folder / "s.json"))
    run_for(coordinator, "replay", LEFT, "--case", str(folder / "case.json"))
    for name in ("offsets.json", "s.html", "s.json", "case.json"):
        content = (folder / name).read_text()
        assert unprintable(content.replace("\t", "")) == [], name
        assert "boom" in content, name


def test_an_export_in_csv_is_read_back_and_has_no_formulas(coordinator: CoordinatorProcess, folder: Path) -> None:
    file = folder / "offsets.csv"
    assert run_for(coordinator, "offsets", "export", HOSTILE, "-o", str(file)).returncode == 0
    ((partition, position),) = decoded(file.read_bytes(), FileFormat.CSV).items()
    assert (partition.topic, position.metadata) == (TOPIC, HOSTILE)
    assert file.read_bytes().splitlines()[1].startswith(b"\"'=")


def test_job_and_gateway_log_and_report_no_control_characters(coordinator: CoordinatorProcess, folder: Path) -> None:
    with GatewayProcess(coordinator.bootstrap_servers, coordinator.topics.prefix) as gateway:
        gateway.start()
        consumer = Consumer({"bootstrap.servers": gateway.bootstrap_servers, "group.id": HOSTILE, "client.id": HOSTILE})
        with suppress(KafkaException):
            consumer.committed([TopicPartition(TOPIC, 0)], timeout=5)
        consumer.close()
        assert gateway.stop() == 0
        assert unprintable("\n".join(gateway.output)) == []
    assert unprintable("\n".join(coordinator.output)) == []
