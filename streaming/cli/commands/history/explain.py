"""``group-coordinator explain``: why a group rebalanced."""

from typing import Annotated

import typer

from streaming.cli.connection import CLIENT_ID, Connection, connected
from streaming.cli.console import REFUSED, fail, out, print_json, time_given
from streaming.cli.help_output import option
from streaming.contract.topics import TopicNames
from streaming.explain.story.telling import StoryTeller
from streaming.explain.story.words import lines_of
from streaming.job.backups.journal_reader import journal_entries

Since = Annotated[
    str | None,
    option("--since", metavar="TIME", text="Only what the journal got since then: a time, or an age such as 2h."),
]
Until = Annotated[str | None, option("--until", metavar="TIME", text="Only what happened until then.")]


@connected
def explain(
    connection: Connection,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Group id.")],
    since: Since = None,
    until: Until = None,
) -> None:
    """Tell why a group rebalanced: each rebalance with its cause and the journal's evidence, and the state now.

    Where two causes are possible, both are named. With --since, members that joined before are known by their ids only.
    """
    beginning = 0 if since is None else time_given(since, "--since")
    end = None if until is None else time_given(until, "--until")
    config = {**connection.config, "bootstrap.servers": connection.bootstrap_servers}
    topic = TopicNames(connection.topic_prefix).journal
    teller, has_entries = StoryTeller(group), False
    with connection.errors_as_lines():
        for entry in journal_entries(config, topic, connection.timeout, beginning, CLIENT_ID, key=group.encode()):
            if entry is not None and (end is None or entry.timestamp <= end):
                has_entries = True
                teller.add(entry)
    if not has_entries:
        fail(f"{topic} has no entries of group {group} in this time", REFUSED)
    story = teller.story()
    if connection.as_json:
        print_json(story)
        return
    for line in lines_of(story):
        out.print(line, markup=False, highlight=False, soft_wrap=True)
