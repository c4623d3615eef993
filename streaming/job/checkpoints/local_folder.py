"""Where a checkpoint is, and a local one's folder as Python reads it."""

from pathlib import Path
from urllib.parse import urlsplit

from streaming.job.spark_internals.checkpoint_layout.start_check import UnreadableFile


def local_path(location: str) -> Path | None:
    """The folder of a location on this machine's file system; None for any other file system."""
    parts = urlsplit(location)
    if parts.scheme in ("", "file"):
        return Path(parts.path if parts.scheme else location).absolute()
    return None


def checkpoint_location(checkpoint: str) -> str:
    """A checkpoint's location for Spark: a URI with an absolute path for a local folder, else as given."""
    folder = local_path(checkpoint)
    return checkpoint if folder is None else folder.as_uri()


class LocalFolder:
    """A checkpoint on this machine's file system, without the checksums that Hadoop keeps."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self, folder: str) -> list[str]:
        """The names in a folder, without hidden ones; empty if it does not exist."""
        path = self._root / folder
        return [found.name for found in path.iterdir() if not found.name.startswith(".")] if path.is_dir() else []

    def size(self, path: str) -> int:
        """The size of an existing file in bytes."""
        return (self._root / path).stat().st_size

    def text(self, path: str) -> str:
        """The content of an existing file, with invalid UTF-8 replaced. Raises UnreadableFile."""
        return self._content(path).decode(errors="replace")

    def read_through(self, path: str, end_bytes: int) -> bytes:
        """Read an existing file; returns its last bytes. Raises UnreadableFile."""
        return self._content(path)[-end_bytes:]

    def _content(self, path: str) -> bytes:
        try:
            return (self._root / path).read_bytes()
        except OSError as error:
            raise UnreadableFile(str(error)) from error
