"""The code of an earlier commit of this project, and processes that run it."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

PROJECT = Path(__file__).parents[2]

BEFORE_TYPES_OF_GROUPS = "31aec04"
"""The last commit in which a group's type was a field of the group."""

RELEASE_0_1_0 = "77e163a9"
"""The commit of the release: the last one before snapshots have format 5."""


class CommitNotThere(Exception):
    """The commit's code cannot be had: the project is no clone with its history, or git is not installed."""


def unpack_commit(commit: str, folder: Path) -> Path:
    """Unpack the files of a commit into ``folder``, which must not exist. Raises :class:`CommitNotThere`."""
    folder.mkdir(parents=True)
    archive = folder / "commit.tar"
    try:
        command = ["git", "-C", str(PROJECT), "archive", "--format=tar", f"--output={archive}", commit]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as missing:
        raise CommitNotThere("git is not installed") from missing
    if done.returncode != 0:
        raise CommitNotThere(f"{PROJECT} has no commit {commit}: {done.stderr.strip()}")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    archive.unlink()
    return folder


def code_of(tree: Path) -> Mapping[str, str]:
    """The variables with which ``python -m`` and the job's workers import the code of another tree, from any folder."""
    return {"PYTHONPATH": str(tree), "PYTHONSAFEPATH": "1"}


def imported_from(tree: Path) -> Path:
    """The folder from which a process with :func:`code_of` imports the job."""
    command = [sys.executable, "-c", "import streaming.job; print(streaming.job.__file__)"]
    found = subprocess.check_output(command, text=True, env={**os.environ, **code_of(tree)})
    return Path(found.strip())
