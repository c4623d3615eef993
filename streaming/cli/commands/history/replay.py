"""``group-coordinator replay``: run a group's requests again, as they were or with other settings."""

import time
from pathlib import Path
from typing import Annotated

import msgspec

from coordinator_logic.config import CoordinatorConfig
from streaming.cli.boundary import errors_as_lines
from streaming.cli.connection import Connection, connected
from streaming.cli.console import (
    REFUSED,
    duration_given,
    fail,
    key_values,
    out,
    print_json,
    require,
)
from streaming.cli.group_selection import GroupId
from streaming.cli.help_output import flag, option
from streaming.cli.usage import file_to_write, taking
from streaming.client import CoordinatorError
from streaming.contract.errors import BadOptions
from streaming.contract.option_values import KeyAndValue, converted
from streaming.explain.error_sentences import sentence_of_failure

CASE_PANEL, CHANGES_PANEL = "Case", "What if"


Since = Annotated[
    str | None, option(metavar="AGE", text="Show what happened since then, for example 2h.", panel=CASE_PANEL)
]
CaseFile = Annotated[
    Path | None,
    option(
        metavar="FILE",
        text="Write the group's requests to a case file.",
        panel=CASE_PANEL,
        callback=file_to_write,
    ),
]
Anonymise = Annotated[bool, flag("--anonymise", "Replace the names of members and hosts in the case file.", CASE_PANEL)]
ChangedOptions = Annotated[
    list[str] | None,
    option(
        "--set",
        metavar="KEY=VALUE",
        text="Replay with this protocol option, for example group.initial.rebalance.delay.ms=10000. Repeatable.",
        panel=CHANGES_PANEL,
        callback=taking(KeyAndValue),
    ),
]
FormerOptions = Annotated[
    list[str] | None,
    option(
        "--was",
        metavar="KEY=VALUE",
        text="A protocol option that the job ran with, where it was not the default. Repeatable.",
        panel=CASE_PANEL,
        callback=taking(KeyAndValue),
    ),
]
Static = Annotated[bool, flag("--static", "Replay with static members.", CHANGES_PANEL)]
Session = Annotated[
    str | None,
    option(metavar="TIME", text="Session timeout of all members in the replay, such as 60s.", panel=CHANGES_PANEL),
]


@connected
def replay(
    connection: Connection,
    group: GroupId,
    since: Since = None,
    case: CaseFile = None,
    anonymise: Anonymise = False,
    settings: ChangedOptions = None,
    was: FormerOptions = None,
    static: Static = False,
    session: Session = None,
) -> None:
    """Run a group's requests through the coordinator's logic again, and show each decision.

    With other settings, what happened and what would have happened are shown side by side.
    """
    require("replay", "job")
    from streaming.explain.replay.case import Case, anonymised, save_case
    from streaming.explain.replay.report import as_data, figure_rows, timeline_rows
    from streaming.explain.replay.request_log import requests_of
    from streaming.explain.replay.what_if import Changes, lived, what_if

    beginning, session_ms = _times(since, session)
    with errors_as_lines():
        topic = connection.topics.requests
        config_then = _with_settings(CoordinatorConfig(requests_topic=topic), "--was", was)
        config_now = _with_settings(config_then, "--set", settings)
    try:
        requests = requests_of(connection.bootstrap_servers, connection.config, topic, group, connection.timeout)
    except CoordinatorError as error:
        fail(sentence_of_failure(error), REFUSED)
    recorded = Case(group, requests, beginning, config_then)
    if case is not None:
        save_case(anonymised(recorded) if anonymise else recorded, case)
    past, other = lived(recorded), None
    if settings or static or session_ms is not None:
        other = what_if(recorded, Changes(config_now, static, session_ms))
    if connection.as_json:
        print_json(as_data(past, other))
    else:
        for first, rows in {"TIME (UTC)": timeline_rows(past, other), "FIGURE": figure_rows(past, other)}.items():
            columns = (first, "AS IT WAS", *(["WHAT IF"] if other else []))
            out.table(columns, [row[: len(columns)] for row in rows])


def _times(since: str | None, session: str | None) -> tuple[int, int | None]:
    """When to begin, ms since the epoch, and the session timeout in ms; ends the command if one is no duration."""
    beginning = 0 if since is None else round(time.time() * 1000) - duration_given(since, "--since")
    return beginning, None if session is None else duration_given(session, "--session")


def _with_settings(config: CoordinatorConfig, option_name: str, pairs: list[str] | None) -> CoordinatorConfig:
    types = {field.encode_name: field.type for field in msgspec.structs.fields(CoordinatorConfig)}
    changed: dict[str, object] = {}
    for key, text in key_values(pairs, option_name).items():
        if key not in types:
            raise BadOptions(f"{option_name}: {key} is not a protocol option")
        try:
            changed[key] = converted(text, types[key])
        except ValueError as error:
            raise BadOptions(f"{option_name} {key}: {error}") from error
    try:
        return msgspec.convert({**msgspec.to_builtins(config), **msgspec.to_builtins(changed)}, CoordinatorConfig)
    except msgspec.ValidationError as error:
        raise BadOptions(f"{option_name}: {error}") from error
