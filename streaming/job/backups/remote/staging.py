"""A folder of this machine in which a command works on copies, and says the names of the places that they are from."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from streaming.contract.errors import CannotRun
from streaming.embedded.temporary_folder import temporary_folder
from streaming.job.backups.placement import Report
from streaming.job.checkpoints.file_systems import S3A, job_jars, scheme_of
from streaming.job.checkpoints.local_folder import local_path
from streaming.job.checkpoints.store_check import require_reachable
from streaming.job.checkpoints.store_folder import StoreFolder
from streaming.job.options import JobOptions
from streaming.job.session import spark_session, spark_settings

OpenFolder = Callable[[str], StoreFolder]


class Staging:
    """Where a command works. A place on this machine is itself, any other one has a folder in ``folder``."""

    def __init__(self, folder: Path, options: JobOptions, report: Report) -> None:
        self._folder = folder
        self._options = options
        self._report = report
        self._copies: dict[str, Path] = {}

    def path(self, location: str) -> Path:
        """The folder of a location on this machine. It does not exist yet if it is for a copy."""
        local = local_path(location)
        if local is not None:
            return local
        return self._copies.setdefault(location, self._folder / f"{len(self._copies)}" / Path(location).name)

    def report(self, line: str) -> None:
        """Report a line of a command that works on the copies."""
        self._report(self.place_of(line))

    def place_of(self, text: str) -> str:
        """The text with the places instead of their copies."""
        for location, copy in self._copies.items():
            text = text.replace(str(copy), location.rstrip("/"))
        return text

    @contextmanager
    def stores(self, *locations: str) -> Iterator[OpenFolder]:
        """Start what opens these locations: Spark, with the jars of their stores. Ends with the block."""
        remote = [location for location in locations if local_path(location) is None]
        first = next((location for location in remote if scheme_of(location) == S3A), remote[0])
        options = msgspec.structs.replace(self._options, master="local[1]", checkpoint=first)
        self._report(f"connecting to {', '.join(remote)}")
        with spark_session(spark_settings(options, job_jars(first, self._report))) as spark:
            for location in remote:
                require_reachable(spark, location)
            yield lambda location: StoreFolder(spark, location)

    @contextmanager
    def naming_places(self) -> Iterator[None]:
        """Let errors name the places instead of the copies."""
        try:
            yield
        except CannotRun as error:
            raise CannotRun(self.place_of(str(error))) from error


@contextmanager
def staging(options: JobOptions, report: Report) -> Iterator[Staging]:
    """A staging area that is removed with the block."""
    with temporary_folder() as temporary:
        made = Staging(temporary.path.resolve() / "staging", options, report)
        with made.naming_places():
            yield made


def is_remote(*locations: str | None) -> bool:
    """Whether one of these locations is not on this machine."""
    return any(location is not None and local_path(location) is None for location in locations)
