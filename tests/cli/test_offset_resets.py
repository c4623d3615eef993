"""Commands that move offsets and bring them back, through a coordinator, also under a live consumer."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from coordinator_logic.messages.base import TOPIC_ID
from streaming.cli.app import app
from streaming.client import Consumer
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import produce
from tests.support.topics import create_topic, unique
from tests.support.waiting import wait_until

RECORDS = 10
UNREACHABLE = "127.0.0.1:1"


class Operator:
    """Runs commands about the offsets of one group, which reads one topic with two partitions of ten records."""

    def __init__(self, coordinator: CoordinatorProcess) -> None:
        self.coordinator = coordinator
        self.group, self.topic = unique("group"), unique("orders")
        create_topic(coordinator.bootstrap_servers, self.topic, 2)
        values = {number: [b"%d" % offset for offset in range(RECORDS)] for number in range(2)}
        produce(coordinator.bootstrap_servers, self.topic, values)

    def run(self, *arguments: str) -> Result:
        """Run a command to its end."""
        servers, prefix = self.coordinator.bootstrap_servers, self.coordinator.topics.prefix
        # This broker ignores the user's name. The journal has it as who has reset the offsets.
        where = ("-b", servers, "--topic-prefix", prefix, "-X", "sasl.username=operator", "--timeout", "60")
        return CliRunner().invoke(app, [*arguments, *where])

    def json(self, *arguments: str) -> Any:
        """The JSON output of a command that succeeds."""
        done = self.run(*arguments, "--json")
        assert done.exit_code == 0, done.stderr
        return json.loads(done.stdout)

    def offsets(self) -> dict[int, int]:
        """The committed offset of each partition."""
        topics = self.json("offsets", "list", self.group)["topics"]
        return {each["partitionIndex"]: each["committedOffset"] for topic in topics for each in topic["partitions"]}

    def history(self) -> list[dict[str, Any]]:
        """The changes of the group's offsets."""
        found: list[dict[str, Any]] = self.json("offsets", "history", self.group, self.topic)
        return found

    def commit(self, *offsets: int) -> str:
        """Commit an offset for each partition without a member; returns a time after it, once the journal has it."""
        places = [f"{self.topic}:{number}={offset}" for number, offset in enumerate(offsets)]
        assert self.run("offsets", "commit", self.group, *places, "--execute").exit_code == 0
        wait_until(self._is_journalled, "the commit is in the journal")
        return datetime.now(UTC).isoformat()

    def _is_journalled(self) -> bool:
        listed = self.run("offsets", "history", self.group, "--json")
        if listed.exit_code:
            return False
        told = {row["partition"]: row["after"] for row in json.loads(listed.stdout)}
        return {number: after for number, after in told.items() if after is not None} == self.offsets()


@pytest.fixture
def operator(coordinator: CoordinatorProcess) -> Operator:
    return Operator(coordinator)


@pytest.fixture(params=["range", "cooperative-sticky"])
def consumer(operator: Operator, request: pytest.FixtureRequest) -> Iterator[Consumer]:
    """A consumer of the operator's group, eager or cooperative, that commits every 100 ms."""
    coordinator = operator.coordinator
    created = Consumer(
        bootstrap_servers=coordinator.bootstrap_servers,
        topic_prefix=coordinator.topics.prefix,
        group_id=operator.group,
        auto_offset_reset="earliest",
        # Long, so that the member is not removed because the machine was slow.
        session_timeout_ms=60_000,
        heartbeat_interval_ms=300,
        auto_commit_interval_ms=100,
        partition_assignment_strategy=[request.param],
    )
    created.subscribe([operator.topic])
    yield created
    created.close()


def consume(consumer: Consumer, count: int) -> list[tuple[int, int]]:
    """Poll until ``count`` records have come; their partitions and offsets."""
    seen: list[tuple[int, int]] = []

    def has_all() -> bool:
        seen.extend((record.partition, record.offset) for record in consumer.poll(0.1))
        return len(seen) >= count

    wait_until(has_all, f"{count} records", describe=lambda: f"{len(seen)} came")
    return seen


def committed_by(consumer: Consumer, operator: Operator, offsets: dict[int, int]) -> None:
    """Poll, without any further record, until the group has committed these offsets."""

    def is_committed() -> bool:
        assert consumer.poll(0.1) == []
        return operator.offsets() == offsets

    wait_until(is_committed, f"{offsets} are committed", describe=lambda: str(operator.offsets()))


