"""Programs in Go, which the toolchain on the PATH compiles; Go downloads their modules the first time."""

import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["built"]

LIMIT_SECONDS = 300.0


def built(folder: Path, into: Path) -> Path:
    """Compile the program in ``folder``; return the executable in ``into``.

    Skips the test that calls it where there is no Go, or where the program's modules cannot be downloaded.
    """
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed")
    download = _run([go, "mod", "download"], folder)
    if download.returncode:
        pytest.skip(f"the modules of {folder.name} are not available: {download.stderr.strip()}")
    executable = into / folder.name
    build = _run([go, "build", "-mod=readonly", "-o", str(executable), "."], folder)
    assert build.returncode == 0, build.stderr
    return executable


def _run(command: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
