"""`group-coordinator` with Spark's default settings: the other column of the table.

The same query, topics and command line as the job's own (`python -m tests.bench.default_settings run ...`), on a
session that is told nothing but what it cannot do without: where the jars are, the master, and that driver and
executor meet on this machine. Source and sink are told where Kafka is and which topic to read.

Not Spark's defaults, but the same in both columns: the number of state partitions (200 by default), the version of
Spark and of its connector, and the operator itself.
"""

import os
from unittest.mock import create_autospec, patch

from streaming import cli, job
from streaming.jars import Jars
from streaming.options import JobOptions
from streaming.session import forget_hadoop_defaults


def default_settings(options: JobOptions, jars: Jars) -> dict[str, str]:
    """Stands in for :func:`streaming.session.spark_settings`."""
    return {
        "spark.app.name": "group-coordinator",
        "spark.master": options.master,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars.connector)),
    }


if __name__ == "__main__":
    keep_hadoop_defaults = create_autospec(forget_hadoop_defaults)
    with patch.multiple(
        job, SOURCE={}, SINK={}, spark_settings=default_settings, forget_hadoop_defaults=keep_hadoop_defaults
    ):
        cli.main()
