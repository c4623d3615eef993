"""The archive of the classes that the job's JVM loads: a start need not find, read and verify each of them.

Java calls it class data sharing (JEP 310, JEP 350). With it the job starts in two thirds of the time, also after a
kill. It is made once, by :mod:`streaming.make_class_archive`; without it everything works, and starts more slowly.

It lies in the Python environment (``share/spark-group-coordinator``), because it holds for the jars of that environment
alone. Its name comes from all that has to be the same where it is used: Java passes over one that does not fit, and
says so at every start.
"""

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

# Where pyspark's own launcher looks.
from pyspark.find_spark_home import _find_spark_home

from streaming.jars import find_java

__all__ = ["class_archive", "class_archive_path"]

CLASS_PATH_VARIABLES = ("SPARK_CONF_DIR", "SPARK_DIST_CLASSPATH", "HADOOP_CONF_DIR", "YARN_CONF_DIR")
"""What Spark's launcher adds to the class path."""


def class_archive(class_path: str) -> Path | None:
    """The archive for a driver with this extra class path, if there is one."""
    path = class_archive_path(class_path)
    return path if path.is_file() else None


def class_archive_path(class_path: str) -> Path:
    """Where the archive for a driver with this extra class path is, or would be."""
    key = hashlib.sha256("\n".join(_what_has_to_be_the_same(class_path)).encode()).hexdigest()[:16]
    return Path(sys.prefix, "share", "spark-group-coordinator", f"classes-{key}.jsa")


def _what_has_to_be_the_same(class_path: str) -> Iterator[str]:
    # Every release of Java has another one of these.
    java_classes = Path(find_java()).resolve().parent.parent / "lib" / "modules"
    jars = [java_classes, *map(Path, class_path.split(os.pathsep)), *sorted(Path(_find_spark_home(), "jars").iterdir())]
    for jar in jars:
        if jar.is_file():
            found = jar.stat()
            # Whole seconds, as Java compares them: an image that is pulled has no more.
            yield f"{jar} {found.st_size} {int(found.st_mtime)}"
    for variable in CLASS_PATH_VARIABLES:
        yield f"{variable}={os.environ.get(variable)}"
