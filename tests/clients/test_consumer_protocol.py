"""Members of the consumer group protocol (KIP-848, ``group.protocol=consumer``), alone and with classic ones."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.clients.conftest import NewGroup, NewProcess
from tests.clients.group import WatchedGroup
from tests.clients.producing import producing
from tests.clients.programs.java import tool
from tests.clients.programs.libraries import CLASSIC, CONSUMER, Library, member_command
from tests.clients.system import CONSUMER_SESSION_MS, System
from tests.clients.test_console_tools import groups, records, rows
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS

PARTITIONS, GROWN = 4, 6
RECORDS = 10
TAKEOVER_SECONDS = CONSUMER_SESSION_MS / 1000 + LIMIT_SECONDS
LIBRARIES = (Library.JAVA, Library.LIBRDKAFKA, Library.NEWEST_LIBRDKAFKA)


@pytest.fixture(scope="module")
def scenarios(system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Library, Future[None]]]:
    """The scenario of each library. They run at the same time, because they mostly wait."""
    folder = tmp_path_factory.mktemp("consumer-protocol")
    watched = {library: system.new_group(folder, PARTITIONS, protocol=CONSUMER) for library in LIBRARIES}
    with ThreadPoolExecutor(len(watched)) as pool:
        try:
            yield {library: pool.submit(run_scenario, system, group, library) for library, group in watched.items()}
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for group in watched.values():
                group.kill_all()


@pytest.mark.parametrize("library", LIBRARIES, ids=str)
def test_members_join_leave_and_are_killed_and_their_topic_grows(
    scenarios: dict[Library, Future[None]], library: Library
) -> None:
    scenarios[library].result()


def run_scenario(system: System, group: WatchedGroup, library: Library) -> None:
    """Members join; a static one restarts; the topic grows; one leaves; one is killed with ``kill -9``."""
    partitions = range(PARTITIONS)
    system.produce(group.topic, partitions, RECORDS)
    # One after the other: docs/clients.md has librdkafka's issue with members that join at the same moment.
    group.start("a", library)
    group.await_shared_by("a")
    group.start("static", library, instance_id="till-1")
    group.await_shared_by("a", "static")
    group.await_consumed(dict.fromkeys(partitions, RECORDS))

    before = group.members["a"].assignments, group.members["a"].revocations
    group.stop("static")
    group.start_again("static")
    group.await_shared_by("a", "static")
    assert (group.members["a"].assignments, group.members["a"].revocations) == before

    system.grow_topic(group.topic, GROWN)
    group.partitions, partitions = GROWN, range(GROWN)
    group.await_shared_by("a", "static")
    group.start("b", library)
    group.await_shared_by("a", "static", "b")
    group.stop("b")
    group.await_shared_by("a", "static")
    group.start("c", library)
    group.await_shared_by("a", "static", "c")
    group.kill("a")
    group.await_shared_by("static", "c", seconds=TAKEOVER_SECONDS)

    system.produce(group.topic, partitions, RECORDS)
    ends = {partition: (2 if partition < PARTITIONS else 1) * RECORDS for partition in partitions}
    group.await_consumed(ends)
    group.stop("static", "c")
    group.check_everything_consumed(ends)
    group.check_ownership()
    assert system.committed(group.group_id, group.topic) == ends


def test_a_classic_group_is_rolled_to_the_newer_protocol_and_back_under_load(
    system: System, new_group: NewGroup
) -> None:
    group = new_group(PARTITIONS)
    with producing(system.bootstrap_servers, [group]):
        group.start("java", Library.JAVA)
        group.start("librdkafka", Library.LIBRDKAFKA)
        group.await_shared_by("java", "librdkafka")
        group.await_consumption("java", "librdkafka")

        # Upgraded by the first newer member, which comes and the classic ones stay; then they go.
        group.start("newer-librdkafka", Library.NEWEST_LIBRDKAFKA, protocol=CONSUMER)
        group.await_shared_by("java", "librdkafka", "newer-librdkafka")
        group.start("newer-java", Library.JAVA, protocol=CONSUMER)
        group.await_shared_by("java", "librdkafka", "newer-librdkafka", "newer-java")
        group.stop("java")
        group.await_shared_by("librdkafka", "newer-librdkafka", "newer-java")
        group.stop("librdkafka")
        group.await_shared_by("newer-librdkafka", "newer-java")
        group.await_consumption("newer-librdkafka", "newer-java")

        # Downgraded when the last newer member leaves a classic one behind.
        group.start("classic-again", Library.LIBRDKAFKA, protocol=CLASSIC)
        group.await_shared_by("newer-librdkafka", "newer-java", "classic-again")
        group.stop("newer-java")
        group.await_shared_by("newer-librdkafka", "classic-again")
        group.stop("newer-librdkafka")
        group.await_shared_by("classic-again")
        group.await_consumption("classic-again")
    ends = system.end_offsets(group.topic, PARTITIONS)
    group.await_consumed(ends)
    group.stop("classic-again")
    group.check_everything_consumed(ends)
    group.check_ownership()
    assert system.committed(group.group_id, group.topic) == ends


def test_commits_in_older_epochs_are_accepted_while_others_come_and_go(system: System, new_group: NewGroup) -> None:
    group = new_group(PARTITIONS, protocol=CONSUMER)
    with producing(system.bootstrap_servers, [group]):
        group.start("a", Library.NEWEST_LIBRDKAFKA)
        group.await_shared_by("a")
        group.start("b", Library.NEWEST_LIBRDKAFKA)
        group.await_shared_by("a", "b")
        # Each of these begins a new epoch, of which a member hears after some of its next commits (KIP-1251).
        for guest in ("c", "d", "e"):
            group.start(guest, Library.NEWEST_LIBRDKAFKA)
            group.await_shared_by("a", "b", guest)
            group.await_consumption("a", "b", guest)
            group.stop(guest)
            group.await_shared_by("a", "b")
    ends = system.end_offsets(group.topic, PARTITIONS)
    group.await_consumed(ends)
    group.stop("a", "b")
    group.check_everything_consumed(ends)
    group.check_ownership()
    assert group.refused_commits == []
    assert system.committed(group.group_id, group.topic) == ends


def test_the_console_tools_read_describe_reset_and_delete_a_group(system: System, new_process: NewProcess) -> None:
    topic, group = system.new_topic(PARTITIONS), unique("console-consumer-protocol")
    system.produce(topic, range(PARTITIONS), RECORDS)
    where = ("--bootstrap-server", system.bootstrap_servers, "--topic", topic, "--group", group)
    chosen = ("--consumer-property", f"group.protocol={CONSUMER}", "--from-beginning")
    reader = new_process("console consumer", tool("kafka-console-consumer", *where, *chosen))
    reader.await_line("all records", lambda _: len(records(reader)) >= PARTITIONS * RECORDS)

    (member,) = rows(groups(system, "--describe", "--group", group, "--members", "--verbose"), group)
    assert any("0,1,2,3" in cell for cell in member)
    state = rows(groups(system, "--describe", "--group", group, "--state"), group)
    assert {"uniform", "Stable", "1"} <= set(state[0])
    assert rows(groups(system, "--list", "--type", "consumer"), group) == [[group, "Consumer"]]
    assert rows(groups(system, "--list", "--type", "classic"), group) == []
    assert reader.stop() in (0, 130, 143)
    described = sorted(rows(groups(system, "--describe", "--group", group), group))
    assert [row[1:4] for row in described] == [[topic, str(index), str(RECORDS)] for index in range(PARTITIONS)]
    reset = ("--group", group, "--topic", topic, "--reset-offsets", "--to-offset", "2", "--execute")
    planned = [[group, topic, str(index), "2"] for index in range(PARTITIONS)]
    assert sorted(rows(groups(system, *reset), group)) == planned
    assert set(system.committed(group, topic).values()) == {2}
    assert f"Deletion of requested consumer groups ('{group}') was successful." in groups(
        system, "--delete", "--group", group
    )


@pytest.mark.parametrize("library", [Library.LIBRDKAFKA, Library.NEWEST_LIBRDKAFKA], ids=str)
def test_a_pattern_matches_topics_that_are_created_later(
    system: System, new_process: NewProcess, tmp_path: Path, library: Library
) -> None:
    prefix = unique("pattern")
    create_topic(system.bootstrap_servers, f"{prefix}-1", 1)
    options = {
        "bootstrap-server": system.bootstrap_servers,
        "topic": f"^{prefix}-.*",
        "group-id": unique("pattern-group"),
    }
    member = new_process("member", member_command(library, tmp_path, None, options, protocol=CONSUMER))

    def await_assigned(topic: str) -> None:
        member.await_line(f"{topic} as assigned", lambda line: "partitions_assigned" in line and topic in line)

    await_assigned(f"{prefix}-1")
    create_topic(system.bootstrap_servers, f"another-{prefix}-3", 1)
    create_topic(system.bootstrap_servers, f"{prefix}-2", 1)
    await_assigned(f"{prefix}-2")
    assert member.stop() == 0
    assert not any("another" in line for line in member.output)
