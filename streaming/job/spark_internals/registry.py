"""The table of Spark's internals that the job uses, and the check of each against the Spark that runs.

An internal is used when pyspark's version is one on which it held when it was tried (see :mod:`.trials`), and the names
that it needs exist. Otherwise it is left out: the job works without it, usually slower.
``GROUP_COORDINATOR_SPARK_INTERNALS_OFF`` leaves out more, to find out whether one of them is the cause of a problem:
``all``, or names separated by commas.
"""

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from streaming.contract.errors import CannotRun
from streaming.job.spark_internals.java_objects import java_virtual_machine
from streaming.job.spark_internals.trials import held_on

OFF_VARIABLE = "GROUP_COORDINATOR_SPARK_INTERNALS_OFF"


@dataclass(frozen=True)
class SparkInternal:
    """One use of Spark's internals.

    ``python_names`` (``module:name``), ``session_attributes`` (of the SparkSession) and ``java_classes`` must exist.
    ``any_version`` marks a use that is safe with every version, because it relies on nothing but these names.
    """

    name: str
    uses: str
    """The names in Spark that it relies on."""
    gain: str
    """The reason to use it, with the figure that was measured; p50 is from request to response."""
    without: str
    """What users lose when it is left out."""
    any_version: bool = False
    python_names: tuple[str, ...] = ()
    session_attributes: tuple[str, ...] = ()
    java_classes: tuple[str, ...] = ()

    @property
    def tried(self) -> tuple[str, ...] | None:
        """The pyspark versions on which it is used; None for a use that is safe with every version."""
        return None if self.any_version else held_on(self.name)


