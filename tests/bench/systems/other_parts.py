"""``group-coordinator run`` with other parts of the job than those that ship."""

import os
import sys
from pathlib import Path

from streaming.cli.console import failures_as_lines, reporter
from streaming.job.lifecycle.run import run_job
from streaming.job.options import load_options
from streaming.job.parts import JobParts


def run_with(parts: JobParts) -> None:
    """Run the job with the arguments of :class:`~tests.support.coordinator_process.CoordinatorProcess`."""
    *_, file = sys.argv
    with failures_as_lines():
        run_job(load_options({}, os.environ, Path(file)), reporter(as_json=True), parts)
