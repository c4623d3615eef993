"""Commands at a cluster: doctor, and the job by spark-submit."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from streaming.cli.commands import submitted
from streaming.client import CoordinatorClient
from streaming.embedded.broker import EmbeddedBroker
from streaming.embedded.jars import resolve_jars
from tests.support.coordinator_process import READY_LIMIT_SECONDS, CoordinatorProcess, reports_ready
from tests.support.processes import Process, descendants, names
from tests.support.topics import unique


def test_doctor_tells_what_the_executors_have_and_that_they_reach_the_checkpoint(
    coordinator: CoordinatorProcess, options: dict[str, object]
) -> None:
    settings = [f"--set={key}={value}" for key, value in options.items() if key.startswith("spark.")]
    line = ["doctor", "--json", "--master", str(options["master"]), "--checkpoint", str(coordinator.checkpoint)]
    command = [sys.executable, "-m", "streaming.cli", *line, *settings]
    examined = subprocess.run(command, capture_output=True, text=True, timeout=READY_LIMIT_SECONDS)
    findings = {each["check"]: each for each in json.loads(examined.stdout)}
    assert findings["executors"]["status"] == "ok", findings
    assert "2 executors on " in findings["executors"]["detail"]
    assert ": Python 3.11." in findings["executors"]["detail"]
    assert "; Java 17" in findings["executors"]["detail"]
    assert findings["executors' clocks"]["status"] == "ok", findings
    assert findings["executors' checkpoint"] == {
        "check": "executors' checkpoint",
        "status": "ok",
        "detail": f"an executor has read {coordinator.checkpoint}",
        "advice": "",
    }


def test_spark_submit_runs_the_job_at_its_master_with_its_settings(
    broker: EmbeddedBroker, options: dict[str, object], group: str, tmp_path: Path
) -> None:
    prefix = f"{unique('submitted')}-"
    spark_submit = Path(sys.executable).with_name("spark-submit")
    command = [str(spark_submit), "--master", str(options["master"])]
    command += ["--jars", ",".join(map(str, resolve_jars().connector)), "--driver-memory", "512m"]
    command += [f"--conf={key}={value}" for key, value in options.items() if key.startswith("spark.")]
    command += [submitted.__file__, "-b", broker.bootstrap_servers, "--topic-prefix", prefix, "--json"]
    command += ["--checkpoint", str(tmp_path / "checkpoint"), "--set=group.initial.rebalance.delay.ms=0"]
    with Process("spark-submit", command, environment={"PYSPARK_DRIVER_PYTHON": sys.executable}) as job:
        job.start()
        job.await_line("that it is ready", reports_ready, READY_LIMIT_SECONDS)
        with CoordinatorClient(broker.bootstrap_servers, topic_prefix=prefix, request_timeout_ms=120_000) as client:
            assert client.describe_groups([group]).groups[0].group_state == "Dead"
        (driver,) = (pid for pid in descendants(job.pid) if names(pid, submitted.__file__.encode()))
        os.kill(driver, signal.SIGTERM)
        job.wait()


def test_spark_submit_without_the_connector_says_so(options: dict[str, object]) -> None:
    spark_submit = Path(sys.executable).with_name("spark-submit")
    environment = {**os.environ, "PYSPARK_DRIVER_PYTHON": sys.executable}
    command = [str(spark_submit), "--master", str(options["master"]), submitted.__file__, "-b", "127.0.0.1:9"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=READY_LIMIT_SECONDS, env=environment)
    assert ended.returncode == 1
    # spark-submit prints what its program writes to standard error on standard output.
    assert "error: spark-submit has no connector to Kafka: give it --packages org.apache.spark:spark-" in ended.stdout
