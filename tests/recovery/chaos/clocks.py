"""A clock that can be stepped for one process and its descendants, while the machine's clock stays as it is."""

import shutil
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

SOURCE = Path(__file__).with_name("stepped_clock.c")
COMPILE_LIMIT_SECONDS = 60.0


class NoCompiler(Exception):
    """The library that steps clocks cannot be built here."""


def build_library(folder: Path) -> Path:
    """Compile the library; returns its file. Raises NoCompiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise NoCompiler("cc was not found: a C compiler builds the library that steps a process's clock")
    library = folder / "stepped_clock.so"
    command = [compiler, "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILE_LIMIT_SECONDS, check=False)
    if done.returncode != 0:
        raise NoCompiler(f"{SOURCE.name} cannot be compiled here: {done.stderr}")
    return library


class SteppedClock:
    """The distance of a process's clock from the machine's, which starts with 0."""

    def __init__(self, library: Path, file: Path) -> None:
        self._library = library
        self._file = file
        file.write_bytes(struct.pack("q", 0))

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables of a process whose clock this is to be."""
        return {"LD_PRELOAD": str(self._library), "STEPPED_CLOCK": str(self._file)}

    def set_ahead(self, ms: int) -> None:
        """Set the clock so far ahead, ms; a negative number sets it back."""
        # In place: the processes have mapped the file.
        with self._file.open("r+b") as file:
            file.write(struct.pack("q", ms))
