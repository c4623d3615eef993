"""The jars of Kafka's client tools, from Maven, as listed in ``ivy.xml``; run as a program, it downloads them."""

import os
from collections.abc import Callable
from pathlib import Path

from streaming.embedded.jars import resolve_file

__all__ = ["connect_class_path", "tools_class_path"]

IVY_FILE = Path(__file__).parent / "ivy.xml"


def tools_class_path() -> str:
    """The class path of the command-line tools."""
    tools, _ = _resolve()
    return tools


def connect_class_path() -> str:
    """The class path of a Kafka Connect worker."""
    _, connect = _resolve()
    return connect


def _resolve(report: Callable[[str], None] | None = None) -> list[str]:
    return [os.pathsep.join(map(str, jars)) for jars in resolve_file(IVY_FILE, ("tools", "connect"), report)]


if __name__ == "__main__":
    _resolve(lambda line: print(line, flush=True))
