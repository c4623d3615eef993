"""Snapshots in the checkpoint: damaged ones are quarantined, and a group that can be read goes on."""

from collections.abc import Iterator
from pathlib import Path

from coordinator_logic import snapshot
from streaming.job.group_batch.processing import Outcome
from streaming.job.group_batch.state_row import StateRow
from tests.fuzz.targets.conversation import NOW, answered, join, lived, records
from tests.support.request_events import commit, dumped

KEPT = Path(__file__).parents[2] / "logic" / "snapshots" / "format-1.hex"


def seeds() -> Iterator[bytes]:
    """The kept snapshot of format 1, and groups with a member, with a parked join and with offsets."""
    yield bytes.fromhex(KEPT.read_text())
    for requests in ([join()], [join(), join(correlationId="another")], [commit("g", 7)], [join(), commit("g", 7)]):
        stored = answered(records(map(dumped, requests))).state
        assert stored is not None
        yield stored.snapshot


def run(data: bytes) -> None:
    """Read the snapshot, and take its group through two batches."""
    try:
        group = snapshot.decode(data)
        snapshot.encode(group)
    except snapshot.UnreadableSnapshot:
        pass
    lived(Outcome([], StateRow(data), NOW))
