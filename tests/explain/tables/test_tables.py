"""The tables of a running coordinator, from its checkpoint, from its journal, and from both."""

import json
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from docs.generate import ROOT
from streaming.client import Consumer, CoordinatorClient
from streaming.contract.errors import CannotRun
from streaming.explain.tables import Sources, Tables, open_tables
from streaming.explain.time_travel.rows import GROUP_TABLES
from tests.cli.test_commands import run_for
from tests.docs.console.lines import lines_to_run, words_of
from tests.support.coordinator_process import CoordinatorProcess, commit_offsets
from tests.support.topics import create_topic
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def coordinator(young_coordinator: CoordinatorProcess) -> CoordinatorProcess:
    """In place of the one that most tests share."""
    return young_coordinator


@pytest.fixture(scope="module")
def tables(coordinator: CoordinatorProcess) -> Iterator[Tables]:
    """The tables of the coordinator."""
    prefix = coordinator.topics.prefix
    with open_tables(coordinator.bootstrap_servers, str(coordinator.checkpoint), topic_prefix=prefix) as opened:
        yield opened


def of_sources(tables: Tables, *, kafka: bool, checkpoint: bool) -> Tables:
    """The same tables, from fewer sources."""
    sources = tables._sources
    fewer = Sources(sources.kafka if kafka else {}, sources.checkpoint if checkpoint else None, topics=sources.topics)
    return Tables(tables._spark, fewer, tables._time)


def rows(tables: Tables, name: str, group: str) -> list[Any]:
    """The present rows of a group in a table, in any order made one."""
    return rows_of(tables, group, name)[name]


def rows_of(tables: Tables, group: str, *names: str) -> dict[str, list[Any]]:
    """The same of several tables, whose groups are computed once."""
    found = {name: tables.table(name).where(f"groupId = '{group}'").toArrow().to_pylist() for name in names}
    tables.close()
    return {name: sorted(of_table, key=str) for name, of_table in found.items()}


def all_rows(tables: Tables, group: str) -> dict[str, list[Any]]:
    """The rows of a group in every table of groups."""
    return rows_of(tables, group, *GROUP_TABLES)


def test_checkpoint_and_journal_have_the_same_rows_as_of_any_time(
    coordinator: CoordinatorProcess, tables: Tables
) -> None:
    group, topic = f"group-{uuid.uuid4().hex[:8]}", f"topic-{uuid.uuid4().hex[:8]}"
    create_topic(coordinator.bootstrap_servers, topic)
    before = datetime.now(UTC)
    with Consumer(coordinator.bootstrap_servers, group, topic_prefix=coordinator.topics.prefix) as consumer:
        consumer.subscribe([topic])
        wait_until(lambda: consumer.poll(0.1) or consumer.assignment, "the member has its partitions")
        during = datetime.now(UTC)
        journal = of_sources(tables, kafka=True, checkpoint=False)
        checkpoint = of_sources(tables, kafka=False, checkpoint=True)
        wait_until(lambda: rows(checkpoint, "assignments", group), "the batch is complete", pause=0.5)
        now = all_rows(tables, group)
        assert [row["state"] for row in now["groups"]] == ["Stable"]
        assert len(now["members"]) == 1
        assert now == all_rows(journal, group) == all_rows(checkpoint, group)
        with CoordinatorClient(coordinator.bootstrap_servers, topic_prefix=coordinator.topics.prefix) as client:
            (described,) = client.describe_groups([group]).groups
        assert [member.member_id for member in described.members] == [row["memberId"] for row in now["members"]]
    commit_offsets(coordinator, group, 42, topic=topic)
    wait_until(lambda: rows(journal, "offsets", group), "the commit is in the journal", pause=0.5)
    assert all_rows(tables.at(during), group) == all_rows(journal.at(during), group) == now
    assert all_rows(tables.at(before), group) == {name: [] for name in GROUP_TABLES}
    committed = tables.sql(f"select topic, partition, offset from offsets where groupId = '{group}'").toArrow()
    assert committed.to_pylist() == [{"topic": topic, "partition": 0, "offset": 42}]


