"""The wheel, as a user installs it: an empty environment, an empty folder, and nothing of the source tree."""

import json
import subprocess
from pathlib import Path
from shutil import copytree

import pytest

from streaming.embedded.jars import cache_folder
from tests.cli.consumer_group import READY, consume_and_commit, gateway_address
from tests.release.distributions import (
    BUILD_SECONDS,
    INSTALL_SECONDS,
    NOT_SOURCE,
    Distributions,
    build,
    check_contents,
    clean_command,
    data_files,
    empty_environment,
    install,
)
from tests.support.coordinator_process import SHORT_LIVED_JVMS
from tests.support.processes import Process

ROOT = Path(__file__).resolve().parents[2]
READY_SECONDS, DEMO_SECONDS = 300, 600

PACKAGE_DATA = {
    "streaming/embedded/ivy.xml",
    "streaming/explain/page/template/page.html",
    "streaming/explain/page/template/picture.html",
    "streaming/explain/ui/template/ui.js",
    "streaming/job/log4j2.properties",
    "streaming/job/spark_internals/group_map/GroupMap.scala",
    "streaming/job/spark_internals/store_files/StoreFiles.scala",
    "streaming/py.typed",
}

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(BUILD_SECONDS + INSTALL_SECONDS + DEMO_SECONDS)]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source tree, in which a build may leave files."""
    folder = tmp_path_factory.mktemp("source") / "project"
    copytree(ROOT, folder, ignore=NOT_SOURCE)
    return folder


@pytest.fixture(scope="module")
def distributions(source: Path) -> Distributions:
    """The sdist and the wheel."""
    return build(source, source / "dist")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` folder of a virtual environment that holds nothing but pip."""
    return empty_environment(tmp_path_factory.mktemp("environment"))


@pytest.fixture(scope="module")
def installed(environment: Path, distributions: Distributions) -> Path:
    """The environment after ``pip install 'wheel[job,cli,gateway]'``, and before that of the wheel without extras."""
    install(environment, str(distributions.wheel))
    # Checked here because the next installation ends this state.
    bare = subprocess.run([environment / "group-coordinator"], capture_output=True, text=True, env={})
    needed = "group-coordinator needs typer, rich, tornado: pip install 'spark-group-coordinator[cli]'\n"
    assert (bare.returncode, bare.stdout, bare.stderr) == (1, "", needed)
    install(environment, f"{distributions.wheel}[job,cli,gateway]")
    return environment


@pytest.fixture
def group_coordinator(installed: Path, tmp_path: Path) -> list[str]:
    """The installed command in an empty folder and with an empty home. Only the jars' cache is the user's."""
    folder = tmp_path / "empty"
    folder.mkdir()
    variables = {**SHORT_LIVED_JVMS, "TMPDIR": str(tmp_path), "GROUP_COORDINATOR_CACHE": str(cache_folder())}
    return clean_command(folder, [str(installed / "group-coordinator")], variables)


def test_the_wheel_and_the_sdist_hold_the_two_packages_and_their_data(
    distributions: Distributions, source: Path
) -> None:
    assert data_files(source) >= PACKAGE_DATA
    check_contents(distributions, source)


@pytest.mark.long
def test_run_with_broker_and_gateway_serves_a_consumer_group(group_coordinator: list[str]) -> None:
    command = [*group_coordinator, "run", "--embedded", "--gateway", "--gateway-listen", "127.0.0.1:0"]
    with Process("run", command) as running:
        running.start()
        ready = running.await_line("that the gateway is ready", lambda line: READY in line, READY_SECONDS)
        running.await_line("that it is ready", lambda line: line.startswith("ready"), READY_SECONDS)
        consume_and_commit(gateway_address(ready))
        assert running.stop() == 0


@pytest.mark.long
def test_demo_passes_without_kafka_python(group_coordinator: list[str]) -> None:
    demo = subprocess.run([*group_coordinator, "demo", "--json"], capture_output=True, text=True, timeout=DEMO_SECONDS)
    assert demo.returncode == 0, demo.stderr
    assert json.loads(demo.stdout)["passed"]
    assert "kafka-python is not installed" in demo.stderr
