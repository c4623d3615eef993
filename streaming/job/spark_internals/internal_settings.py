"""The Spark settings that name an internal class or module, as far as this Spark has it."""

import pyspark
from pyspark.sql import SparkSession

from streaming.job.spark_internals.optimizer_rules import excluded_rules
from streaming.job.spark_internals.python_worker.worker_choice import VARIABLE, choose
from streaming.job.spark_internals.registry import (
    CHECKPOINT_FILES,
    OPTIMIZER_RULES,
    STORE_FILES,
    WORKER_DAEMON,
    is_used,
)
from streaming.job.spark_internals.store_files.compilation import CLASS

EXCLUDED_RULES = "spark.sql.optimizer.excludedRules"
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"

SPARKS_STORE_FILES = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"
"""The class that Spark's guide names for stores that copy a file to rename it.

It looks whether a file exists and then writes it, and is silent where it finds one.
"""


def python_worker_settings(requested: str) -> dict[str, str]:
    """The settings for the Python workers; ``requested`` is the option ``python-worker``."""
    settings: dict[str, str] = {f"spark.executorEnv.{VARIABLE}": choose(requested, pyspark.__version__).worker}
    if is_used(WORKER_DAEMON):
        settings["spark.python.daemon.module"] = "streaming.job.spark_internals.python_worker.worker_daemon"
    return settings


def planning_settings() -> dict[str, str]:
    """The settings for the planning of each batch."""
    return {EXCLUDED_RULES: excluded_rules()} if is_used(OPTIMIZER_RULES) else {}


def local_checkpoint_settings() -> dict[str, str]:
    """The settings for a checkpoint on a local file system."""
    return {FILE_MANAGER: CHECKPOINT_FILES.java_classes[0]} if is_used(CHECKPOINT_FILES) else {}


def s3a_checkpoint_settings() -> dict[str, str]:
    """The settings for a checkpoint at s3a://."""
    return {FILE_MANAGER: CLASS if is_used(STORE_FILES) else SPARKS_STORE_FILES}


def unset_missing_classes(spark: SparkSession) -> None:
    """Return to Spark's default where a setting of :func:`local_checkpoint_settings` names a class it does not have."""
    is_ours = spark.conf.get(FILE_MANAGER, None) == CHECKPOINT_FILES.java_classes[0]
    if is_ours and not is_used(CHECKPOINT_FILES, spark):
        spark.conf.unset(FILE_MANAGER)
