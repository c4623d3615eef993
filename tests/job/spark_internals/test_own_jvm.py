"""The end of a job whose place another one has taken."""

import os
import subprocess
import sys

import pytest

END_OF_JOB = """
import os, subprocess, threading
from types import SimpleNamespace
from pyspark import SparkContext
from streaming.job.spark_internals.own_jvm import use_idle_processor_time

is_over = threading.Event()
threading.Thread(target=is_over.wait).start()
jvm = subprocess.Popen(["sleep", "60"])
SparkContext._gateway = SimpleNamespace(proc=jvm)
use_idle_processor_time()
threads = [int(name) for name in os.listdir("/proc/self/task")]
print(*map(os.sched_getscheduler, [*threads, jvm.pid]))
jvm.kill()
is_over.set()
"""


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux has this policy")
def test_it_and_its_jvm_run_while_nobody_else_wants_a_processor() -> None:
    ended = subprocess.run([sys.executable, "-c", END_OF_JOB], capture_output=True, text=True, timeout=60, check=True)
    policies = {int(policy) for policy in ended.stdout.split()}
    assert policies == {os.SCHED_IDLE}
