"""Folders that a command writes to, checked before anything starts."""

import tempfile
from pathlib import Path

from streaming.contract.errors import CannotRun


def require_writable(folder: Path) -> None:
    """Check that a folder can be written, or else be created, with a temporary one in its place.

    Permissions alone do not tell: a file system may be read-only, and root may do anything but to write to /proc.

    Raises:
        CannotRun: it cannot. The message names the folder and the reason.
    """
    absolute = folder.absolute()
    try:
        existing = next(each for each in (absolute, *absolute.parents) if each.exists())
        tempfile.TemporaryDirectory(prefix=".", dir=existing).cleanup()
    except OSError as error:
        raise CannotRun(f"{folder} cannot be written: {error.strerror}") from error
