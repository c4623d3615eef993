"""``group-coordinator events``: the rebalances of all groups."""

import json
import sys
from typing import Annotated

import msgspec

from streaming.cli.commands.checkpoint import progress
from streaming.cli.connection import CLIENT_ID, Connection, connected
from streaming.cli.console import time_given
from streaming.cli.help_output import flag, option
from streaming.contract.topics import TopicNames
from streaming.explain.journal.entries import story_entry
from streaming.explain.journal.reading import Progress
from streaming.explain.story.of_all_groups import GroupRebalance, RebalancesOfAllGroups
from streaming.explain.story.printable import printable
from streaming.explain.story.words import event_line
from streaming.job.backups.journal_reader import JournalReader

Since = Annotated[
    str | None,
    option("--since", metavar="TIME", text="Only what the journal got since then: a time, or an age such as 2h."),
]
Follow = Annotated[bool, flag("--follow", "Go on, and tell each further rebalance when it ends, until Ctrl-C.")]


@connected
def events(connection: Connection, since: Since = None, follow: Follow = False) -> None:
    """Tell the rebalances of all groups, one line for each, in the order in which they ended.

    A line has the time at which the rebalance began, the group, the cause, the generation or epoch that it led to, how
    long it took, and how many partitions moved. A rebalance that goes on is told when it ends.
    """
    beginning = 0 if since is None else time_given(since, "--since")
    config = {**connection.config, "bootstrap.servers": connection.bootstrap_servers}
    topic, timeout = TopicNames(connection.topic_prefix).journal, connection.timeout
    told = RebalancesOfAllGroups()
    with connection.errors_as_lines(), JournalReader(config, topic, timeout, CLIENT_ID, story_entry) as reader:
        report = Progress(reader.count(reader.partitions), progress(as_json=True))
        ended = [
            one
            for entry in reader.entries(since=beginning, on_read=report.add)
            if entry is not None
            for one in told.add(entry)
        ]
        # The partitions of the journal are read side by side.
        for one in sorted(ended, key=lambda each: each.rebalance.ended or 0):
            _print(one, connection.as_json)
        for entry in reader.further() if follow else ():
            if entry is not None:
                for one in told.add(entry):
                    _print(one, connection.as_json)


def _print(one: GroupRebalance, as_json: bool) -> None:
    if as_json:
        line = json.dumps({"groupId": one.group_id, **msgspec.to_builtins(one.rebalance)}, ensure_ascii=False)
    else:
        line = printable(event_line(one.group_id, one.rebalance))
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