# ---- usage -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["reset", "g", "--all-topics"], "give one of --to-earliest"),
        (["reset", "g", "--all-topics", "--to-earliest", "--to-latest"], "give one of --to-earliest"),
        (["reset", "g", "--all-topics", "--to-datetime", "2h", "--by-duration", "2h"], "give one of --to-earliest"),
        (["reset", "g", "--from-file", "offsets.txt"], "ends in none of .csv, .json, .parquet"),
        (["restore", "g", "--as-of", "yesterday"], "--as-of: 'yesterday' is not a time"),
        (["commit", "g", "orders:0=1", "orders:0=2"], "orders:0 is given twice"),
        (["history", "g", "orders:x"], "'orders:x' is not TOPIC or TOPIC:PARTITIONS"),
        (["export", "g", "-o", "offsets.txt"], "ends in none of .csv, .json, .parquet"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused_before_anything_is_read(arguments: list[str], why: str) -> None:
    refused = CliRunner().invoke(app, ["offsets", *arguments, "-b", UNREACHABLE])
    assert (refused.exit_code, why in refused.stderr) == (2, True), refused.stderr


# ---- a group without members -----------------------------------------------------------------------------------


def test_offsets_are_reset_restored_and_undone_and_the_history_says_by_whom(operator: Operator, tmp_path: Path) -> None:
    committed_at = operator.commit(6, 7)
    reset = ("offsets", "reset", operator.group, "--topic", f"{operator.topic}:0", "--to-earliest")

    shown = operator.json(*reset)
    (planned,) = shown["offsets"]
    assert (planned["from"], planned["to"], planned["replayed"], planned["skipped"], planned["lag"]) == (6, 0, 6, 0, 10)
    assert (shown["executed"], operator.offsets()) == (False, {0: 6, 1: 7})
    assert "Nothing was changed" in operator.run(*reset).stdout

    assert operator.json(*reset, "--execute", "--reason", "replay")["executed"]
    assert operator.offsets() == {0: 0, 1: 7}
    restore = ("offsets", "restore", operator.group, "--as-of", committed_at, "--execute")
    assert operator.json(*restore)["executed"]
    assert operator.offsets() == {0: 6, 1: 7}

    undo = ("offsets", "undo", operator.group, "--execute")
    for expected in ({0: 0, 1: 7}, {0: 6, 1: 7}):
        assert operator.json(*undo)["executed"]
        assert operator.offsets() == expected
    wait_until(lambda: len(operator.history()) == 9, "everything is in the journal")
    by_reset = operator.history()[2]
    assert (by_reset["cause"], by_reset["reason"], by_reset["before"], by_reset["after"]) == (
        *("ResetOffsets", "replay", 6, 0),
    )
    assert (by_reset["clientId"], by_reset["principal"]) == ("group-coordinator-cli", "User:operator")
    moved = operator.json("offsets", "diff", operator.group, "--from", committed_at)
    assert moved == []
    created = operator.json("offsets", "diff", operator.group, "--from", "1d")
    assert [(row["before"], row["after"]) for row in created] == [(None, 6), (None, 7)]
    back = operator.json("offsets", "history", operator.group, "--backwards")
    assert [(row["before"], row["after"]) for row in back] == [(6, 0), (6, 0)]
    never = operator.run("offsets", "restore", operator.group, "--as-of", "1d")
    assert (never.exit_code, "did not exist at that time" in never.stderr) == (1, True)

    file = tmp_path / "offsets.parquet"
    assert operator.run("offsets", "export", operator.group, "-o", str(file), "--as-of", committed_at).exit_code == 0
    copy = f"{operator.group}-copy"
    assert operator.json("offsets", "import", copy, str(file), "--execute")["executed"]
    refused = operator.run("offsets", "clone", operator.group, copy, "--execute")
    assert (refused.exit_code, "has committed offsets" in refused.stderr) == (1, True)
    exported = operator.run("offsets", "export", copy).stdout
    rows = [line.rpartition(",") for line in exported.splitlines()[1:]]
    assert [row for row, _, _ in rows] == [f"{operator.topic},0,6,-1,", f"{operator.topic},1,7,-1,"]
    (topic_id,) = {topic_id.removeprefix("'") for _, _, topic_id in rows}
    assert re.fullmatch(TOPIC_ID, topic_id)


def test_commits_between_the_dry_run_and_the_execution_are_reported(operator: Operator, tmp_path: Path) -> None:
    operator.commit(6, 7)
    plan = str(tmp_path / "plan.json")
    operator.json("offsets", "reset", operator.group, "--all-topics", "--shift-by", "-1", "--save-plan", plan)
    operator.commit(6, 8)
    refused = operator.run("offsets", "apply", plan, "--execute")
    assert refused.exit_code == 1
    assert f"{operator.topic}:1 read as 7, is now 8" in refused.stderr
    assert operator.offsets() == {0: 6, 1: 8}
    assert operator.run("offsets", "apply", plan, "--execute", "--overwrite-commits").exit_code == 0
    assert operator.offsets() == {0: 5, 1: 6}


def test_a_commit_is_shown_checked_and_carried_out_and_its_offsets_are_deleted(operator: Operator) -> None:
    commit = ("offsets", "commit", operator.group)
    for place, why in {
        f"{operator.topic}:99=1": f"{operator.topic} has 2 partitions: there is no {operator.topic}:99",
        f"{operator.topic}-missing:0=1": f"topic {operator.topic}-missing does not exist",
    }.items():
        refused = operator.run(*commit, place)
        assert (refused.exit_code, why in refused.stderr) == (1, True), refused.stderr
    planned = operator.json(*commit, f"{operator.topic}:0=99")["offsets"][0]
    assert (planned["to"], planned["note"]) == (RECORDS, "99 is after the last offset")
    missing = operator.run("offsets", "list", operator.group)
    assert (missing.exit_code, missing.stderr.endswith(f"error: group {operator.group} does not exist\n")) == (
        1,
        True,
    ), missing.stderr

    operator.commit(6, 7)
    topic = operator.json("offsets", "list", operator.group)["topics"][0]
    figures = [(each["logEndOffset"], each["lag"], each["owner"], each["note"]) for each in topic["partitions"]]
    assert figures == [(RECORDS, 4, None, ""), (RECORDS, 3, None, "")]

    delete = ("offsets", "delete", operator.group, "--topic", f"{operator.topic}:1")
    assert operator.json(*delete)["offsets"][0]["to"] is None
    assert operator.offsets() == {0: 6, 1: 7}
    assert operator.run(*delete, "--execute").stdout.splitlines()[-1] == f"{operator.group}: 1 offset deleted"
    assert operator.offsets() == {0: 6}
    again = operator.run(*delete)
    assert (again.exit_code, f"has no committed offset of {operator.topic}:1" in again.stderr) == (1, True)
    assert operator.json("offsets", "undo", operator.group, "--execute")["executed"]
    assert operator.offsets() == {0: 6, 1: 7}


# ---- a group with a member -------------------------------------------------------------------------------------


def test_a_live_consumer_reloads_the_offsets_of_a_forced_reset_and_of_its_undo(
    operator: Operator, consumer: Consumer
) -> None:
    consume(consumer, 2 * RECORDS)
    committed_by(consumer, operator, {0: RECORDS, 1: RECORDS})
    reset = ("offsets", "reset", operator.group, "--topic", f"{operator.topic}:0", "--to-offset", "4", "--execute")

    refused = operator.run(*reset)
    assert (refused.exit_code, "has 1 member: stop it first, or use --force" in refused.stderr) == (1, True)
    assert operator.offsets() == {0: RECORDS, 1: RECORDS}

    busy = operator.run("offsets", "delete", operator.group, "--topic", operator.topic, "--execute")
    assert (busy.exit_code, f"subscribes to {operator.topic}" in busy.stderr) == (1, True), busy.stderr
    (described,) = operator.json("groups", "describe", operator.group)
    (member,) = described["members"]
    assigned = [{"topicName": operator.topic, "partitions": [0, 1]}]
    assert (member["subscribedTopicNames"], member["assignment"]) == ([operator.topic], {"topicPartitions": assigned})
    shown = [(each["logEndOffset"], each["lag"], each["owner"]["memberId"]) for each in described["partitions"]]
    assert shown == [(RECORDS, 0, member["memberId"])] * 2

    assert operator.json(*reset, "--force", "--reason", "replay")["rejoining"] == 1
    assert operator.offsets() == {0: 4, 1: RECORDS}
    assert consume(consumer, 6) == [(0, offset) for offset in range(4, RECORDS)]
    committed_by(consumer, operator, {0: RECORDS, 1: RECORDS})

    story = operator.json("explain", operator.group)
    causes = [rebalance["causes"][0] for rebalance in story["rebalances"]]
    assert [cause["trigger"] for cause in causes] == ["member joined", "offsets reset by an operator"]
    assert causes[1]["text"].endswith("offsets reset: replay")

    undone = operator.json("offsets", "undo", operator.group, "--execute", "--force")
    (planned,) = undone["offsets"]
    assert (planned["from"], planned["to"], planned["note"]) == (RECORDS, RECORDS, "was 4 after the reset")
    committed_by(consumer, operator, {0: RECORDS, 1: RECORDS})
