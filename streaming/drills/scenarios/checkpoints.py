"""The checkpoint is lost, or a file of it is torn: a backup, the journal, or what the job's line says helps."""

import re
import shutil
from pathlib import Path

from streaming.drills.own_coordinator import JVM_END_LIMIT_SECONDS, OwnCoordinator
from streaming.drills.reports.verdict import RecoveryObjectives
from streaming.drills.stage import Scenario, Stage
from streaming.drills.waiting import DrillFailed


def back_up(stage: Stage) -> None:
    """Take a backup while the job runs."""
    coordinator = stage.coordinator
    coordinator.command("checkpoint", "backup", str(coordinator.checkpoint), str(coordinator.backups))


def newest_backup(backups: Path) -> Path:
    """The newest backup in a folder: their names begin with their time."""
    return max(manifest.parent for manifest in backups.glob("*/manifest.json"))


def restore(stage: Stage) -> None:
    """Lose the checkpoint, restore the backup, and start the job."""
    coordinator = _lose_checkpoint(stage)
    stage.repair("the backup is restored, and the job started")
    backup = newest_backup(coordinator.backups)
    servers = coordinator.bootstrap_servers
    coordinator.command("checkpoint", "restore", str(backup), str(coordinator.checkpoint), "-b", servers)
    coordinator.start_job()


def rebuild_words(coordinator: OwnCoordinator, servers: str) -> list[str]:
    """The command's words. Without the jobs' options, it could make a checkpoint that they refuse."""
    return ["checkpoint", "rebuild", str(coordinator.checkpoint), "-b", servers, "--yes", *coordinator.set_words]


def rebuild(stage: Stage) -> None:
    """Lose the checkpoint, rebuild it, and start the job."""
    coordinator = _lose_checkpoint(stage)
    stage.repair("the checkpoint is rebuilt from the journal, and the job started")
    coordinator.command(*rebuild_words(coordinator, coordinator.bootstrap_servers))
    coordinator.start_job()


def _lose_checkpoint(stage: Stage) -> OwnCoordinator:
    """Kill the job, and remove its checkpoint, as a lost disk would."""
    coordinator = stage.coordinator
    stage.fault("kill -9 of the job, and its checkpoint is removed")
    coordinator.job.kill()
    coordinator.await_end_of_jvm()
    shutil.rmtree(coordinator.checkpoint)
    return coordinator


def tear(path: Path) -> None:
    """Cut a file in the middle, and remove Hadoop's checksum of it."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    _checksum(path).unlink(missing_ok=True)


def files_to_remove(line: str) -> list[str]:
    """The files that the job's line says to remove. Raises DrillFailed if it names none."""
    found = re.search(r": remove (.+?)(?:, and the job reads .*)?$", line)
    if found is None:
        raise DrillFailed(f"the job does not say which file to remove: {line}")
    return found[1].split(", ")


def damage(stage: Stage) -> None:
    """Kill the job, tear the file of its newest batch, and do what the job's line says."""
    coordinator = stage.coordinator
    stage.fault("kill -9 of the job, and the file of its newest batch is torn")
    coordinator.job.kill()
    coordinator.await_end_of_jvm()
    commits = coordinator.checkpoint / "commits"
    torn = max((file for file in commits.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))
    tear(torn)
    stage.step(f"commits/{torn.name} is torn; the job is started")
    line = coordinator.start_job().await_line("that it refuses the checkpoint", lambda line: "is damaged" in line)
    stage.step(f"the job refuses: {line.removeprefix('error: ')}")
    coordinator.job.wait(JVM_END_LIMIT_SECONDS)
    removed = files_to_remove(line)
    stage.repair(f"removed, as the line says: {', '.join(removed)}; the job is started")
    for path in map(coordinator.checkpoint.joinpath, removed):
        path.unlink()
        _checksum(path).unlink(missing_ok=True)
    coordinator.start_job()


def _checksum(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


RESTORE = Scenario(
    drill="restore",
    title="The checkpoint is lost and restored from a backup",
    what="A backup is taken while the job runs, and clients go on committing. Then the checkpoint is lost. The "
    "requests since the backup are replayed from the log: every acknowledged commit must be there.",
    objectives=RecoveryObjectives(first_answer_seconds=120),
    play=restore,
    prepare=back_up,
)
REBUILD = Scenario(
    drill="rebuild",
    title="The checkpoint is lost and rebuilt from the journal",
    what="The checkpoint is lost and there is no backup. The journal has every change of every group: members, "
    "generations and acknowledged commits must be as they were.",
    objectives=RecoveryObjectives(first_answer_seconds=120),
    play=rebuild,
)
DAMAGE = Scenario(
    drill="damage",
    title="A file of the checkpoint is damaged",
    what="kill -9 of the job, and the file of its newest batch is torn. The job refuses the checkpoint with a line "
    "that says what helps; the drill does that, and the job goes on.",
    objectives=RecoveryObjectives(first_answer_seconds=60),
    play=damage,
)
