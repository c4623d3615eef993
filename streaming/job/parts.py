"""The parts of the job that its caller may replace: a measurement compares the parts that ship with other ones."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from pyspark.sql import DataFrame, GroupedData

from streaming.embedded.jars import Jars
from streaming.job.group_batch.settings import Settings
from streaming.job.operator import OUTPUT_SCHEMA, STATE_SCHEMA, GroupOperator
from streaming.job.options import JobOptions
from streaming.job.session import SINK, SOURCE, spark_settings


def rows_of_groups(groups: GroupedData, settings: Settings) -> DataFrame:
    """The operator's rows, of the requests by group."""
    return groups.applyInPandasWithState(
        GroupOperator(settings), OUTPUT_SCHEMA, STATE_SCHEMA, "append", "ProcessingTimeTimeout"
    )


class JobParts(NamedTuple):
    """What a job is made of; the defaults are those of the job as it ships."""

    spark_settings: Callable[[JobOptions, Jars], dict[str, str]] = spark_settings
    """All settings of the Spark session."""

    source: Mapping[str, str] = MappingProxyType(SOURCE)
    """Options of the source, beside the brokers' address and the topic."""

    sink: Mapping[str, str] = MappingProxyType(SINK)
    """Options of the sink, beside the brokers' address."""

    rows_of_groups: Callable[[GroupedData, Settings], DataFrame] = rows_of_groups
    """The operator: rows of :data:`~streaming.job.operator.OUTPUT_SCHEMA` of the requests by group."""

    keeps_hadoop_defaults: bool = False
    """Whether Hadoop reads its default configuration, which takes time at each write of a local checkpoint."""


SHIPPED = JobParts()
