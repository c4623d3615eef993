"""What the commands that set offsets share: their options, how a plan is shown, and how it is carried out."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import msgspec
import typer

from coordinator_logic.apis import RESET_OFFSETS
from coordinator_logic.errors import Error
from coordinator_logic.messages import NO_OFFSET, ResetOffsetsRequest, ResetOffsetsResponse
from streaming.cli.connection import Connection, with_options
from streaming.cli.console import REFUSED, err, fail, out, print_json, write_file
from streaming.cli.help_output import flag, option
from streaming.cli.usage import file_to_write
from streaming.client import CoordinatorClient
from streaming.client.errors import error_of
from streaming.contract.output.columns import Column
from streaming.contract.output.text import counted, json_text
from streaming.explain.error_sentences import members_sentence, sentence_of
from streaming.explain.offsets.plan import Plan, differences

RETRY_SECONDS = 0.5

PLAN_COLUMNS = (
    *("TOPIC", "PARTITION", "FROM", "TO"),
    *(Column("REPLAYED", rank=2), Column("SKIPPED", rank=3)),
    "LAG",
    Column("NOTE", rank=1, least=10),
)

EXECUTION_PANEL = "Execution"


@dataclass(frozen=True, kw_only=True)
class Execution:
    """Whether and how to carry a plan out."""

    execute: Annotated[
        bool,
        typer.Option(
            "--execute/--dry-run",
            help="Set the offsets; without it they are only shown.",
            rich_help_panel=EXECUTION_PANEL,
        ),
    ] = False
    force: Annotated[
        bool,
        flag(
            "--force",
            "Also if the group has members: they lose their partitions, join again, and begin at the new offsets.",
            EXECUTION_PANEL,
        ),
    ] = False
    reason: Annotated[str, option(metavar="TEXT", text="Why, for the journal.", panel=EXECUTION_PANEL)] = ""
    overwrite_commits: Annotated[
        bool,
        flag(
            "--overwrite-commits",
            "Also if the group has committed since its offsets were read, or a transaction is open.",
            EXECUTION_PANEL,
        ),
    ] = False
    save_plan: Annotated[
        Path | None,
        option(
            metavar="FILE",
            text="Write the plan to this file, for offsets apply.",
            panel=EXECUTION_PANEL,
            callback=file_to_write,
        ),
    ] = None


setting_offsets = with_options("execution", Execution)
"""Gives a command the options of :class:`Execution` in place of its parameter ``execution``."""


class CommittedMeanwhile(Exception):
    """The group has other offsets than those that a request expects, or an open transaction has some of them."""

    def __init__(self, request: ResetOffsetsRequest, answer: ResetOffsetsResponse) -> None:
        super().__init__(request.group_id)
        self.request = request
        self.answer = answer


Send = Callable[[Connection, CoordinatorClient, ResetOffsetsRequest, Execution], ResetOffsetsResponse]


def carry_out(
    connection: Connection,
    client: CoordinatorClient,
    make_plan: Callable[[], Plan],
    execution: Execution,
    send_request: Send | None = None,
) -> None:
    """Show a plan, save it and carry it out, as far as the options say.

    With --force, the plan is made again from the offsets of that moment while the group, which has members, commits.
    """
    plan, answer = make_plan(), None
    deadline = time.monotonic() + connection.timeout
    _save(plan, execution)
    while execution.execute and answer is None:
        try:
            answer = (send_request or send)(connection, client, plan.request(), execution)
        except CommittedMeanwhile as refused:
            if not execution.force or time.monotonic() >= deadline:
                fail_because_of_commits(refused)
            plan = make_plan()
            _save(plan, execution)
    if connection.as_json:
        print_json(_as_json(plan, answer))
        return
    _print_plan(plan)
    if answer is None:
        deletes_only = all(planned.target is None for planned in plan.offsets)
        what = "deletes" if deletes_only else "sets"
        out.line(f"Nothing was changed: this was a dry run. --execute {what} these offsets.")
    else:
        report(plan.request(), answer)


def _save(plan: Plan, execution: Execution) -> None:
    """Save a plan if the options say so; one that has no offset ends the command."""
    if not plan.offsets:
        fail(f"{plan.group_id}: there is no offset to set", REFUSED)
    if execution.save_plan is not None:
        write_file(execution.save_plan, json_text(plan.request(), indent=2).encode() + b"\n")


def report(request: ResetOffsetsRequest, answer: ResetOffsetsResponse) -> None:
    """Say what a request has changed."""
    offsets = [partition.offset for topic in request.topics for partition in topic.partitions]
    deleted = sum(offset == NO_OFFSET for offset in offsets)
    done = [(len(offsets) - deleted, "set"), (deleted, "deleted")]
    changes = [f"{counted(count, 'offset')} {what}" for count, what in done if count]
    join = "joins" if answer.rejoining == 1 else "join"
    members = [f"{counted(answer.rejoining, 'member')} {join} again"] if answer.rejoining else []
    out.line(f"{request.group_id}: {'; '.join([', '.join(changes), *members])}")


def send(
    connection: Connection, client: CoordinatorClient, request: ResetOffsetsRequest, execution: Execution
) -> ResetOffsetsResponse:
    """Send the request, again while the group is in a rebalance; a refusal ends the command.

    Raises CommittedMeanwhile.
    """
    request = msgspec.structs.replace(request, force=execution.force, reason=execution.reason)
    if execution.overwrite_commits:
        request = _without_expectations(request)
    deadline = time.monotonic() + connection.timeout
    while True:
        answer = client.ask(RESET_OFFSETS, request.group_id, request).result()
        body = answer.body
        if body is None or not body.error_code:
            return answer.unwrap()
        error = error_of(body.error_code)
        if error in (Error.INVALID_UPDATE_VERSION, Error.UNSTABLE_OFFSET_COMMIT):
            raise CommittedMeanwhile(request, body)
        if error is Error.NON_EMPTY_GROUP:
            (described,) = client.describe_any([request.group_id])
            why = members_sentence(request.group_id, len(described.members))
            fail(f"{why}, or use --force, which makes them join again", REFUSED)
        if error is not Error.REBALANCE_IN_PROGRESS or time.monotonic() >= deadline:
            reason = f" ({body.error_message})" if error is Error.INVALID_REQUEST and body.error_message else ""
            fail(sentence_of(error, request.group_id) + reason, REFUSED)
        time.sleep(RETRY_SECONDS)


def fail_because_of_commits(refused: CommittedMeanwhile) -> NoReturn:
    """End the command and say which offsets are no longer those of the plan."""
    for partition, expected, committed in differences(refused.request, refused.answer):
        what = f"read as {_number(expected)}, is now {_number(committed)}"
        if expected == committed:
            what = "has an offset in an open transaction"
        err.line(f"{partition.topic}:{partition.partition} {what}")
    fail(
        f"{refused.request.group_id}: nothing was changed, because the group has committed in the meantime; "
        "look at the plan again, or use --overwrite-commits",
        REFUSED,
    )


def _without_expectations(request: ResetOffsetsRequest) -> ResetOffsetsRequest:
    topics = [
        msgspec.structs.replace(
            topic,
            partitions=[msgspec.structs.replace(each, expected_offset=None) for each in topic.partitions],
        )
        for topic in request.topics
    ]
    return msgspec.structs.replace(request, topics=topics, lists_all=False)


def _print_plan(plan: Plan) -> None:
    rows = []
    for planned in plan.offsets:
        target = "deleted" if planned.target is None else str(planned.target.offset)
        figures = map(_number, (planned.replayed, planned.skipped, planned.lag))
        rows.append((planned.topic, str(planned.partition), _number(planned.current), target, *figures, planned.note))
    out.table(PLAN_COLUMNS, rows)


def _number(figure: int | None) -> str:
    return "-" if figure is None or figure < 0 else str(figure)


def _as_json(plan: Plan, answer: ResetOffsetsResponse | None) -> dict[str, Any]:
    return {
        "groupId": plan.group_id,
        "executed": answer is not None,
        "rejoining": 0 if answer is None else answer.rejoining,
        "offsets": [
            {
                "topic": planned.topic,
                "partition": planned.partition,
                "from": planned.current,
                "to": None if planned.target is None else planned.target.offset,
                "replayed": planned.replayed,
                "skipped": planned.skipped,
                "lag": planned.lag,
                "note": planned.note,
            }
            for planned in plan.offsets
        ],
    }
