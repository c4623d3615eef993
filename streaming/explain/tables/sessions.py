"""A Spark session of this machine's for the tables."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from streaming.embedded.temporary_folder import temporary_folder
from streaming.explain.tables.tables import Sources, Tables
from streaming.job.checkpoints.file_systems import job_jars
from streaming.job.options import JobOptions
from streaming.job.session import spark_session, spark_settings

QUERY_SETTINGS = {
    # The job's settings suit a query that runs the same small batch again and again.
    "spark.sql.optimizer.excludedRules": "",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
}


@contextmanager
def open_tables(
    bootstrap_servers: str | None = None,
    checkpoint: str | None = None,
    *,
    topic_prefix: str = "",
    report: Callable[[str], None] = lambda _line: None,
) -> Iterator[Tables]:
    """The tables of a coordinator, with a Spark session that ends with the block.

    Args:
        bootstrap_servers: Kafka brokers, ``host:port``, separated by commas. Without them, groups are as of a batch of
            the checkpoint, and there are no rebalances, no journal and no requests.
        checkpoint: The job's checkpoint; the job may run. Without it, groups are known as far as the journal goes back.
        topic_prefix: The prefix of the coordinator's topic names.
        report: Is called with lines of progress.

    Raises:
        JarResolutionError, MissingPrerequisite: see :func:`streaming.embedded.jars.resolve_jars`.
    """
    # The options need both; a session does not use what is missing.
    options = JobOptions(
        bootstrap_servers=bootstrap_servers or "-", checkpoint=checkpoint or "-", topic_prefix=topic_prefix
    )
    kafka = {} if bootstrap_servers is None else options.java_client_config
    with session_of(options, Sources(kafka, checkpoint, options.topics), report) as tables:
        yield tables


@contextmanager
def session_of(
    options: JobOptions, sources: Sources, report: Callable[[str], None], time: int | None = None
) -> Iterator[Tables]:
    """The tables of these sources as of ``time`` (ms since the epoch), in a local session with the options."""
    with temporary_folder() as temporary:
        checkpoint = sources.checkpoint or str(temporary.path)
        local = msgspec.structs.replace(options, master="local[*]", checkpoint=checkpoint)
        report("starting Spark")
        with spark_session(spark_settings(local, job_jars(checkpoint, report)), temporary=temporary) as spark:
            for key, value in QUERY_SETTINGS.items():
                spark.conf.set(key, value)
            yield Tables(spark, sources, time)
