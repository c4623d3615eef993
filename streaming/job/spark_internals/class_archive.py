"""Find the archive of the classes that the job's JVM loads.

Java calls it class data sharing (JEP 310, JEP 350): a JVM maps the archive instead of finding, reading and verifying
each class. :mod:`streaming.job.make_class_archive` makes it once.

The archive is in the Python environment, in ``share/spark-group-coordinator``, because it fits the jars of that
environment only. Its name is a hash of everything that must be the same when it is made and when it is used: Java
ignores an archive that does not fit, with a warning at every start.
"""

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark

from streaming.embedded.jars import find_java

CLASS_PATH_VARIABLES = ("SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""The environment variables that Spark's launcher reads for the class path."""


def class_archive(class_path: str) -> Path | None:
    """The archive for a driver with this extra class path; None when there is none."""
    path = class_archive_path(class_path)
    return path if path.is_file() else None


def class_archive_path(class_path: str) -> Path:
    """The path that the archive for a driver with this extra class path has, whether it exists or not."""
    key = hashlib.sha256("\n".join(_key_parts(class_path)).encode()).hexdigest()[:16]
    return Path(sys.prefix, "share", "spark-group-coordinator", f"classes-{key}.jsa")


def _key_parts(class_path: str) -> Iterator[str]:
    # The file with Java's own classes is different in each of its releases.
    java_classes = Path(find_java()).resolve().parent.parent / "lib" / "modules"
    # As Spark's launcher.
    spark_home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    jars = [java_classes, *map(Path, class_path.split(os.pathsep)), *sorted(Path(spark_home, "jars").glob("*"))]
    for jar in jars:
        if jar.is_file():
            found = jar.stat()
            # Java compares whole seconds, and a file from a container image has no more.
            yield f"{jar} {found.st_size} {int(found.st_mtime)}"
    for variable in CLASS_PATH_VARIABLES:
        yield f"{variable}={os.environ.get(variable)}"
