"""The checkpoint is lost, and there is no backup: it is rebuilt from the journal."""

from streaming.drills.own_coordinator import OwnCoordinator
from streaming.drills.reports.verdict import RecoveryObjectives
from streaming.drills.stage import Scenario, Stage


def rebuild_words(coordinator: OwnCoordinator, servers: str) -> list[str]:
    """The command's words. Without the jobs' options, it could make a checkpoint that they refuse."""
    return ["checkpoint", "rebuild", str(coordinator.checkpoint), "-b", servers, "--yes", *coordinator.set_words]


def play(stage: Stage) -> None:
    """Lose the checkpoint, rebuild it, and start the job."""
    coordinator = stage.coordinator
    stage.fault("kill -9 of the job, and its checkpoint is removed")
    coordinator.job.process.kill()
    coordinator.lose_checkpoint()
    stage.repair("the checkpoint is rebuilt from the journal, and the job started")
    coordinator.command(*rebuild_words(coordinator, coordinator.bootstrap_servers))
    coordinator.start_job()


SCENARIOS = (
    Scenario(
        drill="rebuild",
        title="The checkpoint is lost and rebuilt from the journal",
        what="The checkpoint is lost and there is no backup. The journal has every change of every group: members, "
        "generations and acknowledged commits must be as they were.",
        objectives=RecoveryObjectives(first_answer_seconds=120),
        play=play,
    ),
)
