"""Hadoop's configuration without its defaults."""

from typing import Any

import msgspec
from pyspark.sql import SparkSession

from streaming.job.spark_internals.java_objects import hadoop_configuration, java_virtual_machine
from streaming.job.spark_internals.registry import HADOOP_CONFIGURATION, is_used

DEFAULTS_FILE = "-default.xml"
"""How the names of the files end in which Hadoop's jars bring their defaults: ``core-default.xml`` and others."""


class _Property(msgspec.Struct):
    key: str
    resource: str


class _Dump(msgspec.Struct):
    properties: list[_Property]


def drop_hadoop_defaults(spark: SparkSession) -> None:
    """Leave in Hadoop's configuration only what users and Spark have set, in files or programmatically.

    Every batch serializes the whole configuration for its tasks, with 1,100 defaults of HDFS, YARN, S3 and others: a
    sixth of the driver's work. A local checkpoint needs none of them. Values keep what they took from a default, as in
    ``${hadoop.tmp.dir}/x``.
    """
    if not is_used(HADOOP_CONFIGURATION, spark):
        return
    # Loading one of Hadoop's classes later would bring all defaults back; the session's state is the last to load some.
    session: Any = spark._jsparkSession
    session.sessionState()
    configuration = hadoop_configuration(spark)
    jvm = java_virtual_machine(spark)
    dump = jvm.java.io.StringWriter()
    jvm.org.apache.hadoop.conf.Configuration.dumpConfiguration(configuration, dump)
    properties = msgspec.json.decode(dump.toString(), type=_Dump).properties
    # The dump hides the values of passwords.
    chosen = {each.key: configuration.get(each.key) for each in properties if not each.resource.endswith(DEFAULTS_FILE)}
    configuration.clear()
    for key, value in chosen.items():
        configuration.set(key, value)
