"""The containers of the chart's pods in the image, with the arguments, variables and files of Kubernetes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.ports import HOST, free_ports
from tests.chart.cases import APACHE, KUBEFLOW
from tests.chart.commands import RenderedCommand, rendered_commands
from tests.chart.helm import Values, merged
from tests.cli.consumer_group import consume_and_commit
from tests.image.compose import services
from tests.image.engine import Container, Engine
from tests.image.test_compose import await_ready

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(1200)]


def values_here(broker: EmbeddedBroker, prefix: str, gateway_port: int = 0) -> Values:
    """Values of the chart for this machine, whose network all containers share."""
    job, gateway = free_ports(2)
    return {
        "kafka": {"bootstrapServers": broker.bootstrap_servers, "topicPrefix": prefix},
        "job": {"options": {"metrics-port": job}},
        "gateway": {
            "port": gateway_port or free_ports(1)[0],
            "advertisedHost": HOST,
            "options": {"metrics-port": gateway},
        },
    }


@contextmanager
def started(engine: Engine, command: RenderedCommand, folder: Path) -> Iterator[Container]:
    """A container of a pod, which is ready. Its ConfigMaps and Secrets are written below the folder."""
    for path, text in command.files.items():
        file = folder / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    mounted = {str(Path(path).parent) for path in command.files}
    kept = [path for path in command.folders if path != "/tmp"]
    service: dict[str, Any] = {
        **services()["coordinator"],
        "command": words(command),
        "environment": command.environment,
        "volumes": [f"{folder}{path}:{path}:ro" for path in mounted] + [f"kept:{path}" for path in kept],
    }
    volume = engine("volume", "create").strip()
    try:
        with Container(engine, service, {"kept": volume}) as container:
            container.start()
            await_ready(container)
            yield container
    finally:
        engine("volume", "rm", volume)


def words(command: RenderedCommand) -> list[str]:
    """What follows the image's entry point; Spark's Kubernetes client starts drivers so, at another master."""
    if command.main_file is None:
        return command.arguments
    settings = [f"--conf={key}={value}" for key, value in command.spark_conf.items()]
    return ["driver", "--master=local[1]", *settings, command.main_file, *command.arguments]


def test_the_pods_of_job_and_gateway_serve_a_consumer_group(
    engine: Engine, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    job, gateway = sorted(
        rendered_commands(values_here(broker, "chart-", port)), key=lambda each: each.container, reverse=True
    )
    with started(engine, job, tmp_path / "job"), started(engine, gateway, tmp_path / "gateway"):
        consume_and_commit(f"{HOST}:{port}")


@pytest.mark.parametrize("kind", [KUBEFLOW, APACHE], ids=["Kubeflow", "Apache"])
def test_the_driver_of_an_operators_application_is_the_job(
    engine: Engine, broker: EmbeddedBroker, tmp_path: Path, kind: Values
) -> None:
    values = merged(values_here(broker, f"{tmp_path.name}-"), kind)
    driver = next(each for each in rendered_commands(values) if each.main_file)
    spark = {"SPARK_DRIVER_BIND_ADDRESS": HOST}
    with started(engine, replace(driver, environment=driver.environment | spark), tmp_path):
        pass
