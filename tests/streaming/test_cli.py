"""The command, as a user types it: real processes, real exit codes."""

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

from tests.streaming.coordinator_process import CoordinatorProcess

COMMAND = Path(sys.executable).with_name("group-coordinator")
LIMIT_SECONDS = 60
NOBODY = "127.0.0.1:1"


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


def ask(coordinator: CoordinatorProcess, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command that asks this coordinator."""
    return run(
        *arguments,
        GROUP_COORDINATOR_BOOTSTRAP_SERVERS=coordinator.bootstrap_servers,
        GROUP_COORDINATOR_TOPIC_PREFIX=coordinator.topics.prefix,
    )


def answer(completed: subprocess.CompletedProcess[str]) -> Any:
    """The JSON that a successful command printed."""
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


@pytest.fixture
def group() -> str:
    """A group id that no other test uses."""
    return f"group-{uuid.uuid4().hex[:8]}"


def test_a_group_is_made_listed_described_and_deleted(coordinator: CoordinatorProcess, group: str) -> None:
    committed = ask(coordinator, "offsets", "commit", group, "orders:0=42", "orders:1=7", "--metadata", "by hand")
    assert (committed.returncode, committed.stdout) == (0, f"{group}: committed 2 offset(s)\n")

    listed = answer(ask(coordinator, "groups", "list", "--state", "empty", "--json"))
    assert {"groupId": group, "protocolType": "", "groupState": "Empty", "groupType": "classic"} in listed

    assert f"{group}: Empty" in ask(coordinator, "groups", "describe", group).stdout

    topics = answer(ask(coordinator, "offsets", "list", group, "--json"))["topics"]
    assert [(p["partitionIndex"], p["committedOffset"], p["metadata"]) for p in topics[0]["partitions"]] == [
        (0, 42, "by hand"),
        (1, 7, "by hand"),
    ]

    assert ask(coordinator, "groups", "delete", group).stdout == f"{group}: deleted\n"
    gone = ask(coordinator, "groups", "describe", group)
    assert (gone.returncode, gone.stderr) == (1, f"group-coordinator: {group}: GROUP_ID_NOT_FOUND\n")


def test_tables_are_for_people(coordinator: CoordinatorProcess, group: str) -> None:
    ask(coordinator, "offsets", "commit", group, "orders:0=42")
    table = ask(coordinator, "offsets", "list", group).stdout
    assert re.search(r"orders\W+0\W+42", table)
    assert re.search(rf"{group}\W+Empty\W+classic", ask(coordinator, "groups", "list").stdout)


@pytest.mark.parametrize("position", ["orders", "orders:0", "orders=1", "orders:x=1", ":0=1", "orders:0=-1"])
def test_a_malformed_position_is_wrong_usage(position: str) -> None:
    refused = run("offsets", "commit", "billing", position, "-b", NOBODY)
    assert refused.returncode == 2
    assert "is not TOPIC:PARTITION=OFFSET" in refused.stderr


def test_an_unreachable_broker_is_told_in_one_line() -> None:
    refused = run("offsets", "list", "billing", "-b", NOBODY, "--timeout", "2")
    assert refused.returncode == 3
    assert "group-coordinator: " in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_command_without_a_broker_says_which_option_is_missing() -> None:
    refused = run("groups", "list")
    assert refused.returncode == 2
    assert "--bootstrap-servers" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-b", NOBODY], "checkpoint is missing"),
        (["--checkpoint", "/tmp/c"], "bootstrap-servers is missing"),
        (["-b", NOBODY, "--checkpoint", "/tmp/c", "--set", "group.max.size=none"], "group.max.size"),
        (["-b", NOBODY, "--checkpoint", "/tmp/c", "--set", "no.such.option=1"], "there is no such option"),
        (["-b", NOBODY, "--checkpoint", "/tmp/c", "--set", "maxOffsetsPerTrigger=1"], "every batch must read all"),
        (["-b", NOBODY, "--embedded", "--checkpoint", "/tmp/c"], "--embedded brings a broker of its own"),
        (["--embedded", "--checkpoint", "s3a://bucket/c"], "must be a folder"),
    ],
)
def test_wrong_options_of_the_job_are_told_before_anything_starts(arguments: list[str], said: str) -> None:
    refused = run("run", *arguments)
    assert refused.returncode == 2
    assert said in refused.stderr


def test_the_configuration_file_is_named_where_it_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "coordinator.toml"
    file.write_text('checkpoint = "/tmp/c"\ntrigger-interval-ms = "soon"\n')
    refused = run("run", "-b", NOBODY, "--config", str(file))
    assert refused.returncode == 2
    assert "trigger-interval-ms" in refused.stderr
    assert str(file) in refused.stderr


def test_the_broker_runs_until_it_is_told_to_stop(tmp_path: Path) -> None:
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


def test_version_names_what_it_stands_on() -> None:
    versions = answer(run("version", "--json"))
    assert versions["pyspark"] == "4.2.0"
    assert {"spark-group-coordinator", "confluent-kafka", "python"} <= set(versions)


def test_the_schema_is_json() -> None:
    assert answer(run("schema"))["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("command", [[], ["groups"], ["offsets"], ["run"], ["broker"], ["demo"], ["offsets", "commit"]])
def test_every_command_explains_itself(command: list[str]) -> None:
    explained = run(*command, "--help")
    assert explained.returncode == 0
    assert "Usage" in explained.stdout
