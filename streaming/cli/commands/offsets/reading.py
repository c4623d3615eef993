"""What the commands about offsets read: the journal, the committed offsets, and the logs of the partitions."""

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from confluent_kafka.admin import OffsetSpec

from coordinator_logic.embedded_protocols import TopicPartition
from coordinator_logic.messages import GroupToFetch
from coordinator_logic.records import Cause, JournalEntry, RequestCause
from streaming.cli.commands.groups import exit_on_errors
from streaming.cli.connection import CLIENT_ID, Connection
from streaming.cli.console import REFUSED, USAGE, err, fail
from streaming.cli.group_selection import require_group
from streaming.client import CoordinatorClient
from streaming.contract.output.text import counted
from streaming.contract.rights.refusals import not_allowed
from streaming.contract.rights.table import Operation
from streaming.explain.live.partitions import admin_of, cluster_topics, read_logs
from streaming.explain.offsets.changes import OffsetChange, changes_of, matters_for_offsets
from streaming.explain.offsets.log_positions import listed_offsets
from streaming.explain.offsets.plan import Log, Position, is_of_namesake, position, positions_of
from streaming.explain.time_travel.group_history import GroupAt, group_at
from streaming.journal.folded_group import Known
from streaming.journal.group_journal import GroupJournal
from streaming.journal.reader import JournalReader

_TOPIC_PARTITIONS = re.compile(r"(?P<topic>[^:]+)(:(?P<numbers>\d+(-\d+)?(,\d+(-\d+)?)*))?")
_PAUSE_SECONDS = 0.3

Selection = tuple[str, list[int] | None]
"""A topic and its chosen partitions; None for all of them."""

Positions = dict[TopicPartition, Position]
Logs = dict[TopicPartition, Log]


def journal_of(connection: Connection, group: str) -> Iterable[JournalEntry]:
    """All entries of the journal about a group."""
    with JournalReader(connection.reader_config, connection.topics.journal, connection.timeout, CLIENT_ID) as reader:
        yield from GroupJournal(reader, group).entries()


def changes_in_journal(connection: Connection, group: str) -> list[OffsetChange]:
    """All changes of a group's offsets that the journal has."""
    return list(changes_of(filter(matters_for_offsets, journal_of(connection, group))))


def offsets_as_of(
    connection: Connection, group: str, times: Sequence[int], *, must_exist: bool = True
) -> list[tuple[Positions, bool]]:
    """A group's committed offsets at times (ms since the epoch), each with whether it had no others.

    ``must_exist``: a group that did not exist at a time ends the command.
    """
    entries = list(journal_of(connection, group))
    return [_known_offsets(connection, group, group_at(entries, time), must_exist=must_exist) for time in times]


def _known_offsets(connection: Connection, group: str, found: GroupAt, *, must_exist: bool) -> tuple[Positions, bool]:
    if found.group is None:
        if must_exist:
            fail(f"group {group} did not exist at that time, according to {connection.topics.journal}", REFUSED)
        return {}, True
    offsets = {
        TopicPartition(topic, number): position(committed)
        for topic, number, committed in found.group.committed_offsets()
    }
    return offsets, found.known is Known.ALL


def changes_until_now(connection: Connection, client: CoordinatorClient, group: str) -> list[OffsetChange]:
    """All changes of a group's offsets, once the journal has those that the coordinator has made.

    A batch writes its answers and its journal in any order. So the journal is read again until it tells the offsets
    that the group has, or a request that was appended later: the offsets of a busy group are never those of its
    journal. That it does neither within the timeout ends the command.
    """
    deadline = time.monotonic() + connection.timeout
    later = _requests_end(connection, client, group)
    while True:
        now = fetched_offsets(client, group)
        changes = changes_in_journal(connection, group)
        told = {change.partition: change.after for change in changes}
        if all((None if then is None else position(then)) == now.get(each) for each, then in told.items()):
            return changes
        if any(_is_since(change.cause, later) for change in changes):
            return changes
        if time.monotonic() >= deadline:
            topic = connection.topics.journal
            fail(f"{group}: commits come faster than {topic} can be read, or it is incomplete; try again", REFUSED)
        time.sleep(_PAUSE_SECONDS)


