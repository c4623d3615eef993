"""``group-coordinator run`` with other parts of the job than those that ship."""

import os
import sys
from pathlib import Path

from streaming.cli.boundary import errors_as_lines
from streaming.cli.console import reporter
from streaming.job.lifecycle.run import run_job
from streaming.job.options import load_options
from streaming.job.parts import JobParts


def run_with(parts: JobParts) -> None:
    """Run the job with the arguments of :class:`~tests.support.coordinator_process.CoordinatorProcess`."""
    *_, file = sys.argv
    with errors_as_lines():
        run_job(load_options({}, os.environ, Path(file)), reporter(as_json=True), parts)
