"""The lines for ``group-coordinator`` in README and the guide, and how each of them is run by a test."""

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer

from streaming.cli.app import app
from tests.docs.console.sessions import without_blocks
from tests.docs.markdown import ROOT

GUIDE = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

SERVICES = {
    "run --bootstrap-servers": "ready: append requests",
    "gateway --bootstrap-servers": "ready: clients connect",
    "ui -b": "http://",
    "events -b kafka-1:9092 --follow --publish": "publishing to ",
    "events -b kafka-1:9092 --follow": "-> generation ",
}
"""Beginnings of lines whose commands go on until Ctrl-C, and what they print first."""

IN_A_PROCESS = ("sql -b kafka-1:9092 --at",)
"""Beginnings of lines whose commands start a JVM, which a test keeps out of its own process."""

STOPPED = "needs a coordinator that has stopped, and starts Spark"

ELSEWHERE = {
    'sql -b kafka-1:9092 "': "starts Spark, for the query alone: tests/explain/tables/test_tables.py",
    "run --master spark": "needs a cluster: tests/cluster/test_standalone.py",
    "run --master yarn": "needs a cluster: tests/cluster/long/test_yarn.py",
    "doctor --master ": "needs a cluster: tests/cluster/long/test_commands.py",
    "checkpoint verify": "starts Spark: tests/job/backups/test_verification.py",
    "drill  ": "takes 7 minutes: tests/cli/test_drill.py",
    "drill standby -o": "takes a minute: tests/cli/test_drill.py",
    "drill standby -b": "needs the process id of a job with a standby: tests/cli/test_drill.py",
    "checkpoint backup s3a": "needs a store: tests/object_store/long/test_commands.py",
    "acls -b kafka-1:9092 -X": "needs a broker with TLS: tests/gateway/security/roles/test_acls_command.py",
    "checkpoint restore": f"{STOPPED}: tests/recovery/kept/test_topics_and_backup.py",
    "checkpoint rebuild": f"{STOPPED}: tests/recovery/kept/test_topics_and_backup.py",
    "checkpoint repartition": f"{STOPPED}: tests/job/backups/test_new_checkpoints.py",
    "checkpoint migrate": f"{STOPPED}: tests/job/backups/test_new_checkpoints.py",
    "checkpoint downgrade": f"{STOPPED}: tests/recovery/kept/test_checkpoint.py",
}
"""Beginnings of lines that are only parsed: why they do not run here, and the test that runs the same command."""

OTHER_PROGRAMS = {
    "docker compose ": "needs Docker; its services run without it: tests/image/test_compose.py",
    "docker tag ": "needs a registry: deploy/Dockerfile",
    "docker push ": "needs a registry: deploy/Dockerfile",
    "/opt/group-coordinator/bin/pip install ": "takes an environment of its own: tests/release/test_wheel.py",
    "python3 -m venv /opt/group-coordinator": "writes to the host: tests/release/test_wheel.py",
    "install ": "writes to the host: tests/deploy/test_units.py",
    "systemctl ": "needs systemd as process 1: tests/deploy/test_units.py",
    "sleep ": "waits: tests/deploy/test_units.py",
    "helm ": "needs a cluster: tests/chart/test_document.py",
    "kubectl ": "needs a cluster: tests/chart/test_document.py",
    "make cluster-demo": "needs minutes: tests/cluster/long/test_demo.py",
    "make demo": "runs group-coordinator demo: tests/recovery/test_demo.py",
    "make test": "runs this: .github/workflows/test.yml",
    ".venv/bin/python -m build --wheel": "takes a copy of the source: tests/release/test_wheel.py",
    "pip install ": "takes an environment of its own: tests/release/test_wheel.py",
    "spark-submit ": "needs a cluster: tests/cluster/test_document.py",
    "make image": "needs docker, podman or buildah, and minutes: tests/image/test_image.py",
}
"""Beginnings of lines for other programs in README and docs/deploy.md: why they do not run here, and where they run, or
what they read."""

WITH_OTHER_PROGRAMS = (ROOT / "README.md", ROOT / "docs" / "deploy.md")

PROGRAMS = r"make|spark-submit|\S*pip|docker|\S*python3?|helm|kubectl|systemctl|install|sleep"
"""Other programs that documents call."""

_LINE = re.compile(r"^(?: {4}|[\w-]*\$ )?(?:\.venv/bin/)?group-coordinator ((?:.*\\\n)*.*)$", re.MULTILINE)


def lines_of(text: str) -> Iterator[str]:
    """The command lines in a document's text, without the name of the program; not those that leave something out."""
    for line in _LINE.findall(text):
        if "..." not in line and not line.startswith("`"):
            yield line


def lines_of_other_programs(text: str) -> list[str]:
    """The lines of a document's text that call another program and are not part of a console session."""
    return re.findall(rf"^ {{4}}((?:{PROGRAMS}) .*)$", without_blocks(text), re.MULTILINE)


def words_of(line: str) -> list[str]:
    """The words of a command line, as a shell has them."""
    return shlex.split(line.replace("\\\n", ""), comments=True)


def lines_to_run() -> list[tuple[Path, str]]:
    """The lines of all documents that are not part of a console session, each with its document."""
    return [(document, line) for document in GUIDE for line in lines_of(without_blocks(document.read_text()))]


def text_for(line: str, texts: dict[str, str]) -> str | None:
    """The text of the first beginning that a line has; None if it has none of them."""
    return next((text for beginning, text in texts.items() if line.startswith(beginning)), None)


def parsed(words: list[str]) -> Any:
    """The context of the command that these words call, which is not run. Raises click's error of wrong usage."""
    command = _command()
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    return command.make_context(command.name, words)


@cache
def _command() -> Any:
    return typer.main.get_command(app)
