"""The groups of a checkpoint in the format of an earlier release, so that its job continues them."""

from collections.abc import Callable, Iterator, Sequence

from coordinator_logic.group import Group
from coordinator_logic.groups.conversions.format_4_snapshots import NotInFormat
from coordinator_logic.snapshot import WRITERS_FOR_RELEASES, EarlierRelease, UnreadableSnapshot
from coordinator_logic.stored_parts import UnreadablePart
from streaming.contract.errors import CannotRun
from streaming.contract.output.text import counted
from streaming.job.backups.placement import Report
from streaming.job.group_batch.state_row import StateRow, load_whole
from streaming.job.spark_internals.checkpoint_layout.state_reader import StoredGroup


def groups_for(release: EarlierRelease, groups: Sequence[StoredGroup], report: Report) -> list[StoredGroup]:
    """The groups as an earlier release stores them; one that cannot be read keeps its bytes.

    Raises:
        CannotRun: the release has no group of this type.
    """
    unreadable: list[str] = []
    try:
        found = list(_encoded(groups, WRITERS_FOR_RELEASES[release], unreadable))
    except NotInFormat as reason:
        raise CannotRun(f"{release} cannot continue the checkpoint: {reason}: delete the group first") from reason
    if unreadable:
        report(
            f"warning: {counted(len(unreadable), 'group')} cannot be read, as in quarantine, and stay as they are: "
            + ", ".join(unreadable)
        )
    return found


def _encoded(
    groups: Sequence[StoredGroup], encode: Callable[[Group], bytes], unreadable: list[str]
) -> Iterator[StoredGroup]:
    for each in groups:
        row = StateRow.unpacked(each.stored)
        try:
            snapshot = encode(load_whole(each.stored))
        except (UnreadableSnapshot, UnreadablePart):
            unreadable.append(each.group_id)
            yield each
        else:
            # The marks beside the snapshot, of quarantine and of a replay, are those of all releases.
            yield each._replace(stored=row._replace(snapshot=snapshot).packed())
