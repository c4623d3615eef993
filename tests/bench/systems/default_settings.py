"""`group-coordinator` with Spark's default settings: `python -m tests.bench.systems.default_settings run ...`.

Query, topics and command line are those of the job. The session has only the settings without which it cannot run:
the jars, the master, and the driver's address on this machine. Source and sink have only the address of Kafka and
the topic. Three things are the job's and not Spark's defaults: the number of state partitions (Spark's is 200), the
versions of Spark and its connector, and the operator.
"""

import os
from unittest.mock import create_autospec, patch

from streaming.cli import main as cli
from streaming.embedded.jars import Jars
from streaming.job import query
from streaming.job.lifecycle import job_session
from streaming.job.options import JobOptions
from streaming.job.spark_internals.hadoop_defaults import drop_hadoop_defaults


def default_settings(options: JobOptions, jars: Jars) -> dict[str, str]:
    """Replace :func:`streaming.job.session.spark_settings`."""
    return {
        "spark.app.name": "group-coordinator",
        "spark.master": options.master,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars.connector)),
    }


if __name__ == "__main__":
    keep_hadoop_defaults = create_autospec(drop_hadoop_defaults)
    with (
        patch.multiple(query, SOURCE={}, SINK={}),
        patch.multiple(job_session, spark_settings=default_settings, drop_hadoop_defaults=keep_hadoop_defaults),
    ):
        cli.main()