def _requests_end(connection: Connection, client: CoordinatorClient, group: str) -> tuple[int, int] | None:
    """The partition of the request topic that a group has, and its end; None if it cannot be read."""
    topic = connection.topics.requests
    partition = client.find_coordinator(group).node_id
    latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
    ends = listed_offsets(admin_of(client), [(topic, partition)], latest, connection.timeout)
    end = ends.get(TopicPartition(topic, partition))
    return None if end is None else (partition, end)


def _is_since(cause: Cause, place: tuple[int, int] | None) -> bool:
    """Whether a request is in the log at this place or later."""
    if place is None or not isinstance(cause, RequestCause):
        return False
    return cause.partition == place[0] and cause.offset >= place[1]


def fetched_offsets(client: CoordinatorClient, group: str) -> Positions:
    """The offsets that a group has committed."""
    fetched = client.offset_fetch([GroupToFetch(group)]).groups[0]
    exit_on_errors({group: fetched.error_code})
    return positions_of(fetched)


def offsets_of_existing(client: CoordinatorClient, group: str) -> Positions:
    """The offsets that a group has committed; a group that does not exist ends the command."""
    found = fetched_offsets(client, group)
    if not found:
        require_group(client, group)
    return found


def logs(connection: Connection, client: CoordinatorClient, partitions: Collection[TopicPartition]) -> Logs:
    """The logs of those partitions that exist."""
    return dict(read_logs(client, partitions, connection.timeout).logs)


def required_logs(connection: Connection, client: CoordinatorClient, partitions: Collection[TopicPartition]) -> Logs:
    """The logs of partitions; one that does not exist ends the command."""
    found = read_logs(client, partitions, connection.timeout)
    if missing := sorted(set(partitions) - found.logs.keys()):
        fail("; ".join(dict.fromkeys(_why_missing(each, found.counts) for each in missing)), REFUSED)
    return dict(found.logs)


def _why_missing(partition: TopicPartition, counts: Mapping[str, int]) -> str:
    topic, number = partition
    if topic not in counts:
        return f"topic {topic} does not exist, or {not_allowed(Operation.DESCRIBE, topic)}"
    if number >= counts[topic]:
        return f"{topic} has {counted(counts[topic], 'partition')}: there is no {topic}:{number}"
    return f"the end of {topic}:{number} cannot be read: its leader does not answer"


def of_present_topics(positions: Positions, known: Logs) -> Positions:
    """The offsets without those of deleted topics whose names other topics have now; says how many it leaves out."""
    present = {
        partition: found for partition, found in positions.items() if not is_of_namesake(found, known.get(partition))
    }
    if left_out := len(positions) - len(present):
        left = counted(left_out, "offset")
        err.line(f"{left} left out: the topic was deleted, and another one has its name now")
    return present


def selected_partitions(
    connection: Connection,
    client: CoordinatorClient,
    selections: Sequence[Selection],
    committed: Callable[[], Collection[TopicPartition]],
    *,
    all_topics: bool,
) -> set[TopicPartition]:
    """The partitions that ``--topic`` and ``--all-topics`` select; a topic alone stands for all its partitions."""
    if all_topics == bool(selections):
        fail("give --topic or --all-topics", USAGE)
    if all_topics:
        return set(committed())
    whole = {topic for topic, numbers in selections if numbers is None}
    described = cluster_topics(client).describe(whole, connection.timeout, with_racks=False)
    counts = {name: metadata.partitions for name, metadata in described.items()}
    if missing := sorted(whole - counts.keys()):
        fail("; ".join(_why_missing(TopicPartition(name, 0), counts) for name in missing), REFUSED)
    return {
        TopicPartition(topic, number)
        for topic, numbers in selections
        for number in (range(counts[topic]) if numbers is None else numbers)
    }


def selected(text: str, option: str) -> Selection:
    """Parse ``TOPIC[:PARTITIONS]``, such as ``orders``, ``orders:3`` or ``orders:0,2-5``; None for all partitions."""
    parsed = _TOPIC_PARTITIONS.fullmatch(text)
    if parsed is None:
        fail(f"{option} {text!r} is not TOPIC or TOPIC:PARTITIONS, such as orders:0,2-5", USAGE)
    if parsed["numbers"] is None:
        return parsed["topic"], None
    numbers: list[int] = []
    for piece in parsed["numbers"].split(","):
        first, _, last = piece.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return parsed["topic"], numbers
