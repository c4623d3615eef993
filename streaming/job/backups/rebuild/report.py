"""What a rebuild knows of each group and what it does not, said before the checkpoint is written, and after."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from coordinator_logic.records import QUARANTINED, GroupDirectoryEntry
from streaming.contract.output.text import counted
from streaming.job.backups.rebuild.rebuilt_groups import RebuiltGroup
from streaming.journal.folded_group import Known

SHOWN = 20
"""So many groups of a kind are named; JSON has all."""


class RebuildReport(msgspec.Struct, rename="camel"):
    """What was found. Groups are by id; those of ``incomplete``, ``differing`` and ``lost`` have a line each."""

    entries: int = 0
    groups: int = 0
    incomplete: dict[str, str] = {}
    """Groups whose oldest entries are missing, and what is known of them."""
    differing: dict[str, str] = {}
    """Groups that the directory describes otherwise, although no entry is known to be missing."""
    lost: dict[str, str] = {}
    """Groups that the directory has, and that cannot be rebuilt."""
    unreadable: list[str] = []
    """Groups whose state cannot be read in the backup, and that the journal cannot replace."""
    forked: list[str] = []
    """Groups of which two coordinators have told different histories."""
    topic_problems: list[str] = []

    @property
    def is_lossless(self) -> bool:
        """Whether every group is rebuilt as it was."""
        return not (self.incomplete or self.differing or self.lost or self.unreadable or self.topic_problems)

    def compare(self, rebuilt: Iterable[RebuiltGroup], directory: Mapping[str, GroupDirectoryEntry]) -> None:
        """Note what is missing of the rebuilt groups, and which groups of the directory are not among them."""
        found = set()
        for group_id, known, entry in ((each.stored.group_id, each.known, each.entry) for each in rebuilt):
            found.add(group_id)
            self.groups += 1
            told = directory.get(group_id)
            if entry is None:
                self.unreadable.append(group_id)
            elif known is not Known.ALL:
                self.incomplete[group_id] = f"{_shown(entry)}: {known.value}{_told(told)}"
            elif told is not None and _summary(entry) != _summary(told) and told.group_state != QUARANTINED:
                self.differing[group_id] = f"{_shown(entry)}{_told(told)}"
        for group_id in sorted(directory.keys() - found):
            self.lost[group_id] = _shown(directory[group_id])

    def lines(self, shown: int = SHOWN) -> Iterator[str]:
        """The report as text."""
        yield f"{counted(self.groups, 'group')} from {counted(self.entries, 'entry', 'entries')} of the journal"
        yield from self.topic_problems
        for what, named in (
            ("cannot be rebuilt: the journal no longer has entries", self.lost),
            ("can be rebuilt in part: the journal no longer has the oldest entries", self.incomplete),
            ("would differ from the directory: entries of the journal are missing", self.differing),
        ):
            if named:
                yield f"{counted(len(named), 'group')} {what}"
                yield from _first([f"  {group_id}: {text}" for group_id, text in sorted(named.items())], shown)
        for what, ids in (
            ("cannot be read in the backup: still in quarantine", self.unreadable),
            ("with two histories in the journal: that of the newer coordinator holds", self.forked),
        ):
            if ids:
                yield f"{counted(len(ids), 'group')} {what}"
                yield from _first([f"  {group_id}" for group_id in sorted(ids)], shown)
        if self.is_lossless:
            yield "every group can be rebuilt completely"


def _first(lines: list[str], shown: int) -> Iterator[str]:
    yield from lines[:shown]
    if len(lines) > shown:
        yield f"  and {len(lines) - shown} more: --json lists all"


def _summary(entry: GroupDirectoryEntry) -> tuple[object, ...]:
    return entry.group_state, entry.generation, entry.members, entry.offsets


def _shown(entry: GroupDirectoryEntry) -> str:
    sizes = f"{counted(entry.members, 'member')}, {counted(entry.offsets, 'offset')}"
    return f"{entry.group_state}, generation {entry.generation}, {sizes}"


def _told(entry: GroupDirectoryEntry | None) -> str:
    return "" if entry is None else f"; the directory says {_shown(entry)}"
