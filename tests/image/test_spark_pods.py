"""Spark's Kubernetes client starts the image's containers as drivers and executors: by a word, and by variables."""

from pathlib import Path
from typing import Any

import pytest

from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.ports import free_address
from tests.image.compose import services
from tests.image.engine import Container, Engine
from tests.image.test_compose import await_ready

pytestmark = [pytest.mark.jvm, pytest.mark.timeout(1200)]

APPLICATION = Path("/opt/group-coordinator/share/spark-group-coordinator/application.py")

EXECUTOR = {
    "SPARK_JAVA_OPT_0": "-XX:+UseSerialGC",
    "SPARK_JAVA_OPT_1": "-Dof-the-test=two words",
    "SPARK_EXECUTOR_MEMORY": "256m",
    "SPARK_APPLICATION_ID": "test",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "1",
    "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
    "SPARK_EXECUTOR_POD_NAME": "test-exec-1",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}


def service(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """A service as compose.yaml's job, with another command and environment, and without a volume."""
    return {**services()["coordinator"], "command": command, "environment": environment, "volumes": []}


def test_a_driver_runs_the_job_with_the_image_s_jars(engine: Engine, broker: EmbeddedBroker) -> None:
    options = [
        f"--bootstrap-servers={broker.bootstrap_servers}",
        "--checkpoint=/tmp/checkpoint",
        "--topic-prefix=pods-",
    ]
    command = ["driver", "--master", "local[1]", str(APPLICATION), *options, "--metrics-port=0"]
    with Container(engine, service(command, {"SPARK_DRIVER_BIND_ADDRESS": "127.0.0.1"})) as driver:
        driver.start()
        await_ready(driver)


def test_an_executor_looks_for_its_driver(engine: Engine) -> None:
    address = free_address()
    driver = {"SPARK_DRIVER_URL": f"spark://CoarseGrainedScheduler@{address}"}
    with Container(engine, service(["executor"], EXECUTOR | driver)) as executor:
        executor.start()
        executor.await_line("that it looks for its driver", lambda line: address in line and "refused" in line)
        assert executor.wait() != 0
