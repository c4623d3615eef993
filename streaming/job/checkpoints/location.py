"""Where the checkpoint is."""

from pathlib import Path
from urllib.parse import urlsplit

from streaming.job.options import JobOptions


def local_path(location: str) -> Path | None:
    """The folder of a location on this machine's file system; None for any other file system."""
    parts = urlsplit(location)
    if parts.scheme in ("", "file"):
        return Path(parts.path if parts.scheme else location).absolute()
    return None


def checkpoint_location(options: JobOptions) -> str:
    """The checkpoint's location for Spark: a URI with an absolute path for a local folder, else the option."""
    folder = local_path(options.checkpoint)
    return options.checkpoint if folder is None else folder.as_uri()
