"""Prints which names of Spark's internals the pyspark of this interpreter lacks, as JSON: ``{internal: [names]}``.

It starts a session, because Java classes and the session's attributes are looked up in one.
"""

import sys
import tempfile

import msgspec

from streaming.embedded.jars import resolve_jars
from streaming.job.options import JobOptions
from streaming.job.session import spark_session, spark_settings
from streaming.job.spark_internals.registry import INTERNALS, missing_names


def main() -> None:
    """Print them to stdout."""
    with tempfile.TemporaryDirectory() as folder:
        options = JobOptions(bootstrap_servers="127.0.0.1:1", checkpoint=folder, driver_memory="512m")
        with spark_session(spark_settings(options, resolve_jars())) as spark:
            missing = {internal.name: missing_names(internal, spark) for internal in INTERNALS}
    sys.stdout.write(msgspec.json.encode(missing).decode() + "\n")


if __name__ == "__main__":
    main()
