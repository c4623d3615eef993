"""What an image is built from: versions that agree, scripts that say in a line what they lack, the health check."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from docs.generate import ROOT
from streaming.contract.monitoring_server import Check, Health, serving_monitoring
from streaming.embedded.ports import HOST, free_ports

DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
SCRIPTS = sorted((DEPLOY / "image").glob("*.sh"))
HEALTH_CHECK = DEPLOY / "image" / "healthcheck.py"


def test_compose_has_the_kafka_of_the_tests() -> None:
    image = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["kafka"]["image"]
    ivy = (ROOT / "streaming" / "embedded" / "ivy.xml").read_text()
    assert image.partition(":")[2] == re.findall(r'name="kafka_2\.13" rev="([^"]+)"', ivy)[0]


def test_the_base_that_debootstrap_makes_is_the_one_that_the_dockerfile_names() -> None:
    (base,) = re.findall(r"^FROM (\S+) AS runtime$", DOCKERFILE, re.M)
    (suite,) = re.findall(r"^suite=(\S+)$", (DEPLOY / "image" / "base.sh").read_text(), re.M)
    assert base == f"debian:{suite}-slim"


def test_the_user_of_the_image_is_a_number_and_owns_the_volume() -> None:
    (user,) = re.findall(r"^USER (\d+):\1$", DOCKERFILE, re.M)
    assert f"install --directory --owner {user} --group {user} /checkpoint" in DOCKERFILE
    assert "VOLUME /checkpoint" in DOCKERFILE


def test_the_context_of_the_build_has_every_file_that_it_copies() -> None:
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")]
    copied = " ".join(re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.M)).split()
    assert copied
    assert [name for name in copied if not any(name == each or name.startswith(f"{each}/") for each in allowed)] == []
    assert [name for name in allowed if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_a_shell_understands_the_script(script: Path) -> None:
    checked = subprocess.run(["sh", "-n", script], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def run_without_programs(folder: Path, script: str, *arguments: str, **variables: str) -> str:
    """Run a script where only ``dirname`` and ``id`` are on the PATH; returns what it says as it fails."""
    for program in ("dirname", "id"):
        found = shutil.which(program)
        assert found
        (folder / program).symlink_to(found)
    command = ["/bin/sh", str(DEPLOY / "image" / script), *arguments]
    failed = subprocess.run(command, env={"PATH": str(folder), **variables}, capture_output=True, text=True)
    assert (failed.returncode, failed.stdout) == (1, "")
    return failed.stderr


def test_a_build_without_an_engine_says_what_to_install(tmp_path: Path) -> None:
    assert run_without_programs(tmp_path, "build.sh") == (
        "error: no docker, podman or buildah works here: install one of them, or start Docker's server\n"
    )


def test_a_build_with_an_engine_that_is_not_here_names_it(tmp_path: Path) -> None:
    assert run_without_programs(tmp_path, "build.sh", ENGINE="nerdctl") == "error: nerdctl was not found\n"


def test_a_base_that_can_neither_be_pulled_nor_made_says_what_to_install(tmp_path: Path) -> None:
    assert run_without_programs(tmp_path, "base.sh", "debian:bookworm-slim") == (
        "error: debian:bookworm-slim cannot be pulled, and is not made here without debootstrap: install debootstrap\n"
    )


def check_health(**ports: int) -> str:
    """What the health check says as it fails; empty if it holds."""
    variables = {f"GROUP_COORDINATOR_{name}": str(port) for name, port in ports.items()}
    command = [sys.executable, "-I", str(HEALTH_CHECK)]
    checked = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    assert checked.returncode == bool(checked.stderr)
    return checked.stderr


def health(*, live: bool) -> Health:
    """The health of a service with one check."""
    return Health(lambda: [Check("reader", live, "as the test wants it")], list)


@pytest.mark.parametrize("port_of", ["METRICS_PORT", "GATEWAY_METRICS_PORT"])
def test_a_container_is_healthy_if_its_job_or_its_gateway_is_live(port_of: str) -> None:
    with serving_monitoring(HOST, 0, CollectorRegistry(), health(live=True)) as port:
        assert check_health(**{port_of: port}) == ""
    with serving_monitoring(HOST, 0, CollectorRegistry(), health(live=False)) as port:
        assert "as the test wants it" in check_health(**{port_of: port})


def test_a_container_without_a_service_is_not_healthy() -> None:
    job, gateway = free_ports(2)
    assert check_health(METRICS_PORT=job, GATEWAY_METRICS_PORT=gateway).startswith(
        "neither the job nor the gateway answers: "
    )
