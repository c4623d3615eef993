"""The job is killed, and started again on its checkpoint. Nothing stands by."""

from streaming.drills.reports.verdict import RecoveryObjectives
from streaming.drills.stage import Scenario, Stage


def play(stage: Stage) -> None:
    """Kill the job, and start it again at once."""
    coordinator = stage.coordinator
    stage.fault("kill -9 of the job")
    coordinator.job.process.send_kill()
    stage.repair("the job is started again")
    coordinator.start_job()


SCENARIOS = (
    Scenario(
        drill="kill",
        title="The job is killed and started again",
        what="kill -9 of the job while no other job stands by. A supervisor starts it again on its checkpoint at once.",
        objectives=RecoveryObjectives(first_answer_seconds=60),
        play=play,
    ),
)
