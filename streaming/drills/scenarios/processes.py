"""The job or the broker is killed or stopped; the checkpoint stays as it is."""

from streaming.drills.reports.verdict import RecoveryObjectives
from streaming.drills.stage import Scenario, Stage
from streaming.embedded.job_process import JobProcess
from streaming.job.lifecycle.phases import read_phases

AWAY_SECONDS = 8.0


def kill_job(stage: Stage) -> None:
    """Kill the job, and start it again at once."""
    coordinator = stage.coordinator
    stage.fault("kill -9 of the job")
    coordinator.job.send_kill()
    stage.repair("the job is started again")
    coordinator.start_job()


def start_standby(stage: Stage) -> None:
    """Start a job that stands by."""
    stage.step("a job is started with --standby")
    stage.coordinator.start_standby().await_standby()


def kill_active(stage: Stage) -> None:
    """Kill the active job."""
    stage.fault("kill -9 of the active job")
    stage.coordinator.job.send_kill()
    stage.coordinator.switch_to_standby()
    _tell_phases(stage, stage.coordinator.job)


def stop_active(stage: Stage) -> None:
    """Stop the active job, as a rolling upgrade does."""
    stage.fault("SIGTERM to the active job")
    stopped = stage.coordinator.job
    exit_code = stopped.terminate()
    stage.coordinator.switch_to_standby()
    stage.step(f"the stopped job has ended with exit code {exit_code}")
    _tell_phases(stage, stopped, stage.coordinator.job)


def _tell_phases(stage: Stage, *jobs: JobProcess) -> None:
    """Wait for the first answer, and say what the jobs report of the time until then."""
    stage.await_answers()
    for job in jobs:
        stage.step(job.await_line("the phases of its part", lambda line: read_phases(line) is not None))


def stop_broker(stage: Stage) -> None:
    """Stop the broker, and start it again later."""
    broker = stage.coordinator.broker
    stage.fault("the broker is stopped")
    broker.stop()
    stage.watch_for(AWAY_SECONDS, "the broker is away")
    stage.repair("the broker is started again")
    broker.start()


SCENARIOS = (
    Scenario(
        drill="kill",
        title="The job is killed and started again",
        what="kill -9 of the job while no other job stands by. A supervisor starts it again on its checkpoint at once.",
        objectives=RecoveryObjectives(first_answer_seconds=60),
        play=kill_job,
    ),
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
    Scenario(
        drill="broker",
        title="The broker is away",
        what=f"The only broker is stopped for {AWAY_SECONDS:g} s. The job stays up, and continues when it is back.",
        objectives=RecoveryObjectives(first_answer_seconds=60),
        play=stop_broker,
    ),
)
