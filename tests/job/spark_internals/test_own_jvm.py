"""The end of a JVM, and of a job whose place another one has taken."""

import os
import signal
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from streaming.job.spark_internals import own_jvm
from tests.support.waiting import LIMIT_SECONDS, wait_until

LONG_SECONDS = 10 * LIMIT_SECONDS

END_OF_JOB = """
import os, subprocess, threading
from streaming.job.spark_internals import own_jvm

is_over = threading.Event()
threading.Thread(target=is_over.wait).start()
jvm = subprocess.Popen(["sleep", "60"])
own_jvm._launched.append(jvm)
own_jvm.use_idle_processor_time()
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


def test_a_jvm_that_hangs_at_its_end_is_killed_with_the_process() -> None:
    jvm = subprocess.Popen(["sleep", str(LONG_SECONDS)], stdin=subprocess.PIPE)
    own_jvm._launched.append(jvm)
    gateway = SimpleNamespace(shutdown=lambda: None)
    ending = threading.Thread(target=own_jvm._end, args=(gateway, jvm, LONG_SECONDS), daemon=True)
    ending.start()
    wait_until(lambda: jvm.stdin is None or jvm.stdin.closed, "that it is told to end")
    own_jvm.kill_jvm()
    ending.join(LIMIT_SECONDS)
    assert jvm.returncode == -signal.SIGKILL
