"""Kafka's group manager in a small JVM: a process that answers lists of commands."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from streaming.embedded.jars import MissingPrerequisite, cache_folder, java_executable, locked, resolve_file

HERE = Path(__file__).parent
SOURCE, IVY_FILE = HERE / "Judge.java", HERE / "ivy.xml"
MAIN_CLASS = "org.apache.kafka.coordinator.group.Judge"
END_LIMIT_SECONDS = 30.0

Command = dict[str, Any]


class Judge:
    """The process; a context manager. It needs a JDK, since it compiles the source beside this file once."""

    def __init__(self) -> None:
        (jars,) = resolve_file(IVY_FILE, ("judge",))
        class_path = os.pathsep.join(map(str, jars))
        classes = _compiled(class_path)
        # Mockito makes classes at run time, which a JVM that shares its class archive warns of.
        options = ["-Xmx256m", "-XX:+UseSerialGC", "-Xshare:off"]
        self._process = subprocess.Popen(
            [java_executable(), *options, "-cp", f"{classes}{os.pathsep}{class_path}", MAIN_CLASS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(END_LIMIT_SECONDS)
        finally:
            self._process.kill()

    def ask(self, commands: Sequence[Command]) -> list[dict[str, Any]]:
        """Carry out commands; the first begins with a group that does not exist. An answer for each."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(commands) + "\n")
        self._process.stdin.flush()
        answers: list[dict[str, Any]] = json.loads(self._process.stdout.readline())
        return answers


def _compiled(class_path: str) -> Path:
    """The folder with the compiled judge, in the cache."""
    digest = hashlib.sha256(SOURCE.read_bytes() + class_path.encode()).hexdigest()[:16]
    folder = cache_folder() / f"judge-{digest}"
    with locked(cache_folder() / "lock"):
        if not (folder / "compiled").exists():
            compiler = shutil.which("javac")
            if compiler is None:
                raise MissingPrerequisite("the judge of consumer groups needs javac: install a JDK")
            subprocess.run(
                [compiler, "-nowarn", "-d", str(folder), "-cp", class_path, str(SOURCE)],
                check=True,
                capture_output=True,
            )
            (folder / "compiled").touch()
    return folder
