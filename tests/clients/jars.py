"""Kafka's own client tools, from Maven: what `ivy.xml` beside this file names."""

import os
from pathlib import Path

from streaming.jars import resolve_file

__all__ = ["connect_class_path", "tools_class_path"]

IVY_FILE = Path(__file__).parent / "ivy.xml"


def tools_class_path() -> str:
    """What ``java -cp`` needs for the command-line tools."""
    return _class_path(0)


def connect_class_path() -> str:
    """What ``java -cp`` needs for a worker of Kafka Connect."""
    return _class_path(1)


def _class_path(configuration: int) -> str:
    return os.pathsep.join(map(str, resolve_file(IVY_FILE, ("tools", "connect"))[configuration]))
