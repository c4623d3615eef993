"""Docker or podman, and the containers of the image that it runs."""

import subprocess
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from tests.docs.markdown import ROOT
from tests.support.processes import STOP_LIMIT_SECONDS, Process

IMAGE = "group-coordinator"

LIMIT_SECONDS = 300.0

_FIND = """
. deploy/image/engine.sh
ENGINE=$(find_engine)
prepare_containers "$0"
printf '%s\\n%s\\n' "$ENGINE" "${CONTAINERS_CONF:-}"
"""


class Engine:
    """The program that runs containers; finds it as ``make image`` does. Skips the test where none can.

    Fails without the image.
    """

    def __init__(self) -> None:
        found = subprocess.run(["sh", "-eu", "-c", _FIND, IMAGE], cwd=ROOT, capture_output=True, text=True)
        if found.returncode != 0:
            pytest.skip(found.stderr.strip())
        self.program, configuration = found.stdout.split("\n")[:2]
        self.environment = {"CONTAINERS_CONF": configuration} if configuration else {}
        if self.program == "buildah":
            pytest.skip("buildah runs no containers in the background: install podman or docker")

    def __call__(self, *arguments: str) -> str:
        """Run a command of the engine; returns its standard output. Raises AssertionError with its errors."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"{self.program} {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the engine, whatever its exit code."""
        command = ["env", *(f"{key}={value}" for key, value in self.environment.items()), self.program, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)


class Container(Process):
    """A container of the image, removed with its process. As a context manager, it is killed at the end.

    service: what compose.yaml says about it, with addresses of this machine. volumes: the names of volumes by those in
    ``service``; what is not among them is a folder of this machine.
    """

    def __init__(self, engine: Engine, service: Mapping[str, Any], volumes: Mapping[str, str] | None = None) -> None:
        self._engine = engine
        self.id = f"test-{uuid.uuid4().hex[:12]}"
        # Without systemd, podman does not run health checks, and complains.
        options = [*read_only(engine), "--no-healthcheck", "--network", "host", *_options(service, volumes or {})]
        run = [engine.program, "run", "--rm", "--name", self.id, *options, IMAGE, *service["command"]]
        super().__init__(f"container {service['command'][0]}", run, environment=engine.environment)

    def execute(self, *command: str) -> str:
        """Run a command in the container; returns its standard output. Raises AssertionError with its errors."""
        return self._engine("exec", self.id, *command)

    def kill(self) -> None:
        """``kill -9`` all of the container, and return when it is gone."""
        if self.is_running:
            with suppress(AssertionError):
                self._engine("kill", "--signal", "KILL", self.id)
            self.wait(STOP_LIMIT_SECONDS)
        super().kill()


def read_only(engine: Engine) -> list[str]:
    """The options of a container that can write to /tmp and its volumes only."""
    # Podman would add more folders to write to.
    return ["--read-only", *(["--read-only-tmpfs=false"] if engine.program == "podman" else [])]


def _options(service: Mapping[str, Any], volumes: Mapping[str, str]) -> Sequence[str]:
    """The command line's form of a service. Raises KeyError for a key that none is known for."""
    options: list[str] = []
    for key, value in service.items():
        match key:
            case "environment":
                options += [f"--env={name}={text}" for name, text in value.items()]
            case "volumes":
                named = (volume.partition(":") for volume in value)
                options += [f"--volume={volumes.get(name, name)}:{place}" for name, _, place in named]
            case "tmpfs" | "cap_drop" | "security_opt":
                options += [f"--{key.replace('_', '-')}={text}" for text in value]
            case "read_only":
                assert value is True
            # The rest concerns other containers, or what happens when this one ends.
            case "command" | "image" | "build" | "ports" | "depends_on" | "restart" | "stop_grace_period":
                pass
            case _:
                raise KeyError(key)
    return options
