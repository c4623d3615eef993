"""The directory has the size of a large group, so that a gateway asks for few of them at a time."""

import json

import pytest

from coordinator_logic.config import LOGIC_VERSION, CoordinatorConfig
from coordinator_logic.records.definitions import LARGE_GROUP_BYTES
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.processing import process
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.state_row import StateRow
from streaming.job.rows.records import KafkaRecord
from tests.job.group_batch.test_refused_requests import join
from tests.support.request_events import commit, dumped

NOW = 1_700_000_000_000
TOPICS = TopicNames()
SETTINGS = Settings(TOPICS, 1, CoordinatorConfig(group_initial_rebalance_delay_ms=0, logic_version=LOGIC_VERSION))


def batch(request: dict[str, object], offset: int, stored: StateRow | None) -> tuple[list[object], StateRow]:
    """The sizes that the directory gets in a batch with one request, and the stored group."""
    outcome = process(
        SETTINGS, "g", [KafkaRecord(NOW + offset, 0, offset, b"g", dumped(request))], stored, NOW + offset
    )
    assert outcome.state is not None
    entries = [json.loads(row.value or b"") for row in outcome.rows if row.topic == TOPICS.directory]
    return [entry.get("storedBytes") for entry in entries], outcome.state


@pytest.mark.parametrize(
    ("metadata", "size"),
    [(1_000, None), (LARGE_GROUP_BYTES, 2 * LARGE_GROUP_BYTES), (700_000, 1 << 20)],
)
def test_the_directory_has_the_size_of_a_large_group_rounded_up(metadata: int, size: int | None) -> None:
    sizes, stored = batch(join(bytes(metadata)), 0, None)
    assert sizes == [size]
    assert size is None or size / 2 < len(stored.snapshot) <= size
    assert batch(commit("g", 1), 1, stored)[0] == []
