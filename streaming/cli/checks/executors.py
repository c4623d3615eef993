"""The executors of a cluster: what they have, their clocks, and whether they reach the checkpoint."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from streaming.cli.checks.finding import Finding, note, ok, problem
from streaming.cli.extras import missing_modules
from streaming.cli.run_options import NOT_GIVEN
from streaming.contract.errors import CannotRun
from streaming.contract.output.text import counted
from streaming.embedded.temporary_folder import temporary_folder
from streaming.job.options import JobOptions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streaming.job.executors.look import Sight

EXECUTORS, CLOCKS, ACCESS = "executors", "executors' clocks", "executors' checkpoint"

LARGEST_SKEW_SECONDS = 1.0
"""Beyond it, times in the log of an executor and in the journal cannot be compared."""


def check_executors(options: JobOptions) -> Iterator[Finding]:
    """Start Spark at the master of these options, and run a small task on each executor."""
    if missing_modules("job"):
        yield note(EXECUTORS, "not checked: Spark needs the extra job")
        return
    try:
        yield from _look(options)
    except CannotRun as refusal:
        detail, _, advice = str(refusal).rpartition(": ")
        yield problem(EXECUTORS, detail, advice)


def _look(options: JobOptions) -> Iterator[Finding]:
    from streaming.job.checkpoints.file_systems import job_jars
    from streaming.job.executors.check import java_versions, require_master, sights
    from streaming.job.executors.settings import executor_settings
    from streaming.job.session import spark_session, spark_settings

    require_master(options.master)
    with temporary_folder() as temporary:
        settings = spark_settings(options, job_jars(options.checkpoint))
        settings = executor_settings(settings, temporary.path, lambda _: None, cores=options.state_partitions or 1)
        with spark_session(settings, temporary=temporary) as spark:
            sights(spark)
            # Again: the first tasks start the Python workers, and their times cannot be compared.
            began = time.time()
            seen = sights(spark)
            ended = time.time()
            hosts = ", ".join(sorted({each.host for each in seen}))
            pythons = sorted({f"Python {each.python}, {', '.join(each.packages)}" for each in seen})
            java = ", ".join(java_versions(spark))
            yield ok(EXECUTORS, f"{counted(len(seen), 'executor')} on {hosts}: {'; '.join(pythons)}; Java {java}")
            yield _of_clocks(seen, began, ended)
            if options.checkpoint != NOT_GIVEN:
                yield _check_access(spark, options.checkpoint)


def _of_clocks(seen: "list[Sight]", began: float, ended: float) -> Finding:
    for each in seen:
        skew = max(began - each.time_seconds, each.time_seconds - ended, 0.0)
        if skew > LARGEST_SKEW_SECONDS:
            advice = "synchronise the clocks of the hosts, with NTP for example"
            return problem(CLOCKS, f"that of {each.host} differs by {skew:.1f} s from this one's", advice)
    return ok(CLOCKS, f"within {LARGEST_SKEW_SECONDS:g} s of this one's")


def _check_access(spark: "SparkSession", checkpoint: str) -> Finding:
    from streaming.job.checkpoints.checkpoint import Checkpoint
    from streaming.job.checkpoints.local_folder import checkpoint_location
    from streaming.job.executors.check import reading_failure

    if Checkpoint(spark, checkpoint_location(checkpoint)).is_new():
        return note(
            ACCESS, f"{checkpoint} holds no checkpoint yet", "the job checks at its start that executors reach it"
        )
    failure = reading_failure(spark, checkpoint)
    if failure is None:
        return ok(ACCESS, f"an executor has read {checkpoint}")
    advice = "use s3a://, hdfs:// or a folder that all hosts share under this path"
    return problem(ACCESS, f"an executor cannot read {checkpoint}: {failure}", advice)
