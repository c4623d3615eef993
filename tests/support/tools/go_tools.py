"""Programs and files that come from Go modules, for tests that need them."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from streaming.embedded.jars import cache_folder, locked

BUILD_LIMIT_SECONDS = 900.0


def go_program(package: str, version: str) -> str:
    """The path of a Go program, which Go downloads and compiles the first time, for a few minutes.

    Skips the test that calls it where there is no Go, or where the program's modules cannot be downloaded.
    """
    folder = cache_folder() / "tools" / version
    program = folder / package.rpartition("/")[2]
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock"):
        if not program.exists():
            _go("install", f"{package}@{version}", GOBIN=str(folder))
    return str(program)


def go_module(module: str, version: str) -> Path:
    """The folder with the files of a Go module, which Go downloads the first time. Skips the test as above."""
    described = json.loads(_go("mod", "download", "-json", f"{module}@{version}"))
    return Path(described["Dir"])


def _go(*arguments: str, **environment: str) -> str:
    go = shutil.which("go")
    if go is None:
        pytest.skip("Go is not installed")
    done = subprocess.run(
        [go, *arguments],
        env={**os.environ, **environment},
        # In a module's folder, Go would use the versions of that module.
        cwd=Path.home(),
        capture_output=True,
        text=True,
        timeout=BUILD_LIMIT_SECONDS,
        check=False,
    )
    if done.returncode:
        # `go mod download -json` writes its error into the JSON.
        pytest.skip(f"{arguments[-1]} cannot be had: {(done.stderr.strip() or done.stdout.strip())[-500:]}")
    return done.stdout
