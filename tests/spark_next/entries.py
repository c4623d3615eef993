"""The existing tests that exercise each of Spark's internals with a real Spark, beside the play of every trial."""

from collections.abc import Mapping

from streaming.job.spark_internals.registry import INTERNALS

_ROOM = "tests/job/spark_internals"
_QUERY = "tests/job/test_query.py"
_NEW_CHECKPOINTS = "tests/job/backups/test_new_checkpoints.py"

TESTS: Mapping[str, tuple[str, ...]] = {
    "arrow-worker": (f"{_ROOM}/test_arrow_worker.py", "tests/job/test_through_job.py"),
    "worker-daemon": (f"{_QUERY}::test_the_worker_starts_no_thread_before_it_forks",),
    "own-jvm": (
        f"{_ROOM}/test_own_jvm.py",
        f"{_ROOM}/test_launch_settings.py",
        f"{_QUERY}::test_a_stop_before_ready_ends_the_job_at_once_and_leaves_no_process",
    ),
    "hadoop-configuration": (
        "tests/job/test_session.py::test_hadoops_defaults_are_dropped_and_the_users_files_and_options_stay",
    ),
    "checkpoint-files": (f"{_QUERY}::test_after_a_kill_the_job_continues_from_its_checkpoint",),
    "batch-end": (f"{_QUERY}::test_a_stop_under_load_lets_the_batch_in_flight_finish",),
    "trigger-clock": (f"{_ROOM}/test_trigger_clock.py",),
    "offset-log": (f"{_QUERY}::test_a_job_that_cannot_continue_ends_with_a_message",),
    "checkpoint-layout": ("tests/recovery/test_damaged_checkpoint.py", "tests/job/backups/test_running_job.py"),
    "checkpoint-writing": (
        f"{_NEW_CHECKPOINTS}::test_a_rebuild_from_a_backup_and_the_journal_gives_every_group_as_it_was",
        f"{_NEW_CHECKPOINTS}::test_partitions_and_store_change_and_groups_do_not",
    ),
    "group-map": (f"{_ROOM}/group_map",),
    "class-archive": (f"{_ROOM}/test_class_archive.py",),
    "optimizer-rules": (
        f"{_ROOM}/test_optimizer_rules.py::test_spark_can_do_without_all_that_are_left_out",
        f"{_ROOM}/test_optimizer_rules.py::test_the_plan_is_the_same_without_them",
    ),
}
"""Node ids of pytest by the name of the internal. What is not listed has no test of its own: the play exercises it."""

PREREQUISITES: Mapping[str, tuple[str, ...]] = {"arrow-worker": ("worker-daemon",)}
"""The internals without which one has no effect."""

NAMES = tuple(internal.name for internal in INTERNALS)

BOUND_TO_VERSIONS = tuple(internal.name for internal in INTERNALS if not internal.any_version)
"""Those that the job leaves out on a version that they were not tried with."""


def tests_of(names: tuple[str, ...]) -> list[str]:
    """The node ids for these internals, each once."""
    return list(dict.fromkeys(test for name in names for test in TESTS.get(name, ())))
