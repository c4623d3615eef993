"""The active job is killed, or stopped, while another one stands by."""

from streaming.drills.reports.verdict import RecoveryObjectives
from streaming.drills.stage import Scenario, Stage


def start_standby(stage: Stage) -> None:
    """Start a job that stands by."""
    stage.step("a job is started with --standby")
    stage.coordinator.start_standby().await_standby()


def kill_active(stage: Stage) -> None:
    """Kill the active job."""
    stage.fault("kill -9 of the active job")
    stage.coordinator.job.process.send_kill()
    stage.coordinator.switch_to_standby()


def stop_active(stage: Stage) -> None:
    """Stop the active job, as a rolling upgrade does."""
    stage.fault("SIGTERM to the active job")
    exit_code = stage.coordinator.job.process.terminate()
    stage.coordinator.switch_to_standby()
    stage.step(f"the stopped job has ended with exit code {exit_code}")


SCENARIOS = (
    Scenario(
        drill="standby",
        title="The active job is killed while another one stands by",
        what="kill -9 of the active job. The job that stands by sees no announcement for 1.5 s and takes its place.",
        objectives=RecoveryObjectives(first_answer_seconds=10, slowdown=4, errors=False),
        play=kill_active,
        prepare=start_standby,
    ),
    Scenario(
        drill="standby",
        title="The active job is stopped while another one stands by",
        what="SIGTERM to the active job, as for an upgrade. It finishes its batch and hands over.",
        objectives=RecoveryObjectives(first_answer_seconds=10, longest_gap_seconds=5, slowdown=4, errors=False),
        play=stop_active,
        prepare=start_standby,
    ),
)
