"""The JVM of ``spark-submit``, which has started this program: its settings, and whether it knows the job's sources."""

from pyspark import SparkConf, SparkContext

from streaming.contract.errors import CannotRun
from streaming.job.spark_internals.java_objects import JavaFailure

CONNECTOR = "org.apache.spark.sql.kafka010.KafkaSourceProvider"


def submitted_settings() -> dict[str, str]:
    """The settings of the JVM that has started this program.

    Raises:
        CannotRun: it lacks the connector to Kafka.
    """
    SparkContext._ensure_initialized()
    assert SparkContext._jvm is not None
    settings = dict(SparkConf().getAll())
    try:
        SparkContext._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(CONNECTOR)
    except JavaFailure as failure:
        version = SparkContext._jvm.org.apache.spark.package.SPARK_VERSION()
        raise CannotRun(
            "spark-submit has no connector to Kafka: give it "
            f"--packages org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"
        ) from failure
    # The session connects to the JVM anew.
    SparkContext._gateway = SparkContext._jvm = None
    return settings
