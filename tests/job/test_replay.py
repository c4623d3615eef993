"""A batch that runs again writes the same bytes and changes the groups in the same way."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.coordinator_process import CoordinatorProcess
from tests.support.kafka_io import append, reading
from tests.support.request_events import commit, dumped, envelope


def join(group_id: str, member_id: str = "") -> dict[str, object]:
    body = {
        "groupId": group_id,
        "sessionTimeoutMs": 60_000,
        "rebalanceTimeoutMs": 60_000,
        "memberId": member_id,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": ""}],
    }
    return envelope("JoinGroup", 3, body)


def test_a_batch_that_was_not_committed_runs_again_with_the_same_bytes(
    new_coordinator: Callable[..., CoordinatorProcess],
) -> None:
    coordinator = new_coordinator()
    coordinator.start()
    servers, topics = coordinator.bootstrap_servers, coordinator.topics
    coordinator.stop()
    offsets, commits = coordinator.checkpoint / "offsets", coordinator.checkpoint / "commits"
    last_without_requests = max(batches(offsets))
    long = commit("i", 3)
    long["body"]["topics"][0]["partitions"][0]["committedMetadata"] = "too long for the options after the restart"
    requests = [join("g"), join("g"), join("h"), commit("i", 1), commit("i", 2), long, envelope("Fetch", 1, {})]
    groups = ["g", "g", "h", "i", "i", "i", "i"]
    records = [(group.encode(), dumped(request)) for group, request in zip(groups, requests, strict=True)]
    append(servers, topics.requests, *records, (b"i", b"nonsense"))
    coordinator.start()
    coordinator.stop()

    # As after a kill between the sink's work and the commit: of the batch that read the requests only the plan is
    # left, and of later batches nothing.
    for log, kept in ((offsets, last_without_requests + 1), (commits, last_without_requests)):
        for batch in batches(log):
            if batch > kept:
                (log / str(batch)).unlink()
    for file in (coordinator.checkpoint / "state" / "0" / "0").glob("[0-9]*"):
        if int(file.name.partition(".")[0]) > last_without_requests + 2:
            file.unlink()
    first = {topic: all_of(servers, topic) for topic in (topics.responses, topics.journal, topics.rejects)}
    coordinator.options["offset.metadata.max.bytes"] = 1
    coordinator.start()
    coordinator.stop()

    for topic, records_before in first.items():
        assert records_before
        twice = {record: 2 * count for record, count in Counter(records_before).items()}
        assert Counter(all_of(servers, topic)) == twice, topic


@pytest.mark.long
def test_a_restored_copy_of_a_checkpoint_gives_the_same_journal(
    new_coordinator: Callable[..., CoordinatorProcess],
) -> None:
    # The other test uses the default store.
    coordinator = new_coordinator({"state-store": "rocksdb"})
    coordinator.start()
    servers, topics = coordinator.bootstrap_servers, coordinator.topics
    append(servers, topics.requests, (b"g", dumped(commit("g", 1))))
    with reading(servers, topics.responses) as responses:
        responses.until(lambda records: len(records) == 1, "the answer")
    coordinator.stop()
    aside = coordinator.checkpoint.with_name("aside")
    shutil.copytree(coordinator.checkpoint, aside)

    append(servers, topics.requests, *[(b"g", dumped(commit("g", offset))) for offset in (2, 3)])
    coordinator.start()
    coordinator.stop()
    journal = set(all_of(servers, topics.journal))
    shutil.rmtree(coordinator.checkpoint)
    shutil.copytree(aside, coordinator.checkpoint)
    coordinator.start()
    coordinator.stop()
    # The batches are cut differently, but the journal's records are the same, so readers drop the second ones.
    assert set(all_of(servers, topics.journal)) == journal


def batches(log: Path) -> list[int]:
    """The batches in a log of the checkpoint."""
    return [int(file.name) for file in log.iterdir() if file.name.isdigit()]


class Content(NamedTuple):
    """A record without its offset and time, which differ when a batch runs again."""

    partition: int
    key: bytes | None
    value: bytes | None


def all_of(servers: str, topic: str) -> list[Content]:
    with reading(servers, topic) as reader:
        return [Content(record.partition, record.key, record.raw) for record in reader.to_the_end()]
