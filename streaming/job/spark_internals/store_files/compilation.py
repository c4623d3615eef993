"""The class with which Spark writes the files of a checkpoint at s3a://."""

from pathlib import Path

from streaming.embedded.jars import Report
from streaming.job.spark_internals.scala_jars import compiled_jar

CLASS = "groupcoordinator.StoreFiles"
SOURCE = Path(__file__).with_name("StoreFiles.scala")


def store_files_jar(report: Report | None = None) -> Path:
    """The jar with :data:`CLASS`; see :func:`.compiled_jar` for the errors."""
    return compiled_jar("store-files", SOURCE, report)
