"""The command line in processes of its own: output and exit codes."""

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streaming.cli.app import app
from tests.support.coordinator_process import CoordinatorProcess, commit_offsets
from tests.support.gateway_process import GatewayProcess
from tests.support.waiting import LIMIT_SECONDS

COMMAND = Path(sys.executable).with_name("group-coordinator")
UNREACHABLE = "127.0.0.1:1"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    plain = {"NO_COLOR": "1", "COLUMNS": "200", "TERM": "dumb"}
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("GROUP_COORDINATOR_B")}
    return subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        env={**inherited, **plain, **environment},
    )


def run_for(coordinator: CoordinatorProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that connects to this coordinator."""
    return run(
        *arguments,
        GROUP_COORDINATOR_BOOTSTRAP_SERVERS=coordinator.bootstrap_servers,
        GROUP_COORDINATOR_TOPIC_PREFIX=coordinator.topics.prefix,
    )


def printed_json(completed: subprocess.CompletedProcess[str]) -> Any:
    """The JSON output of a command that succeeded."""
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


@pytest.fixture
def group() -> str:
    """A unique group id."""
    return f"group-{uuid.uuid4().hex[:8]}"


def test_a_group_is_created_listed_described_and_deleted(coordinator: CoordinatorProcess, group: str) -> None:
    commit_offsets(coordinator, group, 42, 7)

    listed = printed_json(run_for(coordinator, "groups", "list", "--state", "empty", "--json"))
    assert {"groupId": group, "protocolType": "", "groupState": "Empty", "groupType": "classic"} in listed

    assert f"{group}: Empty" in run_for(coordinator, "groups", "describe", group).stdout

    topics = printed_json(run_for(coordinator, "offsets", "list", group, "--json"))["topics"]
    assert [(p["partitionIndex"], p["committedOffset"]) for p in topics[0]["partitions"]] == [(0, 42), (1, 7)]

    assert run_for(coordinator, "groups", "delete", group).stdout == f"{group}: deleted\n"
    gone = run_for(coordinator, "groups", "describe", group)
    assert (gone.returncode, gone.stderr.endswith(f"error: group {group} does not exist\n")) == (1, True), gone.stderr


def test_patterns_name_groups_and_what_they_match_is_deleted_on_request_only(
    coordinator: CoordinatorProcess, group: str
) -> None:
    both = [f"{group}-{name}" for name in ("a", "b")]
    for each in both:
        commit_offsets(coordinator, each, 1)
    listed = printed_json(run_for(coordinator, "groups", "list", f"{group}-*", "--json"))
    assert [each["groupId"] for each in listed] == both
    described = printed_json(run_for(coordinator, "groups", "describe", f"{group}-?", "--json"))
    assert [each["groupId"] for each in described] == both
    shown = run_for(coordinator, "groups", "delete", f"{group}-*")
    assert shown.returncode == 0
    assert "Nothing was deleted: this was a dry run. --execute deletes 2 groups." in shown.stdout
    assert run_for(coordinator, "groups", "delete", f"{group}-*", "--execute").stdout == "".join(
        f"{each}: deleted\n" for each in both
    )
    gone = run_for(coordinator, "groups", "delete", f"{group}-*")
    assert (gone.returncode, gone.stderr.endswith(f"error: no group matches '{group}-*'\n")) == (1, True), gone.stderr


def test_a_state_that_does_not_exist_is_refused_with_those_that_do() -> None:
    refused = run("groups", "list", "-b", UNREACHABLE, "--state", "Stabel")
    assert refused.returncode == 2
    assert "--state: 'Stabel' is not one of: Empty, PreparingRebalance, CompletingRebalance, Stable," in refused.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["groups", "describe"],
        ["groups", "describe", "--at", "0s"],
        ["groups", "delete"],
        ["groups", "configure"],
        ["offsets", "list"],
        ["offsets", "history"],
        ["offsets", "diff", "--from", "1h"],
        ["offsets", "export"],
        ["offsets", "undo"],
        ["offsets", "delete", "--topic", "orders"],
        ["offsets", "reset", "--all-topics", "--to-earliest"],
        ["offsets", "clone", "copy"],
        ["explain"],
    ],
    ids=" ".join,
)
def test_a_group_that_does_not_exist_is_named_by_every_command(
    coordinator: CoordinatorProcess, command: list[str]
) -> None:
    where = ("-b", coordinator.bootstrap_servers, "--topic-prefix", coordinator.topics.prefix, "--timeout", "60")
    words = 1 if command[0] == "explain" else 2
    refused = CliRunner().invoke(app, [*command[:words], "nosuch", *command[words:], *where])
    assert (refused.exit_code, "group nosuch does not exist" in refused.stderr) == (1, True), refused.stderr


def test_a_group_is_configured(coordinator: CoordinatorProcess, group: str) -> None:
    session, heartbeat = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
    changed = run_for(coordinator, "groups", "configure", group, f"{session}=50000", f"{heartbeat}=6000", "--json")
    assert printed_json(changed) == {heartbeat: "6000", session: "50000"}
    assert printed_json(run_for(coordinator, "groups", "configure", group, f"{heartbeat}=", "--json")) == {
        session: "50000"
    }
    refused = run_for(coordinator, "groups", "configure", group, f"{session}=1")
    assert refused.returncode == 1
    assert f"{session} must be greater than or equal to group.consumer.min.session.timeout.ms" in refused.stderr
    assert "50000" in run_for(coordinator, "groups", "configure", group).stdout


def test_groups_and_offsets_are_printed_as_tables(coordinator: CoordinatorProcess, group: str) -> None:
    commit_offsets(coordinator, group, 42)
    table = run_for(coordinator, "offsets", "list", group).stdout
    assert re.search(r"orders\W+0\W+42", table)
    assert re.search(rf"{group}\W+Empty\W+classic", run_for(coordinator, "groups", "list").stdout)


@pytest.mark.parametrize("position", ["orders", "orders:0", "orders=1", "orders:x=1", ":0=1", "orders:0=-1"])
def test_a_malformed_position_exits_with_the_usage_code(position: str) -> None:
    refused = run("offsets", "commit", "billing", position, "-b", UNREACHABLE)
    assert refused.returncode == 2
    assert "is not TOPIC:PARTITION=OFFSET" in refused.stderr


def test_an_unreachable_broker_is_reported_in_one_line_after_the_wait() -> None:
    refused = run("offsets", "list", "billing", "-b", UNREACHABLE, "--timeout", "2")
    assert refused.returncode == 1
    assert refused.stderr.startswith("waiting for Kafka at 127.0.0.1:1, 2 s\nerror: ")
    assert refused.stderr.count("\n") == 2


def test_a_missing_broker_address_names_the_option() -> None:
    refused = run("groups", "list")
    assert refused.returncode == 2
    assert "--bootstrap-servers" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-b", UNREACHABLE], "checkpoint is missing"),
        (["--checkpoint", "/tmp/c"], "bootstrap-servers is missing"),
        (["-b", UNREACHABLE, "--checkpoint", "/tmp/c", "--set", "group.max.size=none"], "group.max.size"),
        (["-b", UNREACHABLE, "--checkpoint", "/tmp/c", "--set", "no.such.option=1"], "there is no such option"),
        (
            ["-b", UNREACHABLE, "--checkpoint", "/tmp/c", "--set", "maxOffsetsPerTrigger=1"],
            "use max-requests-per-batch",
        ),
        (["-b", UNREACHABLE, "--embedded", "--checkpoint", "/tmp/c"], "--embedded starts a broker of its own"),
        (["--embedded", "--checkpoint", "s3a://bucket/c"], "--embedded needs a local folder"),
    ],
)
def test_invalid_options_are_reported_before_anything_starts(arguments: list[str], message: str) -> None:
    refused = run("run", *arguments)
    assert refused.returncode == 2
    assert message in refused.stderr


def test_an_invalid_option_in_a_file_is_reported_with_the_name_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "coordinator.toml"
    file.write_text('checkpoint = "/tmp/c"\ntrigger-interval-ms = "soon"\n')
    refused = run("run", "-b", UNREACHABLE, "--config", str(file))
    assert refused.returncode == 2
    assert "trigger-interval-ms" in refused.stderr
    assert str(file) in refused.stderr


def test_a_gateways_address_is_told_from_a_brokers(coordinator: CoordinatorProcess) -> None:
    with GatewayProcess(coordinator.bootstrap_servers, coordinator.topics.prefix) as gateway:
        gateway.start()
        where = ("-b", gateway.bootstrap_servers, "--topic-prefix", coordinator.topics.prefix, "--timeout", "60")
        refused = run("groups", "describe", "billing", *where)
    sentence = f"error: {gateway.bootstrap_servers} is a gateway: give a broker's address\n"
    assert (refused.returncode, refused.stderr) == (2, sentence)


@pytest.mark.jvm
def test_the_broker_runs_until_sigterm(tmp_path: Path) -> None:
    command = [str(COMMAND), "broker", "--data-dir", str(tmp_path / "kafka"), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        printed = ""
        while not printed.endswith("}\n"):
            line = broker.stdout.readline()
            assert line, "the broker ended"
            printed += line
        assert json.loads(printed)["bootstrapServers"].startswith("127.0.0.1:")
        broker.send_signal(signal.SIGTERM)
        assert broker.wait(LIMIT_SECONDS) == 0


def test_version_prints_the_versions_of_the_dependencies() -> None:
    versions = printed_json(run("version", "--json"))
    assert versions["pyspark"] == "4.2.0"
    assert {"spark-group-coordinator", "confluent-kafka", "python"} <= set(versions)


def test_schema_prints_a_json_schema() -> None:
    assert printed_json(run("schema"))["$schema"] == "https://json-schema.org/draft/2020-12/schema"
