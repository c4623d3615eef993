"""The session that the query runs in."""

from pathlib import Path
from typing import Any

from streaming.jars import resolve_jars
from streaming.options import JobOptions
from streaming.session import forget_hadoop_defaults, spark_session, spark_settings

A_FEW = 100
"""Spark's own settings are among them; Hadoop's defaults are 1,100."""


def test_a_batch_has_none_of_hadoops_defaults_to_serialize(tmp_path: Path) -> None:
    options = JobOptions(bootstrap_servers="127.0.0.1:1", checkpoint=str(tmp_path), driver_memory="512m")
    settings = spark_settings(options, resolve_jars())
    with spark_session(settings) as spark:
        forget_hadoop_defaults(spark, settings)
        session: Any = spark._jsparkSession
        for_tasks = session.sessionState().newHadoopConf()
        assert for_tasks.size() < A_FEW
        assert for_tasks.get("fs.file.impl") == settings["spark.hadoop.fs.file.impl"]
