"""Archives of the classes that a JVM loads at its start, one for each kind of JVM.

Java calls it class data sharing (JEP 310, JEP 350): a JVM maps the archive instead of finding, reading and verifying
each class. :mod:`streaming.job.make_class_archive` makes them once.

An archive is in the Python environment, in ``share/spark-group-coordinator``, because it fits the jars of that
environment only. Its name has a hash of everything that must be the same when it is made and when it is used: Java
ignores an archive that does not fit, with a warning at every start.
"""

import hashlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from streaming.embedded.jars import find_java

BROKER = "broker"
"""The kind of the embedded broker."""


def archive_path(kind: str, jars: Iterable[Path], settings: Iterable[str] = ()) -> Path:
    """The path that the archive of a class path has, whether it exists or not.

    ``settings`` are further lines that must be the same. Raises MissingPrerequisite if there is no Java.
    """
    # The file with Java's own classes is different in each of its releases.
    java_classes = Path(find_java()).resolve().parent.parent / "lib" / "modules"
    parts = [*_described([java_classes, *jars]), *settings]
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return Path(sys.prefix, "share", "spark-group-coordinator", f"{kind}-{key}.jsa")


def options_to_use(archive: Path) -> list[str]:
    """The options of a JVM that uses an archive; none if there is no such file."""
    # Java 25 would log at each start which part of the archive it does not use.
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds=off"] if archive.is_file() else []


def options_to_make(archive: Path) -> list[str]:
    """The options of a JVM that makes an archive at its end."""
    return [f"-XX:ArchiveClassesAtExit={archive}", "-Xlog:disable"]


def _described(jars: Iterable[Path]) -> Iterator[str]:
    for jar in jars:
        if jar.is_file():
            found = jar.stat()
            # Java compares whole seconds, and a file from a container image has no more.
            yield f"{jar} {found.st_size} {int(found.st_mtime)}"
