"""The versions of pyspark that Spark's internals were tried with. `make spark-next` tries them and prints this table.

An internal is used only on the versions on which it held. One that a trial does not name was not tried.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Trial(NamedTuple):
    """The result of trying all internals, by name, with one version of pyspark."""

    connector: str
    """The version of Spark's Kafka connector in the trial."""
    held: tuple[str, ...]
    """The internals that exist there, and with which the job answers as without them."""
    failed: Mapping[str, str]
    """The others, each with the reason."""


TRIALS: Mapping[str, Trial] = {
    "4.2.0": Trial(
        connector="4.2.0",
        held=(
            "arrow-worker",
            "worker-daemon",
            "own-jvm",
            "hadoop-configuration",
            "checkpoint-files",
            "store-files",
            "batch-end",
            "trigger-clock",
            "offset-log",
            "checkpoint-layout",
            "checkpoint-writing",
            "group-map",
            "java-objects",
            "state-store-providers",
            "class-archive",
            "interpreted-plans",
            "idle-reports",
            "optimizer-rules",
            "log-categories",
        ),
        failed={},
    ),
    "4.3.0": Trial(
        connector="4.2.0",
        held=(
            "worker-daemon",
            "own-jvm",
            "hadoop-configuration",
            "checkpoint-files",
            "batch-end",
            "offset-log",
            "checkpoint-layout",
            "checkpoint-writing",
            "java-objects",
            "state-store-providers",
            "class-archive",
            "interpreted-plans",
            "idle-reports",
            "optimizer-rules",
            "log-categories",
        ),
        failed={
            "arrow-worker": "there is no pyspark.worker.ApplyInPandasWithStateSerializer",
        },
    ),
}
"""By version of pyspark, oldest first."""


def held_on(name: str) -> tuple[str, ...]:
    """The versions of pyspark on which the internal of this name held."""
    return tuple(version for version, trial in TRIALS.items() if name in trial.held)
