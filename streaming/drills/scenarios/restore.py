"""The checkpoint is lost, and a backup takes its place."""

from pathlib import Path

from streaming.drills.reports.verdict import RecoveryObjectives
from streaming.drills.stage import Scenario, Stage


def back_up(stage: Stage) -> None:
    """Take a backup while the job runs."""
    coordinator = stage.coordinator
    coordinator.command("checkpoint", "backup", str(coordinator.checkpoint), str(coordinator.backups))


def newest_backup(backups: Path) -> Path:
    """The newest backup in a folder: their names begin with their time."""
    return max(manifest.parent for manifest in backups.glob("*/manifest.json"))


def play(stage: Stage) -> None:
    """Lose the checkpoint, restore the backup, and start the job."""
    coordinator = stage.coordinator
    stage.fault("kill -9 of the job, and its checkpoint is removed")
    coordinator.job.process.kill()
    coordinator.lose_checkpoint()
    stage.repair("the backup is restored, and the job started")
    backup = newest_backup(coordinator.backups)
    servers = coordinator.bootstrap_servers
    coordinator.command("checkpoint", "restore", str(backup), str(coordinator.checkpoint), "-b", servers)
    coordinator.start_job()


SCENARIOS = (
    Scenario(
        drill="restore",
        title="The checkpoint is lost and restored from a backup",
        what="A backup is taken while the job runs, and clients go on committing. Then the checkpoint is lost. The "
        "requests since the backup are replayed from the log: every acknowledged commit must be there.",
        objectives=RecoveryObjectives(first_answer_seconds=120),
        play=play,
        prepare=back_up,
    ),
)
