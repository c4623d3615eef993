"""The program for ``spark-submit``: ``run``, at the master and with the settings that spark-submit has been given.

``spark-submit [options] submitted.py [options of run]``. Options of the driver's Java, as its memory, work only where
they are given to spark-submit, which has started it.
"""

import runpy
import sys
from collections.abc import Mapping, Sequence

from pyspark import SparkConf, SparkContext

from streaming.job.options import REFUSED
from streaming.job.spark_internals.java_objects import JavaFailure

MASTER, NAME = "spark.master", "spark.app.name"
"""The setting that becomes an option of ``run``, and one that spark-submit sets to the name of this file."""

CONNECTOR = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def words_of_run(settings: Mapping[str, str], options: Sequence[str]) -> list[str]:
    """The command line of ``run`` for settings of spark-submit and the options after its program.

    Settings for which ``run`` has an option of its own are left out: spark-submit has heeded them.
    """
    kept = {key: value for key, value in settings.items() if key not in REFUSED and key != NAME}
    return ["run", "--master", settings[MASTER], *(f"--set={key}={value}" for key, value in kept.items()), *options]


def submitted_settings() -> dict[str, str]:
    """The settings of the JVM that has started this program. Exits with a line if it lacks the connector to Kafka."""
    SparkContext._ensure_initialized()
    assert SparkContext._jvm is not None
    settings = dict(SparkConf().getAll())
    try:
        SparkContext._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(CONNECTOR)
    except JavaFailure:
        version = SparkContext._jvm.org.apache.spark.package.SPARK_VERSION()
        sys.exit(
            "error: spark-submit has no connector to Kafka: give it "
            f"--packages org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"
        )
    # The session connects to the JVM anew.
    SparkContext._gateway = SparkContext._jvm = None
    return settings


if __name__ == "__main__":
    sys.argv[1:] = words_of_run(submitted_settings(), sys.argv[1:])
    # By its name, since the command line imports the rooms of this module.
    runpy.run_module("streaming.cli", run_name="__main__")
