"""Environments with another pyspark, and a copy of the tree for each, outside of the project's own environment."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

from uv import find_uv_bin

from streaming.job.spark_internals import trials
from streaming.job.spark_internals.trials import Trial
from tests.spark_next.record import source

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("coordinator_logic", "streaming", "tests", "docs", "deploy", "pyproject.toml", "README.md", "Makefile")
BUILD = ROOT / "build" / "spark-next"

CONNECTOR = 'name="spark-sql-kafka-0-10_2.13" rev="'
"""What stands before the connector's version in the Ivy file."""


class Environment(NamedTuple):
    """A Python with a certain pyspark, and the tree that it runs. All else is installed as in this environment.

    ``is_own``: it is this environment, with this tree, which a trial does not change.
    """

    python: Path
    tree: Path
    is_own: bool = False

    def run(self, *arguments: str, log: Path, limit_seconds: float) -> int:
        """Run this Python in the tree, wait for its end and return its exit code; ``log`` gets its output.

        Raises TimeoutExpired.
        """
        # Without PYTHONPATH, a process with another working directory would import the project's own tree.
        environment = {**os.environ, "PYTHONPATH": str(self.tree)}
        command = [str(self.python), *arguments]
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as output:
            return subprocess.run(
                command,
                cwd=self.tree,
                env=environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=limit_seconds,
                check=False,
            ).returncode

    def list_as_tried(self, version: str, trial: Trial) -> None:
        """Let the tree use what held in a trial of this version."""
        if not self.is_own:
            table = Path(trials.__file__).relative_to(ROOT)
            (self.tree / table).write_text(source({**trials.TRIALS, version: trial}))


def newest_pyspark() -> str:
    """The newest release of pyspark that resolves."""
    resolved = _uv("pip", "compile", "--quiet", "--no-deps", "--no-header", "--no-annotate", "-", given="pyspark\n")
    return resolved.strip().partition("==")[2]


def connector_version(tree: Path = ROOT) -> str:
    """The version of Spark's Kafka connector in the Ivy file of a tree."""
    return _ivy_file(tree).read_text().partition(CONNECTOR)[2].partition('"')[0]


def prepare(version: str, connector: str) -> Environment:
    """Install this pyspark, in front of what this environment has, and copy the tree for it, with this connector."""
    folder = BUILD / version
    python = folder / "bin" / "python"
    if not python.exists():
        _uv("venv", "--quiet", "--clear", "--python", sys.executable, str(folder))
    _uv("pip", "install", "--quiet", "--python", str(python), f"pyspark=={version}")
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "project.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    for name in SOURCES:
        _copy(ROOT / name, tree / name)
    ivy_file, ours = _ivy_file(tree), connector_version()
    ivy_file.write_text(ivy_file.read_text().replace(f"{CONNECTOR}{ours}", f"{CONNECTOR}{connector}"))
    return Environment(python, tree)


def _copy(source_path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source_path.is_dir():
        shutil.copytree(source_path, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy(source_path, target)


def _ivy_file(tree: Path) -> Path:
    return tree / "streaming" / "embedded" / "ivy.xml"


def _uv(*arguments: str, given: str | None = None) -> str:
    """Run uv; returns its output. Raises SystemExit with its message."""
    done = subprocess.run([find_uv_bin(), *arguments], input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"uv {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout
