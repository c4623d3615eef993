"""A file of the checkpoint is torn, as after a power failure: the job refuses it, and its line says what helps."""

import re
from pathlib import Path

from streaming.drills.errors import DrillFailed
from streaming.drills.own_coordinator import JVM_END_LIMIT_SECONDS
from streaming.drills.reports.verdict import RecoveryObjectives
from streaming.drills.stage import Scenario, Stage


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


def play(stage: Stage) -> None:
    """Kill the job, tear the file of its newest batch, and do what the job's line says."""
    coordinator = stage.coordinator
    stage.fault("kill -9 of the job, and the file of its newest batch is torn")
    coordinator.job.process.kill()
    coordinator.await_end_of_jvm()
    commits = coordinator.checkpoint / "commits"
    torn = max((file for file in commits.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))
    tear(torn)
    stage.step(f"commits/{torn.name} is torn; the job is started")
    line = coordinator.start_job().await_line("that it refuses the checkpoint", lambda line: "is damaged" in line)
    stage.step(f"the job refuses: {line.removeprefix('group-coordinator: ')}")
    coordinator.job.process.wait(JVM_END_LIMIT_SECONDS)
    removed = files_to_remove(line)
    stage.repair(f"removed, as the line says: {', '.join(removed)}; the job is started")
    for path in map(coordinator.checkpoint.joinpath, removed):
        path.unlink()
        _checksum(path).unlink(missing_ok=True)
    coordinator.start_job()


def _checksum(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


SCENARIOS = (
    Scenario(
        drill="damage",
        title="A file of the checkpoint is damaged",
        what="kill -9 of the job, and the file of its newest batch is torn. The job refuses the checkpoint with a line "
        "that says what helps; the drill does that, and the job goes on.",
        objectives=RecoveryObjectives(first_answer_seconds=60),
        play=play,
    ),
)
