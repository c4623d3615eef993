"""The program for ``spark-submit``: ``run``, at the master and with the settings that spark-submit has been given.

``spark-submit [options] submitted.py [options of run]``. Options of the driver's Java, as its memory, work only where
they are given to spark-submit, which has started it.
"""

import runpy
import sys
from collections.abc import Mapping, Sequence

from streaming.contract.errors import CannotRun
from streaming.job.options import REFUSED
from streaming.job.spark_internals.submitted_jvm import submitted_settings

MASTER, NAME = "spark.master", "spark.app.name"
"""The setting that becomes an option of ``run``, and one that spark-submit sets to the name of this file."""


def words_of_run(settings: Mapping[str, str], options: Sequence[str]) -> list[str]:
    """The command line of ``run`` for settings of spark-submit and the options after its program.

    Settings for which ``run`` has an option of its own are left out: spark-submit has heeded them.
    """
    kept = {key: value for key, value in settings.items() if key not in REFUSED and key != NAME}
    return ["run", "--master", settings[MASTER], *(f"--set={key}={value}" for key, value in kept.items()), *options]


if __name__ == "__main__":
    try:
        sys.argv[1:] = words_of_run(submitted_settings(), sys.argv[1:])
    except CannotRun as refusal:
        sys.exit(f"error: {refusal}")
    # By its name, since the command line imports the rooms of this module.
    runpy.run_module("streaming.cli", run_name="__main__")
