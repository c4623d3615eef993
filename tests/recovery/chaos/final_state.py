"""What a run has left: the journal, and the groups in the checkpoint of the stopped job."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from pyspark.sql import SparkSession

from coordinator_logic import snapshot
from coordinator_logic.messages import OffsetCommitRequest, RequestEnvelope
from streaming.contract.topics import TopicNames
from streaming.embedded.jars import resolve_jars
from streaming.job.group_batch.state_row import StateRow
from streaming.job.options import load_options
from streaming.job.session import spark_session, spark_settings
from streaming.job.spark_internals.checkpoint_layout.needed_files import newest_complete_batch
from streaming.job.spark_internals.checkpoint_layout.state_reader import stored_groups
from streaming.job.state_stores import StateStore
from tests.support.coordinator_process import SHORT_LIVED_JVM
from tests.support.kafka_io import reading


def journal_of(bootstrap_servers: str, topics: TopicNames) -> list[bytes]:
    """The values of the journal, each partition's in the order of the log."""
    with reading(bootstrap_servers, topics.journal) as journal:
        return [record.raw for record in journal.to_the_end() if record.raw is not None]


@contextmanager
def state_reader(folder: Path) -> Iterator[SparkSession]:
    """A Spark session that reads checkpoints, for all runs of a campaign."""
    options = {
        "bootstrap-servers": "unused:9092",
        "checkpoint": str(folder / "unused"),
        "master": "local[1]",
        "driver-memory": "512m",
        **SHORT_LIVED_JVM,
    }
    with spark_session(spark_settings(load_options(options, {}), resolve_jars())) as spark:
        yield spark


def snapshots_in(spark: SparkSession, checkpoint: Path, store: StateStore) -> dict[str, bytes | None]:
    """The snapshot of each group after the newest complete batch of a checkpoint that no job uses."""
    batch = newest_complete_batch(checkpoint)
    if batch is None:
        return {}
    groups = stored_groups(spark, checkpoint, batch, store)
    return {group.group_id: StateRow.unpacked(group.stored).snapshot for group in groups}


def lost_commits(delivered: Mapping[str, bytes], snapshots: Mapping[str, bytes | None]) -> list[str]:
    """What the groups at the end of a run do not have of the commits that were appended last, by group."""
    lost: list[str] = []
    for group, value in sorted(delivered.items()):
        body = msgspec.json.decode(msgspec.json.decode(value, type=RequestEnvelope).body, type=OffsetCommitRequest)
        stored = snapshots.get(group)
        offsets = {} if stored is None else snapshot.decode(stored).offsets
        for topic in body.topics:
            for wanted in topic.partitions:
                found = offsets.get(topic.name, {}).get(wanted.partition_index)
                if found is None or found.offset != wanted.committed_offset:
                    has = "nothing" if found is None else f"offset {found.offset}"
                    lost.append(f"{group}: offset {wanted.committed_offset} was appended last, the state has {has}")
    return lost
