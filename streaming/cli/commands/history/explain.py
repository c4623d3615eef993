"""``group-coordinator explain``: why a group rebalanced."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec

from streaming.cli.connection import CLIENT_ID, Connection, connected
from streaming.cli.console import REFUSED, USAGE, Since, fail, out, print_json, progress, time_given, write_file
from streaming.cli.group_selection import GroupId, require_group
from streaming.cli.help_output import flag, option
from streaming.cli.usage import file_to_write
from streaming.contract.output import plain
from streaming.contract.output.text import counted
from streaming.explain.lag import Lag, read_lag
from streaming.explain.page.lanes import Lanes
from streaming.explain.page.of_group import ToldGroup, page_of_story
from streaming.explain.page.trace import trace_of
from streaming.explain.refusals.reading import KeptRequests, Part, kept_requests
from streaming.explain.story.model import Rebalance, Story
from streaming.explain.story.model import Refused as RefusedRequests
from streaming.explain.story.of_member import concerns, story_of
from streaming.explain.story.telling import StoryTeller
from streaming.explain.story.words import clock, lines_of, rebalance_lines
from streaming.journal.entries import page_entry, story_entry
from streaming.journal.fold import GroupFold
from streaming.journal.group_journal import GroupJournal
from streaming.journal.reader import JournalReader

Until = Annotated[str | None, option("--until", metavar="TIME", text="Only what happened until then.")]
Member = Annotated[
    str | None,
    option("--member", metavar="ID", text="Only what concerns this member id, instance id or client id."),
]
Html = Annotated[
    Path | None,
    option(
        "--html",
        metavar="FILE",
        text="Write the story as a page for a browser, instead of lines.",
        callback=file_to_write,
    ),
]
Trace = Annotated[
    Path | None,
    option(
        "--trace", metavar="FILE", text="Write it as a trace, for Perfetto or chrome://tracing.", callback=file_to_write
    ),
]
WithLag = Annotated[bool, flag("--lag", "With --html: show the lag, too; this asks the brokers.")]
Refused = Annotated[
    bool | None,
    flag("--refused/--no-refused", "Show refused requests; by default if there are few requests to read."),
]
Live = Annotated[bool, flag("--live", "Continue, and print each further rebalance when it ends, until Ctrl-C.")]


@connected
def explain(
    connection: Connection,
    group: GroupId,
    since: Since = None,
    until: Until = None,
    member: Member = None,
    live: Live = False,
    html: Html = None,
    trace: Trace = None,
    lag: WithLag = False,
    refused: Refused = None,
) -> None:
    """Tell why a group rebalanced: each rebalance with its cause and the journal's evidence, and the state now.

    Where two causes are possible, both are named. Of each request that the group refused, it says why; requests are
    kept for a week by default. With --since, the story begins with the state and the members that the group had then.
    With --live and --json, each further rebalance is a line of JSON.
    """
    beginning = 0 if since is None else time_given(since, "--since")
    end = None if until is None else time_given(until, "--until")
    if live and (end is not None or html or trace):
        fail("--live excludes --until, --html and --trace", USAGE)
    if lag and (end is not None or not html):
        fail("--lag needs --html, and excludes --until: the brokers tell where the logs end now", USAGE)
    config, topic = connection.reader_config, connection.topics.journal
    told, timeout, report = ToldGroup(group, beginning, with_lag=lag), connection.timeout, progress(as_json=True)
    teller = told.teller
    fold, decode = (GroupFold(told), told.decode) if html or trace else (GroupFold(teller), story_entry)
    with connection.errors_as_lines(), JournalReader(config, topic, timeout, CLIENT_ID, decode) as reader:
        kept = None
        if refused is not False:
            kept = _kept(connection, reader, group, Part(beginning, end), must_read=refused is True)
        judged = None if kept is None or kept.judge is None else GroupFold(kept.judge)
        journal = GroupJournal(reader, group, report)
        for entry in journal.entries():
            if judged is not None:
                judged.add(entry)
            if end is None or entry.timestamp <= end:
                fold.add(entry)
        refused_requests = None if kept is None else kept.told()
        if refused_requests is not None and refused_requests.refusals and not teller.has_entries:
            told.begin()
        if not (teller.has_entries or live):
            _fail_without_entries(connection, group, teller, beginning, end)
        if html or trace:
            page = partial(_page, read_lag(config, CLIENT_ID, told.committed, timeout))
            _write(_selected(teller, member, refused_requests), told.lanes, {html: page, trace: trace_of})
        elif teller.has_entries:
            _print_story(_selected(teller, member, refused_requests), connection.as_json, live)
        if live:
            _follow(journal, fold, teller, member, connection.as_json)


def _fail_without_entries(
    connection: Connection, group: str, teller: StoryTeller, since: int, until: int | None
) -> NoReturn:
    """End the command: the group does not exist, or the journal has nothing of it in the chosen time."""
    if teller.newest is None:
        with connection.client() as client:
            require_group(client, group)
    times = "".join(f" {word} {clock(time)}" for word, time in (("since", since), ("until", until)) if time)
    newest = "" if teller.newest is None else f": the newest one is of {clock(teller.newest)}"
    fail(f"{connection.topics.journal} has no entries of {group}{times}{newest}", REFUSED)


def _kept(connection: Connection, reader: JournalReader, group: str, part: Part, *, must_read: bool) -> KeptRequests:
    """The group's requests; after this, the reader's entries have what a judge of them needs."""
    config, topic, report = connection.reader_config, connection.topics.requests, progress(as_json=True)
    kept = kept_requests(config, topic, group, connection.timeout, CLIENT_ID, part, must_read=must_read, report=report)
    if kept.judge is not None and reader.decode is story_entry:
        reader.decode = page_entry
    return kept


def _selected(teller: StoryTeller, member: str | None, refused: RefusedRequests | None) -> Story:
    story = msgspec.structs.replace(teller.story(), refused=refused)
    return story if member is None else story_of(story, teller.member_ids(member))


def _page(lag: Lag | None, story: Story, lanes: Lanes) -> bytes:
    return page_of_story(story, lanes, lag).encode()


def _write(story: Story, lanes: Lanes, files: Mapping[Path | None, Callable[[Story, Lanes], bytes]]) -> None:
    for file, made in files.items():
        if file is None:
            continue
        content = made(story, lanes)
        write_file(file, content)
        out.line(
            f"wrote {file}, {counted(len(content), 'byte')}: {counted(len(story.rebalances), 'rebalance')}, "
            f"{counted(len(lanes.lanes), 'member')}"
        )


def _follow(
    journal: GroupJournal, fold: GroupFold[Any], teller: StoryTeller, member: str | None, as_json: bool
) -> None:
    told = sum(rebalance.ended is not None for rebalance in teller.rebalances)
    for entry in journal.further():
        if entry is not None:
            fold.add(entry)
        while told < len(teller.rebalances) and teller.rebalances[told].ended is not None:
            rebalance = teller.rebalances[told]
            told += 1
            if member is None or concerns(rebalance, teller.member_ids(member)):
                _print_rebalance(rebalance, as_json)


def _print_story(story: Story, as_json: bool, in_one_line: bool) -> None:
    if not as_json:
        _print_lines(lines_of(story))
    elif in_one_line:
        plain.print_json(story)
    else:
        print_json(story)


def _print_rebalance(rebalance: Rebalance, as_json: bool) -> None:
    if as_json:
        plain.print_json(rebalance)
    else:
        _print_lines(["", *rebalance_lines(rebalance)])


def _print_lines(lines: Iterable[str]) -> None:
    # Not through rich, which takes seconds for a long story.
    for line in lines:
        plain.print_plain(line)
