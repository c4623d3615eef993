"""`group-coordinator` with Spark's default settings: `python -m tests.bench.systems.default_settings run ...`.

Query and topics are those of the job. The session has only the settings without which it cannot run:
the jars, the master, and the driver's address on this machine. Source and sink have only the address of Kafka and
the topic. Three things are the job's and not Spark's defaults: the number of state partitions (Spark's is 200), the
versions of Spark and its connector, and the operator.
"""

import os

from streaming.embedded.jars import Jars
from streaming.job.options import JobOptions
from streaming.job.parts import JobParts
from tests.bench.systems.other_parts import run_with


def default_settings(options: JobOptions, jars: Jars) -> dict[str, str]:
    """The settings without which the session cannot run."""
    return {
        "spark.app.name": "group-coordinator",
        "spark.master": options.master,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars.connector)),
    }


PARTS = JobParts(spark_settings=default_settings, source={}, sink={}, keeps_hadoop_defaults=True)

if __name__ == "__main__":
    run_with(PARTS)
