"""The times that a real JVM reports."""

from pathlib import Path

import pytest

from streaming.embedded.jars import resolve_jars
from streaming.job.monitoring.slow_batches.java_times import JavaTimes
from streaming.job.options import load_options
from streaming.job.session import spark_session, spark_settings
from streaming.job.spark_internals.java_objects import java_virtual_machine
from tests.support.coordinator_process import SHORT_LIVED_JVM

pytestmark = pytest.mark.jvm


def test_the_times_of_collectors_and_compilers_grow(tmp_path: Path) -> None:
    options = load_options({"bootstrap_servers": "kafka:9092", "checkpoint": str(tmp_path), **SHORT_LIVED_JVM}, {})
    with spark_session(spark_settings(options, resolve_jars())) as spark:
        java = JavaTimes(spark)
        before = java.used()
        java_virtual_machine(spark).java.lang.System.gc()
        after = java.used()
    assert after["collecting"] > before["collecting"]
    assert after["compiling"] >= before["compiling"] > 0
