"""The jar of the map of groups, which a local driver has ahead of Spark's own jars on its class path."""

from pathlib import Path

from streaming.embedded.jars import Report
from streaming.job.spark_internals.registry import GROUP_MAP, is_used
from streaming.job.spark_internals.scala_jars import compiled_jar, jar_path

NAME = "group-map"
SOURCE = Path(__file__).with_name("GroupMap.scala")

EXTENSION = "org.apache.spark.sql.execution.streaming.state.BatchTime"
"""The class for ``spark.sql.extensions``."""


def group_map_jars() -> list[Path]:
    """The jar, if it is there and may be used.

    Without it Spark's own class has the groups: the job works, and its state has the same bytes. So a start does not
    wait for the compiler.
    """
    jar = jar_path(NAME, SOURCE)
    return [jar] if is_used(GROUP_MAP) and jar.is_file() else []


def needs_group_map_jar() -> bool:
    """Whether the job could use the jar, and there is none."""
    return is_used(GROUP_MAP) and not jar_path(NAME, SOURCE).is_file()


def make_group_map_jar(report: Report | None = None) -> None:
    """Make the jar unless it is there, or may not be used; see :func:`.compiled_jar` for the errors."""
    if is_used(GROUP_MAP):
        compiled_jar(NAME, SOURCE, report)
