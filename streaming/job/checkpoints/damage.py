"""A damaged checkpoint: the line that names the file and says what helps.

docs/operations/recovery.md lists the cases.
"""

from streaming.contract.errors import CannotRun
from streaming.job.spark_internals.checkpoint_layout.start_check import (
    COMMITS,
    METADATA,
    OFFSETS,
    CheckpointFolder,
    DamagedFile,
    check_contents,
    check_files,
    files_to_remove,
)

REPLACE = (
    "restore a copy of the checkpoint, or rebuild it from the journal; an empty one with --new-checkpoint loses what "
    'the requests topic no longer has (see "Damage" in docs/operations/recovery.md)'
)
REPLACE_METADATA = (
    "restore a copy of this file, or remove both files, it and .metadata.crc, and write "
    '{"id":"<a UUID>"} to a new one (see "Damage" in docs/operations/recovery.md)'
)

READS_AGAIN = ", and the job reads the requests of that time again"

CANNOT_LOAD_STATE = "CANNOT_LOAD_STATE_STORE"
"""Spark's class of errors for a state that it cannot read."""


def check_damage(folder: CheckpointFolder, location: str) -> None:
    """Check that Spark can start with the checkpoint at ``location``, without reading the state.

    Raises:
        CannotRun: a file that Spark needs is lost or damaged; the message says what helps.
    """
    try:
        check_files(folder)
    except DamagedFile as damaged:
        raise CannotRun(_line(folder, location, damaged)) from damaged


def damage_after_failure(folder: CheckpointFolder, location: str, failure: str) -> str | None:
    """The line for a query that has failed because it could not read its state; None for any other failure.

    ``failure`` is Spark's message. Reads the whole state, because Spark does not name a file that has no end.
    """
    if CANNOT_LOAD_STATE not in failure:
        return None
    try:
        check_contents(folder)
    except DamagedFile as damaged:
        return _line(folder, location, damaged)
    return f"Spark cannot read the state in checkpoint {location}: {failure}: {REPLACE}"


def _line(folder: CheckpointFolder, location: str, damaged: DamagedFile) -> str:
    removable = files_to_remove(folder, damaged)
    advice = REPLACE_METADATA if damaged.path == METADATA else REPLACE
    if removable:
        goes_back = any(path.startswith((OFFSETS, COMMITS)) for path in removable)
        advice = f"remove {', '.join(removable)}" + (READS_AGAIN if goes_back else "")
    return f"checkpoint {location} is damaged: {damaged}: {advice}"
