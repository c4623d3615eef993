"""The wheel, as a user installs it: an empty environment, an empty folder, and nothing of the source tree."""

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

from streaming.embedded.jars import cache_folder
from tests.cli.consumer_group import READY, consume_and_commit, gateway_address
from tests.support.coordinator_process import SHORT_LIVED_JVMS
from tests.support.processes import Process

ROOT = Path(__file__).resolve().parents[2]
NOT_SOURCE = ignore_patterns(".*", "build", "dist", "bench-results", "*.egg-info", "__pycache__")
BUILD_SECONDS, INSTALL_SECONDS, READY_SECONDS, DEMO_SECONDS = 300, 600, 300, 600

TEMPLATES = {
    path.relative_to(ROOT).as_posix()
    for room in ("page", "ui")
    for path in (ROOT / "streaming/explain" / room / "template").iterdir()
}
PACKAGE_DATA = {"streaming/embedded/ivy.xml", "streaming/job/log4j2.properties", "streaming/py.typed", *TEMPLATES}

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(BUILD_SECONDS + INSTALL_SECONDS + DEMO_SECONDS)]


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the sdist and the wheel, built from a copy of the source tree."""
    source = tmp_path_factory.mktemp("source") / "project"
    copytree(ROOT, source, ignore=NOT_SOURCE)
    command = [sys.executable, "-m", "build", "--outdir", str(source / "dist"), str(source)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_SECONDS)
    assert built.returncode == 0, built.stdout + built.stderr
    return source / "dist"


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    """The one wheel."""
    [path] = distributions.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def empty_environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` folder of a virtual environment that holds nothing but pip."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def installed(empty_environment: Path, wheel: Path) -> Path:
    """The environment after ``pip install 'wheel[job,cli,gateway]'``, and before that of the wheel without extras."""
    install(empty_environment, str(wheel))
    # Checked here because the next installation ends this state.
    bare = subprocess.run([empty_environment / "group-coordinator"], capture_output=True, text=True, env={})
    needed = "group-coordinator needs typer, rich: pip install 'spark-group-coordinator[cli]'\n"
    assert (bare.returncode, bare.stdout, bare.stderr) == (1, "", needed)
    install(empty_environment, f"{wheel}[job,cli,gateway]")
    return empty_environment


def install(environment: Path, requirement: str) -> None:
    # Isolated (-I), because a PYTHONPATH with the source tree would count as an installation.
    # What is imported is compiled then; pip would compile everything.
    command = [str(environment / "python"), "-I", "-m", "pip", "install", "--quiet", "--no-compile", requirement]
    done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def group_coordinator(installed: Path, tmp_path: Path) -> list[str]:
    """The installed command in an empty folder and with an empty home. Only the jars' cache is the user's."""
    folder = tmp_path / "empty"
    folder.mkdir()
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "JAVA_HOME", "LANG")}
    folders = {"HOME": str(folder), "TMPDIR": str(tmp_path), "GROUP_COORDINATOR_CACHE": str(cache_folder())}
    variables = {**kept, **SHORT_LIVED_JVMS, **folders}
    clean = [
        "env",
        "--ignore-environment",
        f"--chdir={folder}",
        *(f"{key}={value}" for key, value in variables.items()),
    ]
    return [*clean, str(installed / "group-coordinator")]


def test_the_wheel_holds_the_two_packages_and_their_data(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    packages = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
    assert packages == {"coordinator_logic", "streaming"}
    assert names >= PACKAGE_DATA


def test_the_sdist_holds_what_the_wheel_is_built_from(distributions: Path) -> None:
    [sdist] = distributions.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {"pyproject.toml", "README.md", "LICENSE", *PACKAGE_DATA}


def test_run_with_broker_and_gateway_serves_a_consumer_group(group_coordinator: list[str]) -> None:
    command = [*group_coordinator, "run", "--embedded", "--gateway", "--gateway-listen", "127.0.0.1:0"]
    running = Process("run", command)
    try:
        running.start()
        ready = running.await_line("that the gateway is ready", lambda line: READY in line, READY_SECONDS)
        running.await_line("that it is ready", lambda line: line.startswith("ready"), READY_SECONDS)
        consume_and_commit(gateway_address(ready))
        assert running.stop() == 0
    finally:
        running.kill()


def test_demo_passes_without_kafka_python(group_coordinator: list[str]) -> None:
    demo = subprocess.run([*group_coordinator, "demo", "--json"], capture_output=True, text=True, timeout=DEMO_SECONDS)
    assert demo.returncode == 0, demo.stderr
    assert json.loads(demo.stdout)["passed"]
    assert "kafka-python is not installed" in demo.stderr
