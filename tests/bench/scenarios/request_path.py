"""The path of a request, stage by stage: from the broker's clock, and from Spark's report of the batch."""

import statistics
from collections.abc import Sequence

from tests.bench.events import Sample
from tests.bench.figures import Stage
from tests.bench.systems.coordinators import Batch


def request_path(samples: Sequence[Sample], batches: Sequence[Batch]) -> list[Stage]:
    """Return the median duration of each stage; nothing when no sample falls into a batch."""
    to_log, to_batch, in_batch, to_client = [], [], [], []
    for sample in samples:
        candidates = [batch for batch in batches if sample.appended <= batch.began <= sample.answered]
        if not candidates:
            continue
        batch = candidates[-1]
        to_log.append(sample.appended - sample.due)
        to_batch.append(batch.began - sample.appended)
        in_batch.append(sample.answered - batch.began)
        to_client.append(sample.received - sample.answered)
    if not in_batch:
        return []
    latest_offset, wal_commit, planning = (
        statistics.median(batch.report["durationMs"].get(phase, 0) for batch in batches)
        for phase in ("latestOffset", "walCommit", "queryPlanning")
    )
    updates = statistics.median(batch.report["stateOperators"][0]["allUpdatesTimeMs"] for batch in batches)
    rest = _median_ms(in_batch) - latest_offset - wal_commit - planning - updates
    return [
        Stage("send and append", _median_ms(to_log)),
        Stage("wait for the running batch", _median_ms(to_batch)),
        Stage("query the latest offsets", latest_offset),
        Stage("write the offsets to the checkpoint", wal_commit),
        Stage("plan the query", planning),
        Stage("send the task, read and sort records, write responses", round(max(0.0, rest), 1)),
        Stage("groups: read state, Python, write state", updates),
        Stage("fetch by the client", _median_ms(to_client)),
    ]


def _median_ms(seconds: Sequence[float]) -> float:
    return round(1000 * statistics.median(seconds), 1)
