"""What an executor lacks, or a master that is not there, is one line that says what to do."""

import pytest

from streaming.contract.errors import CannotRun
from streaming.embedded.ports import free_address
from streaming.job.executors.check import described_task_failure, require_master

LOST = (
    "Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure: Lost task 0.3 in stage "
    "0.0 (TID 3) (10.0.0.7 executor 1): "
)


@pytest.mark.parametrize(
    ("message", "line"),
    [
        (
            'java.io.IOException: Cannot run program "python3.11": error=2, No such file or directory\n\tat java.base/',
            "executor 1 on 10.0.0.7 has no python3.11: install it there, or name another Python with PYSPARK_PYTHON",
        ),
        (
            "org.apache.spark.SparkException: \nError from python worker:\n  /usr/bin/python3.11: Error while "
            "finding module specification for 'streaming.job.spark_internals.python_worker.worker_daemon' "
            "(ModuleNotFoundError: No module named 'streaming')\nPYTHONPATH was:\n  /x",
            "executor 1 on 10.0.0.7 has a Python without streaming: unset PYSPARK_PYTHON and spark.archives, so that "
            "the job's packages travel to it, or install spark-group-coordinator[job] there",
        ),
        (
            "java.lang.IllegalStateException: no room\n\tat x",
            "executor 1 on 10.0.0.7 cannot run the job's tasks: java.lang.IllegalStateException: no room",
        ),
    ],
)
def test_a_failed_task_names_the_executor_and_what_it_lacks(message: str, line: str) -> None:
    assert described_task_failure(LOST + message) == line


def test_a_master_that_does_not_answer_is_named() -> None:
    master = f"spark://{free_address()},{free_address()}"
    with pytest.raises(CannotRun, match=f"^no Spark master answers at {master} .*refused.*: check the address"):
        require_master(master)


@pytest.mark.parametrize("master", ["yarn", "k8s://https://host:6443", "local-cluster[1,1,768]"])
def test_only_a_standalone_master_is_looked_for(master: str) -> None:
    require_master(master)
