"""How long ``explain`` takes with a journal of a million records: ``python -m tests.bench.journal.explain``.

The journal is written as a job would have, with the partitioning of Kafka's Java producer: once of a thousand groups,
of which one is explained, and once of a single group. Eight in ten entries are commits.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Annotated

import msgspec
import typer

from coordinator_logic.messages import LeaveGroupRequest, LeavingMember
from coordinator_logic.records import JournalEntry
from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from streaming.explain.story.telling import StoryTeller
from streaming.job.topics.creation import ensure_topics
from streaming.job.topics.layout import TopicLayout
from streaming.journal.fold import GroupFold
from tests.bench.journal.appending import append_all
from tests.logic.driver import Driven, joined

GROUPS = 1_000
COMMITS = 60
"""In each round, beside the entries of a member that joins and leaves again."""
PRODUCER: dict[str, str | int | bool] = {
    "partitioner": "murmur2_random",
    # Otherwise a request that is sent again may change the order.
    "enable.idempotence": True,
}

Entry = tuple[str, bytes]
"""A group id and the value of a record of the journal."""


class Timed(msgspec.Struct, frozen=True):
    """Seconds until the first line and until the end, seconds of CPU time, and how many rebalances were told."""

    journal: str
    records: int
    first_line: float
    end: float
    cpu: float
    rebalances: int


def main(records: Annotated[int, typer.Option(min=GROUPS)] = 1_000_000) -> None:
    """Measure both journals, and print a line of JSON for each."""
    one = list(islice(entries_of("group-0"), records // GROUPS))
    journals: dict[str, Iterable[Entry]] = {"groups.": _of_groups(one), "group.": _of_one_group(records)}
    expected = {"groups.": _rebalances(one), "group.": _rebalances(islice(entries_of("group-0"), records))}
    with EmbeddedBroker() as broker:
        for prefix, journal in journals.items():
            topics = TopicNames(prefix)
            ensure_topics({"bootstrap.servers": broker.bootstrap_servers}, topics, TopicLayout(None, None, None))
            records_of = ((topics.journal, group_id.encode(), value) for group_id, value in journal)
            append_all(broker.bootstrap_servers, records_of, PRODUCER)
            timed = _explained(broker.bootstrap_servers, prefix, records)
            assert timed.rebalances == expected[prefix], "the whole journal was not told"
            print(msgspec.json.encode(timed).decode(), flush=True)


def entries_of(group_id: str) -> Iterator[JournalEntry]:
    """An endless journal of a group: commits, and a member that joins and leaves in each round."""
    driven = Driven(group_id=group_id)
    first = driven.stable_group(1)[0]
    driven.commit(first, {("orders", partition): 1 for partition in range(3)})
    begin = len(driven.journal)
    newcomer = driven.join_new("flapping")
    first, second = joined(driven.rejoin(first)), joined(newcomer)
    driven.sync_all([first, second])
    driven.send(
        "LeaveGroup",
        LeaveGroupRequest(group_id, members=[LeavingMember(second.member_id)]),
        version=5,
        client="flapping",
    )
    driven.sync_all([joined(driven.rejoin(first))])
    head, one_round = driven.journal[:begin], driven.journal[begin:]
    round_with_commits = [head[-1]] * COMMITS + one_round
    yield from head
    sequence, timestamp = head[-1].sequence, head[-1].timestamp
    while True:
        for entry in round_with_commits:
            sequence, timestamp = sequence + 1, timestamp + 1_000
            yield msgspec.structs.replace(entry, sequence=sequence, timestamp=timestamp)


def _of_groups(one: list[JournalEntry]) -> Iterator[Entry]:
    values = [msgspec.json.encode(entry) for entry in one]
    for value in values:
        for number in range(GROUPS):
            group_id = f"group-{number}"
            yield group_id, value.replace(b'"groupId":"group-0"', f'"groupId":"{group_id}"'.encode(), 1)


def _of_one_group(records: int) -> Iterator[Entry]:
    for entry in islice(entries_of("group-0"), records):
        yield "group-0", msgspec.json.encode(entry)


def _explained(bootstrap_servers: str, prefix: str, records: int) -> Timed:
    command = [sys.executable, "-m", "streaming.cli", "explain", "group-0", "-b", bootstrap_servers]
    begun, used = time.monotonic(), os.times()
    with subprocess.Popen(
        [*command, "--topic-prefix", prefix], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        lines = [(time.monotonic() - begun, line) for line in process.stdout]
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    now = os.times()
    cpu = now.children_user + now.children_system - used.children_user - used.children_system
    told = sum(line.startswith("  because: ") for _, line in lines)
    return Timed(prefix, records, round(lines[0][0], 2), round(lines[-1][0], 2), round(cpu, 2), told)


def _rebalances(entries: Iterable[JournalEntry]) -> int:
    teller = StoryTeller("group-0")
    fold = GroupFold(teller)
    for entry in entries:
        fold.add(entry)
    return len(teller.rebalances)


if __name__ == "__main__":
    typer.run(main)
