"""``group-coordinator offsets reset``: move the offsets of a group."""

import time
from pathlib import Path
from typing import Annotated

from coordinator_logic.embedded_protocols import TopicPartition
from streaming.cli.commands.offsets.carrying_out import Execution, carry_out, setting_offsets
from streaming.cli.commands.offsets.files import positions_in
from streaming.cli.commands.offsets.reading import (
    fetched_offsets,
    of_present_topics,
    required_logs,
    selected,
    selected_partitions,
)
from streaming.cli.connection import Connection, connected
from streaming.cli.console import USAGE, duration_given, err, fail, time_given
from streaming.cli.group_selection import GroupId, require_group
from streaming.cli.help_output import flag, option
from streaming.client import CoordinatorClient
from streaming.contract.output.text import counted
from streaming.explain.live.partitions import admin_of
from streaming.explain.offsets.log_positions import offsets_at
from streaming.explain.offsets.plan import Plan
from streaming.explain.offsets.targets import ResetTarget, TargetKind, plan_of_positions, reset_plan

TARGET_PANEL = "Target"
BY_DURATION = "--by-duration"


@connected
@setting_offsets
def reset(
    connection: Connection,
    execution: Execution,
    group: GroupId,
    topic: Annotated[
        list[str] | None,
        option(metavar="TOPIC[:PARTITIONS]", text="Partitions to reset, such as orders or orders:0,2-5. Repeatable."),
    ] = None,
    all_topics: Annotated[bool, flag("--all-topics", "All partitions with a committed offset.")] = False,
    to_earliest: Annotated[bool, flag("--to-earliest", "The first offset.", TARGET_PANEL)] = False,
    to_latest: Annotated[bool, flag("--to-latest", "The end of the log.", TARGET_PANEL)] = False,
    to_offset: Annotated[int | None, option(metavar="OFFSET", text="This offset.", panel=TARGET_PANEL)] = None,
    to_datetime: Annotated[
        str | None, option(metavar="TIME", text="The first record since a time, or an age.", panel=TARGET_PANEL)
    ] = None,
    shift_by: Annotated[
        int | None, option(metavar="N", text="N offsets forward, or back if N is negative.", panel=TARGET_PANEL)
    ] = None,
    by_duration: Annotated[
        str | None, option(metavar="AGE", text="The first record of the last 2h, 15m, ...", panel=TARGET_PANEL)
    ] = None,
    from_file: Annotated[
        Path | None,
        option(metavar="FILE", text="The offsets in a .csv, .json or .parquet file.", panel=TARGET_PANEL),
    ] = None,
) -> None:
    """Move the offsets of a group: show what would happen to each partition, and do it with --execute.

    Without --force, a group with members is refused. An offset outside of the log becomes the nearest one in it. The
    offsets are set only if the group still has those that were shown.
    """
    chosen = _targets(to_earliest, to_latest, to_offset, to_datetime, by_duration, shift_by)
    selections = [selected(each, "--topic") for each in topic or ()]
    if len(chosen) + (from_file is not None) != 1:
        names = ", ".join([*(f"{kind.value}" for kind in TargetKind), BY_DURATION])
        fail(f"give one of {names} and --from-file", USAGE)
    wanted = {} if from_file is None else positions_in(from_file)
    with connection.client() as client:
        if from_file is not None:
            known = required_logs(connection, client, wanted)
            present = of_present_topics(wanted, known)

            def plan() -> Plan:
                return plan_of_positions(group, present, fetched_offsets(client, group), known)
        else:
            if all_topics:
                require_group(client, group)
            partitions = selected_partitions(
                connection, client, selections, lambda: fetched_offsets(client, group), all_topics=all_topics
            )

            def plan() -> Plan:
                return _planned(connection, client, group, partitions, chosen[0])

        carry_out(connection, client, plan, execution)


def _targets(
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    since: str | None,
    age: str | None,
    shift_by: int | None,
) -> list[ResetTarget]:
    targets = [ResetTarget(TargetKind.EARLIEST)] * to_earliest + [ResetTarget(TargetKind.LATEST)] * to_latest
    if to_offset is not None:
        targets.append(ResetTarget(TargetKind.OFFSET, to_offset))
    if since is not None:
        targets.append(ResetTarget(TargetKind.TIME, time_given(since, TargetKind.TIME.value)))
    if age is not None:
        targets.append(ResetTarget(TargetKind.TIME, round(time.time() * 1000) - duration_given(age, BY_DURATION)))
    if shift_by is not None:
        targets.append(ResetTarget(TargetKind.SHIFT, shift_by))
    return targets


def _planned(
    connection: Connection, client: CoordinatorClient, group: str, partitions: set[TopicPartition], target: ResetTarget
) -> Plan:
    known = required_logs(connection, client, partitions)
    at_time: dict[TopicPartition, int | None] = {}
    if target.kind is TargetKind.TIME:
        at_time = offsets_at(admin_of(client), partitions, target.value, connection.timeout)
    # Read last, so that what is shown as the present offset is recent.
    now = fetched_offsets(client, group)
    plan = reset_plan(group, partitions, target, now, known, at_time)
    if left_out := len(partitions) - len(plan.offsets):
        have = "has" if left_out == 1 else "have"
        err.line(f"{counted(left_out, 'partition')} {have} no committed offset to shift")
    return plan
