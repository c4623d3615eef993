"""Find the archive of the classes that the job's JVM loads (see :mod:`streaming.embedded.class_archive`)."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyspark

from streaming.embedded.class_archive import archive_path

JOB = "classes"
"""The kind of the job's JVM."""

CLASS_PATH_VARIABLES = ("SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""The environment variables that Spark's launcher reads for the class path."""


def class_archive(class_path: str) -> Path | None:
    """The archive for a driver with this extra class path; None when there is none."""
    path = class_archive_path(class_path)
    return path if path.is_file() else None


def class_archive_path(class_path: str) -> Path:
    """The path that the archive for a driver with this extra class path has, whether it exists or not."""
    variables = (f"{variable}={os.environ.get(variable)}" for variable in CLASS_PATH_VARIABLES)
    return archive_path(JOB, _jars(class_path), variables)


def _jars(class_path: str) -> Iterator[Path]:
    yield from map(Path, class_path.split(os.pathsep))
    # As Spark's launcher.
    spark_home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    yield from sorted(Path(spark_home, "jars").glob("*"))
