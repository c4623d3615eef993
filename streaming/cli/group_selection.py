"""Which groups a command's arguments name, how a shell completes them, and the values that filters of groups have."""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from fnmatch import fnmatchcase
from shlex import quote
from typing import Annotated

import typer

from coordinator_logic.errors import Error
from coordinator_logic.groups import TYPES
from coordinator_logic.records import QUARANTINED
from coordinator_logic.states import State
from streaming.cli.connection import CLIENT_ID, LOG_NOTHING
from streaming.cli.console import REFUSED, USAGE, fail
from streaming.client import CoordinatorClient
from streaming.client.directory import read_directory
from streaming.client.errors import error_of
from streaming.client.topic_consumer import EAGER
from streaming.contract.option_values import one_of
from streaming.contract.topics import TopicNames
from streaming.explain.error_sentences import sentence_of
from streaming.journal.folded_group import UNKNOWN

STATES = (*(state.value for state in State), UNKNOWN)
"""The states of groups. One that the journal no longer knows is only among them at an earlier time."""

TYPE_NAMES = tuple(sorted(TYPES))

COMPLETION_SECONDS = 1.0
"""How long a shell that completes a group id waits for the brokers, and for the directory."""


def completed_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The ids of all groups that begin with what is typed; none, without a word, if the brokers do not answer soon.

    A shell takes them into the command line as they are. So an id is left out that a shell would read as something
    else, or the command as an option.
    """
    return _ids_in_directory(context, incomplete, is_quarantined=False)


def completed_quarantined_ids(context: typer.Context, incomplete: str) -> list[str]:
    """The same for the groups whose stored state cannot be read."""
    return _ids_in_directory(context, incomplete, is_quarantined=True)


def _ids_in_directory(context: typer.Context, incomplete: str, *, is_quarantined: bool) -> list[str]:
    given = context.params
    # The terminal has a half-written command line, into which no message may come.
    logging.disable()
    try:
        pairs = (pair.partition("=") for pair in given["properties"] or ())
        entries = read_directory(
            given["bootstrap_servers"],
            TopicNames(given["topic_prefix"]).directory,
            CLIENT_ID,
            {**EAGER, "log_level": LOG_NOTHING, **{key: value for key, _, value in pairs}},
            COMPLETION_SECONDS,
        )
    except Exception:
        return []
    finally:
        logging.disable(logging.NOTSET)
    ids = [each.group_id for each in entries if not is_quarantined or each.group_state == QUARANTINED]
    return [each for each in ids if each.startswith(incomplete) and quote(each) == each and each[0] != "-"]


GroupPatterns = Annotated[
    list[str],
    typer.Argument(
        metavar="GROUP...", help="Group ids, or patterns such as 'billing-*'.", autocompletion=completed_ids
    ),
]
GroupId = Annotated[str, typer.Argument(metavar="GROUP", help="Group id.", autocompletion=completed_ids)]
QuarantinedGroupId = Annotated[
    str, typer.Argument(metavar="GROUP", help="Group id.", autocompletion=completed_quarantined_ids)
]


def valid_filter(values: Iterable[str] | None, option: str, valid: Collection[str]) -> list[str]:
    """The values of a filter; one that is none of the valid ones, in any case, ends the command."""
    given = list(values or ())
    known = {each.casefold() for each in valid}
    for value in given:
        if value.strip().casefold() not in known:
            fail(f"{option}: {value!r} is not {one_of(valid)}", USAGE)
    return given


def is_pattern(text: str) -> bool:
    """Whether an argument may stand for several groups: ``*``, ``?`` and ``[...]`` are those of a shell."""
    return any(character in text for character in "*?[")


def matches(group_id: str, patterns: Sequence[str]) -> bool:
    """Whether a group is one of those that the arguments name; without arguments, every group is."""
    return not patterns or any(group_id == each or fnmatchcase(group_id, each) for each in patterns)


def named_groups(arguments: Sequence[str], known: Callable[[], Collection[str]]) -> list[str]:
    """The group ids that arguments name, each once: an id as it is, and a pattern as all ids that match.

    known: the ids of all groups, asked for only if there is a pattern. A pattern that is the id of a group is that
    group; one that matches none ends the command.
    """
    if not any(map(is_pattern, arguments)):
        return list(dict.fromkeys(arguments))
    all_ids = known()
    found: dict[str, None] = {}
    for argument in arguments:
        if argument in all_ids or not is_pattern(argument):
            found[argument] = None
            continue
        matching = [group_id for group_id in all_ids if fnmatchcase(group_id, argument)]
        if not matching:
            fail(f"no group matches {argument!r}", REFUSED)
        found |= dict.fromkeys(matching)
    return list(found)


def known_groups(client: CoordinatorClient) -> Callable[[], list[str]]:
    """Lists the ids of all groups."""
    return lambda: [group.group_id for group in client.list_groups().groups]


def exists(client: CoordinatorClient, group: str) -> bool:
    """Whether the coordinator has a group."""
    (described,) = client.describe_any([group])
    return error_of(described.error_code) is not Error.GROUP_ID_NOT_FOUND


def require_group(client: CoordinatorClient, group: str) -> None:
    """End the command if the coordinator has no such group."""
    if not exists(client, group):
        fail(sentence_of(Error.GROUP_ID_NOT_FOUND, group), REFUSED)
