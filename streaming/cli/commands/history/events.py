"""``group-coordinator events``: the rebalances of all groups."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from coordinator_logic.records import JournalEntry
from streaming.cli.boundary import errors_as_lines
from streaming.cli.connection import CLIENT_ID, Connection, connected
from streaming.cli.console import Since, progress, time_given
from streaming.cli.help_output import flag
from streaming.contract.output.plain import print_json, print_plain
from streaming.explain.publishing.publication import publish_rebalances
from streaming.explain.story.of_all_groups import GroupRebalance, RebalancesOfAllGroups
from streaming.explain.story.words import event_line
from streaming.journal.entries import story_entry
from streaming.journal.reader import JournalReader, ReadingProgress

Follow = Annotated[bool, flag("--follow", "Continue, and print each further rebalance when it ends, until Ctrl-C.")]


_note = progress(as_json=True)

Publish = Annotated[
    bool, flag("--publish", "Append each rebalance to the topic group-rebalances, once, and print only those.")
]


@connected
def events(connection: Connection, since: Since = None, follow: Follow = False, publish: Publish = False) -> None:
    """Print the rebalances of all groups, one line for each, in the order in which they ended.

    A line has the time at which the rebalance began, the group, the cause, the generation or epoch that it led to, how
    long it took, and how many partitions moved. A rebalance that goes on is printed when it ends. With --publish, a
    later start continues where this one ends; the first one with --follow begins with what ends from then on, unless
    --since says otherwise.
    """
    beginning = 0 if since is None else time_given(since, "--since")
    config, names, timeout = connection.reader_config, connection.topics, connection.timeout
    with (
        errors_as_lines(),
        connection.errors_as_lines(),
        JournalReader(config, names.journal, timeout, CLIENT_ID, story_entry) as reader,
    ):
        if publish:
            entries, begins_now = _entries(reader, follow), follow and since is None
            for record in publish_rebalances(
                config,
                names,
                timeout,
                reader,
                entries,
                _note,
                client_id=CLIENT_ID,
                begins_now=begins_now,
                since=beginning,
            ):
                _print(GroupRebalance(record.group_id, record), connection.as_json)
            return
        for one in _told(reader, beginning, follow):
            _print(one, connection.as_json)


def _told(reader: JournalReader, since: int, follow: bool) -> Iterator[GroupRebalance]:
    told = RebalancesOfAllGroups(since)
    ended = [one for entry in _entries(reader, follow=False) if entry is not None for one in told.add(entry)]
    # The partitions of the journal are read side by side.
    yield from sorted(ended, key=lambda each: each.rebalance.ended or 0)
    for entry in reader.further() if follow else ():
        if entry is not None:
            yield from told.add(entry)


def _entries(reader: JournalReader, follow: bool) -> Iterator[JournalEntry | None]:
    """The entries until now, then, if asked for, those that come."""
    report = ReadingProgress(reader.count(reader.partitions), _note)
    yield from reader.entries(on_read=report.add)
    if follow:
        yield from reader.further()


def _print(one: GroupRebalance, as_json: bool) -> None:
    if as_json:
        fields = {"groupId": one.group_id, **msgspec.to_builtins(one.rebalance, str_keys=True)}
        print_json(fields)
    else:
        print_plain(event_line(one.group_id, one.rebalance))
