"""``group-coordinator offsets restore``, ``undo``, ``clone`` and ``apply``: set offsets that were there before."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from coordinator_logic.messages import ResetOffsetsRequest
from coordinator_logic.records import RequestCause
from streaming.cli.commands.offsets.carrying_out import (
    CommittedMeanwhile,
    Execution,
    carry_out,
    fail_because_of_commits,
    report,
    send,
    setting_offsets,
)
from streaming.cli.commands.offsets.reading import (
    changes_until_now,
    fetched_offsets,
    logs,
    of_present_topics,
    offsets_as_of,
    offsets_of_existing,
)
from streaming.cli.connection import Connection, connected
from streaming.cli.console import REFUSED, USAGE, err, fail, out, print_json, time_given
from streaming.cli.group_selection import GroupId, require_group
from streaming.cli.help_output import option
from streaming.client import CoordinatorClient
from streaming.explain.offsets.changes import OffsetChange, last_reset
from streaming.explain.offsets.plan import Plan, clone, position, restoration, undoing
from streaming.explain.time_travel.rows import utc

AsOf = Annotated[str, option("--as-of", metavar="TIME", text="The time, or an age such as 2h.")]


@connected
@setting_offsets
def restore(connection: Connection, execution: Execution, group: GroupId, as_of: AsOf) -> None:
    """Restore the offsets that a group had at an earlier time, from the journal.

    A partition that had no offset then loses the one that it has now. If the journal no longer goes back to the group's
    creation, offsets from before it are not known, and no offset is deleted.
    """
    time = time_given(as_of, "--as-of")
    with connection.client() as client:
        ((then, is_complete),) = offsets_as_of(connection, group, [time])
        if not is_complete:
            topic = connection.topics.journal
            err.line(f"{group} is older than {topic}: offsets that {topic} does not name stay as they are")
        present = of_present_topics(then, logs(connection, client, then))

        def plan() -> Plan:
            now = fetched_offsets(client, group)
            return restoration(group, present, now, logs(connection, client, {*present, *now}), is_complete=is_complete)

        carry_out(connection, client, plan, execution)


@connected
@setting_offsets
def undo(connection: Connection, execution: Execution, group: GroupId) -> None:
    """Undo the last reset of a group's offsets: by reset, restore, import, clone, apply or undo itself.

    Each partition that it changed gets the offset that it had before. Undo it again to bring back the reset.
    """
    with connection.client() as client:
        changes = _last_reset(connection, client, group)
        if not connection.as_json:
            out.line(f"Undo: {_described(changes[0])}")
        known = logs(connection, client, [change.partition for change in changes])
        before = {change.partition: position(change.before) for change in changes if change.before is not None}
        present = of_present_topics(before, known)
        changes = [change for change in changes if change.before is None or change.partition in present]
        carry_out(connection, client, lambda: undoing(group, changes, fetched_offsets(client, group), known), execution)


def _last_reset(connection: Connection, client: CoordinatorClient, group: str) -> list[OffsetChange]:
    """The changes by the last reset of a group; without any that the journal knows, the command ends."""
    changes = last_reset(changes_until_now(connection, client, group))
    if not changes:
        require_group(client, group)
        fail(f"{connection.topics.journal} has no reset of group {group}", REFUSED)
    if not all(change.knows_before for change in changes):
        fail(f"{connection.topics.journal} no longer has the offsets from before the last reset", REFUSED)
    return changes


def _described(change: OffsetChange) -> str:
    cause = change.cause
    assert isinstance(cause, RequestCause)
    why = f": {change.reason}" if change.reason else ""
    at = utc(change.entry.timestamp).isoformat(timespec="milliseconds")
    return f"the reset at {at} by {cause.client_id} at {cause.client_host}{why}"


@connected
@setting_offsets
def clone_group(
    connection: Connection,
    execution: Execution,
    group: GroupId,
    new: Annotated[str, typer.Argument(metavar="NEW", help="Group id of the copy, which must have no offsets.")],
    as_of: Annotated[
        str | None, option("--as-of", metavar="TIME", text="As of this time, or an age such as 2h; by default now.")
    ] = None,
) -> None:
    """Copy the committed offsets of a group to another one, which may not exist yet."""
    time = None if as_of is None else time_given(as_of, "--as-of")
    with connection.client() as client:
        if time is None:
            offsets = offsets_of_existing(client, group)
        else:
            ((offsets, _),) = offsets_as_of(connection, group, [time])
        if fetched_offsets(client, new):
            fail(f"{new} has committed offsets", REFUSED)
        known = logs(connection, client, offsets)
        copied = clone(new, of_present_topics(offsets, known), known)
        carry_out(connection, client, lambda: copied, execution)


@connected
@setting_offsets
def apply_plan(
    connection: Connection,
    execution: Execution,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="A file that --save-plan has written.")],
) -> None:
    """Carry out a plan that a dry run has saved, if the group still has the offsets that the dry run showed.

    Commits that came in between are reported, and nothing is changed then, unless --overwrite-commits is given.
    """
    try:
        request = msgspec.json.decode(plan.read_bytes(), type=ResetOffsetsRequest)
    except OSError as error:
        fail(f"{plan} cannot be read: {error.strerror}", REFUSED)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        fail(f"{plan} is not a plan: {error}", USAGE)
    if not execution.execute:
        fail("offsets apply needs --execute: the dry run has already shown the plan", USAGE)
    with connection.client() as client:
        try:
            answer = send(connection, client, request, execution)
        except CommittedMeanwhile as refused:
            fail_because_of_commits(refused)
    if connection.as_json:
        print_json(answer)
    else:
        report(request, answer)
