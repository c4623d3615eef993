"""A batch with a timeout runs again without the map of groups: it calls the same group, and writes the same bytes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from streaming.job.group_batch.steps import DEADLINE_CHECK
from streaming.job.spark_internals.group_map.compilation import make_group_map_jar
from streaming.job.spark_internals.registry import GROUP_MAP, OFF_VARIABLE
from tests.job.test_replay import batches, join
from tests.job.wake_events.test_silence import await_silence
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import Record, append, reading
from tests.support.request_events import commit, dumped

SESSION_MS = 6_000
SILENT = b"silent"
OTHERS = 50


def asking_batch(progress: Path, check: Record) -> int:
    """The batch that has appended the check: the last that has changed a group before the one that has read it."""
    asking = -1
    for report in map(json.loads, progress.read_text().splitlines()):
        (end,) = report["sources"][0]["endOffset"].values()
        if end[str(check.partition)] > check.offset:
            break
        if report["stateOperators"][0]["numRowsUpdated"]:
            asking = report["batchId"]
    return asking


def state_file(coordinator: CoordinatorProcess, batch: int) -> Path:
    """What a batch has changed in the state."""
    return coordinator.checkpoint / "state" / "0" / "0" / f"{batch + 1}.delta"


def test_a_batch_with_a_timeout_runs_again_with_sparks_own_map_and_the_same_bytes(
    new_coordinator: Callable[..., CoordinatorProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_group_map_jar()
    progress = tmp_path / "progress"
    coordinator = new_coordinator({"progress-file": str(progress)})
    coordinator.start()
    servers, topics = coordinator.bootstrap_servers, coordinator.topics
    silent = join(SILENT.decode())
    silent["body"] |= {"sessionTimeoutMs": SESSION_MS, "rebalanceTimeoutMs": SESSION_MS}  # type: ignore[operator]
    others = [(f"other-{number}".encode(), dumped(commit(f"other-{number}", number))) for number in range(OTHERS)]
    append(servers, topics.requests, (SILENT, dumped(silent)), *others)
    with reading(servers, topics.directory) as directory:
        directory.until(
            lambda records: [each.value["members"] for each in records if each.key == SILENT][-2:] == [1, 0],
            "the member, which has sent no heartbeat, is removed",
        )
    await_silence(coordinator, 1.0)
    coordinator.stop()

    asked = checks(coordinator)
    again = asking_batch(progress, asked[0])
    first = state_file(coordinator, again).read_bytes()
    # Of this batch only the plan is left, and of later batches nothing.
    for log, kept in (("offsets", again), ("commits", again - 1)):
        for batch in batches(coordinator.checkpoint / log):
            if batch > kept:
                (coordinator.checkpoint / log / str(batch)).unlink()
    for file in state_file(coordinator, again).parent.glob("[0-9]*"):
        if int(file.name.partition(".")[0]) > again:
            file.unlink()
    monkeypatch.setenv(OFF_VARIABLE, GROUP_MAP.name)
    coordinator.start()
    coordinator.stop()
    assert state_file(coordinator, again).read_bytes() == first
    assert len(checks(coordinator)) > len(asked)


def checks(coordinator: CoordinatorProcess) -> list[Record]:
    """The deadline checks of the silent group, in order."""
    with reading(coordinator.bootstrap_servers, coordinator.topics.requests) as requests:
        return [record for record in requests.to_the_end() if record[3:] == (SILENT, DEADLINE_CHECK)]