ARROW_WORKER = SparkInternal(
    "arrow-worker",
    "five functions and classes of `pyspark.worker`, `pyspark.sql.types` and `pyspark.sql.pandas.serializers`, which "
    "are replaced in the Python workers; the bytes that Spark and a worker exchange for `applyInPandasWithState`",
    "groups touched a second: 862 with pyspark's worker, 7,533 with the Arrow-native one",
    "pyspark's worker runs the groups, with about a ninth of the throughput",
    python_names=(
        "pyspark.worker:ApplyInPandasWithStateSerializer",
        "pyspark.worker:wrap_grouped_map_pandas_udf_with_state",
        "pyspark.worker:fail_on_stopiteration",
        "pyspark.worker:_parse_datatype_json_string",
        "pyspark.sql.types:_parse_datatype_json_string",
        "pyspark.sql.types:_create_row_inbound_converter",
        "pyspark.sql.pandas.serializers:ArrowStreamSerializer",
        "pyspark.sql.pandas.types:to_arrow_type",
    ),
)
WORKER_DAEMON = SparkInternal(
    "worker-daemon",
    "the setting `spark.python.daemon.module` with a module that replaces `pyspark.daemon.worker`"
    " and calls `pyspark.daemon.manager`",
    "imports before the fork and no full garbage collection after each task: p50 0.35 s to 0.29 s",
    "each Python worker imports pandas and pyarrow, and collects garbage after every task; pyspark's worker runs the "
    "groups",
    python_names=("pyspark.daemon:worker", "pyspark.daemon:manager", "pyspark.worker:main"),
)
OWN_JVM = SparkInternal(
    "own-jvm",
    "`pyspark.java_gateway.launch_gateway`, `SparkContext(gateway=...)`, `SparkContext._gateway`, `._jvm` and "
    "`._active_spark_context`",
    "Ctrl-C and SIGTERM for the process group do not reach the JVM; it inherits the checkpoint's lock; one process can "
    "run several sessions, each with a JVM of its own",
    "a signal for the process group interrupts the batch in flight; after a `kill -9`, the job may start while the "
    "JVM of the killed one still runs its last batch; Spark's settings, passwords too, are on the JVM's command line",
    python_names=(
        "pyspark.java_gateway:launch_gateway",
        "pyspark.core.context:SparkContext._gateway",
        "pyspark.core.context:SparkContext._jvm",
        "pyspark.core.context:SparkContext._active_spark_context",
    ),
)
HADOOP_CONFIGURATION = SparkInternal(
    "hadoop-configuration",
    "`SparkSession._jsparkSession.sessionState()`, after which `SparkContext._jsc.hadoopConfiguration()` drops the "
    "defaults of Hadoop",
    "no batch serializes 1,100 defaults for its tasks: p50 219 ms to 192 ms",
    "every batch serializes all of Hadoop's defaults, a sixth more work for the driver",
    session_attributes=("_jsparkSession", "sparkContext._jsc"),
    java_classes=("org.apache.hadoop.conf.Configuration",),
)
CHECKPOINT_FILES = SparkInternal(
    "checkpoint-files",
    "the class `FileSystemBasedCheckpointFileManager` in `spark.sql.streaming.checkpointFileManagerClass`",
    "no process for each link and permission on a local file system: p50 1.5 s to 0.35 s",
    "Spark starts processes for the files of a local checkpoint, about a second more for each batch",
    java_classes=("org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",),
)
STORE_FILES = SparkInternal(
    "store-files",
    "a subclass of `AbstractFileContextBasedCheckpointFileManager`, compiled with the Scala compiler "
    "that pyspark ships, in `spark.sql.streaming.checkpointFileManagerClass`",
    "of two jobs that write the same batch to an object store, the store itself refuses the later "
    "one; each file is written with one request",
    "a job that was paused at the wrong moment may overwrite a batch of its successor in an object store",
    java_classes=(
        "org.apache.spark.sql.execution.streaming.checkpointing.AbstractFileContextBasedCheckpointFileManager",
    ),
)
BATCH_END = SparkInternal(
    "batch-end",
    "`StreamingQuery._jsq.streamingQuery().state()`, which is set to `TERMINATED$`",
    "a stop lets the batch in flight finish, so the next start need not run it again",
    "a stop interrupts the batch in flight, which runs again after the next start",
    java_classes=("org.apache.spark.sql.execution.streaming.runtime.TERMINATED$",),
)
TRIGGER_CLOCK = SparkInternal(
    "trigger-clock",
    "`StreamingQuery._jsq.streamingQuery().triggerExecutor()`, whose field `clock` is set to a `ManualClock`",
    "a batch begins when a request arrives, and Spark does not look for requests in between",
    "Spark looks for requests in the trigger interval, so that an answer takes longer by half of it",
    java_classes=(
        "org.apache.spark.sql.execution.streaming.runtime.ProcessingTimeExecutor",
        "org.apache.spark.util.ManualClock",
    ),
)
OFFSET_LOG = SparkInternal(
    "offset-log",
    "the newest file of a checkpoint's folder `offsets`: a version, settings as JSON, offsets as JSON",
    "a checkpoint that does not fit the options or the topics is refused with a message that says how",
    "the checkpoint is not compared with the options and the topics, unless its newest batch can be read",
)
CHECKPOINT_LAYOUT = SparkInternal(
    "checkpoint-layout",
    "the names of the files of a checkpoint and its state; which of them Spark reads to start, and what names others in"
    " `commits`, snapshots and changelogs; the columns of the `statestore` reader",
    "a damaged checkpoint is refused before the query starts, with a message that names the file and what helps; "
    "`checkpoint backup` copies a checkpoint while the job runs",
    "Spark reports most damage with exceptions of its own, some without the file's name; a snapshot of a lost batch is "
    "not noticed; `checkpoint backup`, `checkpoint verify` and `sql --checkpoint` refuse",
)
CHECKPOINT_WRITING = SparkInternal(
    "checkpoint-writing",
    "what a query with `applyInPandasWithState` leaves in its checkpoint: state, settings, name and number of the "
    "operator do not depend on source and sink; the offset log's line for a source",
    "`checkpoint rebuild`, `repartition`, `migrate` and `downgrade` write a checkpoint by a query of their own",
    "these four commands refuse; the coordinator itself does not use it",
    java_classes=("org.apache.spark.sql.execution.python.streaming.FlatMapGroupsInPandasWithStateExec",),
)
GROUP_MAP = SparkInternal(
    "group-map",
    "the class `NoPrefixHDFSBackedStateStoreMap`, in whose place a driver on one host loads another of the same name, "
    "compiled with the Scala compiler that pyspark ships; a rule in `spark.sql.extensions` that reads the batch's time "
    "from the plan",
    "a batch with 100,000 groups takes as long as one without groups; with Spark's own class 1.5 to 3.3 times as long",
    "every batch copies the map of all groups, and looks at each for a timeout that has passed",
    java_classes=(
        "org.apache.spark.sql.execution.streaming.state.NoPrefixHDFSBackedStateStoreMap",
        "org.apache.spark.sql.execution.python.streaming.FlatMapGroupsInPandasWithStateExec",
    ),
)
JAVA_OBJECTS = SparkInternal(
    "java-objects",
    "`SparkSession._jvm`, `SparkContext._jsc` and `StreamingQuery._jsq`, for public methods of Spark and Hadoop",
    "the checkpoint is read where Spark writes it; progress costs two calls a batch instead of a hundred",
    "the job does not start",
    any_version=True,
    session_attributes=("_jvm", "sparkContext._jsc"),
)
STATE_STORE_PROVIDERS = SparkInternal(
    "state-store-providers",
    "the classes `HDFSBackedStateStoreProvider` and `RocksDBStateStoreProvider`, which Spark's guide names",
    "the options choose where groups are kept",
    "Spark refuses to start the query",
    any_version=True,
    java_classes=(
        "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    ),
)
CLASS_ARCHIVE = SparkInternal(
    "class-archive",
    "the class path that Spark's launcher makes of `SPARK_HOME/jars` and four environment variables",
    "a start takes 7.7 to 8.7 s instead of 12.2 to 13.4 s",
    "slower starts: Java ignores an archive that does not fit its class path",
    any_version=True,
)
INTERPRETED_PLANS = SparkInternal(
    "interpreted-plans",
    "the internal setting `spark.sql.codegen.factoryMode`; Spark ignores settings that it does not know",
    "no Java source is written and compiled for each batch: p50 612 ms to 527 ms at 10,000 requests/s",
    "slower batches",
    any_version=True,
)
IDLE_REPORTS = SparkInternal(
    "idle-reports",
    "the internal setting `spark.sql.streaming.noDataProgressEventInterval`; Spark ignores settings that it does not "
    "know",
    "Spark does not report every ten seconds that it has found nothing to read",
    "the job skips these reports, which costs an idle job some CPU time",
    any_version=True,
)
OPTIMIZER_RULES = SparkInternal(
    "optimizer-rules",
    "the names of 93 rules in `spark.sql.optimizer.excludedRules`",
    "no time for 240 runs of rules a batch that find nothing to do: p50 97 ms to 90 ms at 1,000 requests/s",
    "slower batches",
)
LOG_CATEGORIES = SparkInternal(
    "log-categories",
    "the names of five classes and a package of Spark and Hadoop as log categories in `log4j2.properties`",
    "warnings of normal operation do not reach the terminal",
    "the terminal shows warnings that require no action",
    any_version=True,
)

INTERNALS = (
    ARROW_WORKER,
    WORKER_DAEMON,
    OWN_JVM,
    HADOOP_CONFIGURATION,
    CHECKPOINT_FILES,
    STORE_FILES,
    BATCH_END,
    TRIGGER_CLOCK,
    OFFSET_LOG,
    CHECKPOINT_LAYOUT,
    CHECKPOINT_WRITING,
    GROUP_MAP,
    JAVA_OBJECTS,
    STATE_STORE_PROVIDERS,
    CLASS_ARCHIVE,
    INTERPRETED_PLANS,
    IDLE_REPORTS,
    OPTIMIZER_RULES,
    LOG_CATEGORIES,
)
"""The table."""

LeftOut = Mapping[SparkInternal, str]
"""The internals that are not used, each with the reason."""


def reason_to_leave_out(
    internal: SparkInternal, spark: SparkSession | None = None, *, version: str = pyspark.__version__
) -> str | None:
    """Why ``internal`` is not used; None when it is.

    The session's attributes, Java classes and the JVM's version are checked only with a session.
    """
    if internal.tried is not None:
        off = {name.strip() for name in os.environ.get(OFF_VARIABLE, "").split(",")}
        if off & {internal.name, "all"}:
            return f"named in {OFF_VARIABLE}"
        for running in (version, version if spark is None else spark.version):
            if running not in internal.tried:
                return f"tried with {', '.join(internal.tried)} only"
    missing = missing_names(internal, spark)
    return f"pyspark {version} has no {missing[0]}" if missing else None


def missing_names(internal: SparkInternal, spark: SparkSession | None = None) -> list[str]:
    """The names that ``internal`` needs and this pyspark lacks; without a session, those of Python only."""
    missing = [name.replace(":", ".") for name in internal.python_names if not _python_name_exists(name)]
    if spark is not None:
        missing += [f"SparkSession.{path}" for path in internal.session_attributes if not _has(spark, path)]
        missing += [name for name in internal.java_classes if not _java_class_exists(spark, name)]
    return missing


def is_used(internal: SparkInternal, spark: SparkSession | None = None) -> bool:
    """Whether the job uses ``internal``; see :func:`reason_to_leave_out`."""
    return reason_to_leave_out(internal, spark) is None


def left_out(spark: SparkSession) -> LeftOut:
    """Check all internals; returns those that are not used, and why.

    Raises:
        CannotRun: this Spark lacks one that the job cannot do without.
    """
    if reason := reason_to_leave_out(JAVA_OBJECTS, spark):
        raise CannotRun(f"the job needs {JAVA_OBJECTS.uses}: {reason}")
    reasons = ((internal, reason_to_leave_out(internal, spark)) for internal in INTERNALS)
    return {internal: reason for internal, reason in reasons if reason is not None}


def warning(unused: LeftOut) -> str | None:
    """One line for all internals that are left out: which, why, and what is lost."""
    if not unused:
        return None
    by_reason: dict[str, list[str]] = {}
    for internal, reason in unused.items():
        by_reason.setdefault(reason, []).append(f"{internal.name} ({internal.without})")
    details = "; ".join(f"{reason}: {', '.join(losses)}" for reason, losses in by_reason.items())
    return f"warning: slower with pyspark {pyspark.__version__}, because internals of Spark are left out; {details}"


def _python_name_exists(name: str) -> bool:
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ImportError:
        return False
    return _has(found, path)


def _has(found: Any, path: str) -> bool:
    for part in path.split("."):
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True


def _java_class_exists(spark: SparkSession, name: str) -> bool:
    jvm = java_virtual_machine(spark)
    try:
        jvm.java.lang.Class.forName(name)
    except Exception as error:
        if "ClassNotFoundException" in str(error):
            return False
        raise
    return True