def test_rebalances_are_those_that_events_tells_as_of_any_time(coordinator: CoordinatorProcess, tables: Tables) -> None:
    group, topic = f"group-{uuid.uuid4().hex[:8]}", f"topic-{uuid.uuid4().hex[:8]}"
    create_topic(coordinator.bootstrap_servers, topic)
    with Consumer(coordinator.bootstrap_servers, group, topic_prefix=coordinator.topics.prefix) as consumer:
        consumer.subscribe([topic])
        wait_until(lambda: consumer.poll(0.1) or consumer.assignment, "the member has its partitions")
        wait_until(lambda: rows(tables, "rebalances", group), "the rebalance is in the journal", pause=0.5)
        during = datetime.now(UTC)
    wait_until(lambda: len(rows(tables, "rebalances", group)) == 2, "the member has left", pause=0.5)
    events = [json.loads(line) for line in run_for(coordinator, "events", "--json").stdout.splitlines()]
    told = [(one["causes"][0]["trigger"], one["ended"]) for one in events if one["groupId"] == group]
    query = f"select trigger, unix_millis(ended) ended from rebalances where groupId = '{group}' order by ended"
    found = [(row["trigger"], row["ended"]) for row in tables.sql(query).toArrow().to_pylist()]
    assert found == told
    assert [row["trigger"] for row in rows(tables.at(during), "rebalances", group)] == ["member joined"]


def test_journal_and_requests_are_joined_by_the_place_of_the_request(
    coordinator: CoordinatorProcess, tables: Tables
) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    commit_offsets(coordinator, group, 42)
    query = (
        "select j.change, r.api, get_json_object(r.body, '$.groupId') as body_group from journal j join requests r "
        f"on j.requestPartition = r.partition and j.requestOffset = r.offset where j.groupId = '{group}'"
    )
    found: list[Any] = []

    def is_found() -> bool:
        found[:] = tables.sql(query).toArrow().to_pylist()
        return bool(found)

    wait_until(is_found, "the commit is in the journal", pause=0.5)
    assert {(each["api"], each["body_group"]) for each in found} == {("OffsetCommit", group)}
    assert "OffsetsCommitted" in {each["change"] for each in found}


def test_the_documented_query_finds_the_offsets_that_went_back(coordinator: CoordinatorProcess, tables: Tables) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    for offset in (42, 41, 50):
        commit_offsets(coordinator, group, offset)
    (query,) = re.findall(r"```sql\n(.*?)```", (ROOT / "docs" / "offsets.md").read_text(), re.DOTALL)
    journal = of_sources(tables, kafka=True, checkpoint=False)
    wait_until(lambda: [row["offset"] for row in rows(journal, "offsets", group)] == [50], "the journal", pause=0.5)
    found = [row for row in tables.sql(query).toArrow().to_pylist() if row["groupId"] == group]
    assert [(row["topic"], row["partition"], row["before"], row["offset"]) for row in found] == [("orders", 0, 42, 41)]


def test_a_time_before_the_checkpoint_needs_the_journal(tables: Tables) -> None:
    with pytest.raises(CannotRun, match="that old"):
        of_sources(tables, kafka=False, checkpoint=True).at("3650d").table("groups")


@pytest.mark.parametrize("line", [line for _, line in lines_to_run() if line.startswith("sql ")])
def test_spark_understands_the_queries_of_the_guide(tables: Tables, line: str) -> None:
    tables.sql(words_of(line)[-1]).toArrow()


def test_the_command_prints_rows_as_lines_of_json(coordinator: CoordinatorProcess) -> None:
    group = f"group-{uuid.uuid4().hex[:8]}"
    commit_offsets(coordinator, group, 42)
    query = f"select offset from offsets where groupId = '{group}'"
    shown = run_for(coordinator, "sql", query, "--json")
    assert (shown.returncode, shown.stdout.splitlines()[-1]) == (0, '{"offset":42}'), shown.stderr
