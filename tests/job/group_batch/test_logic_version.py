"""A batch gives the bytes of the release that has planned it: an entry says that it ends its turn since version 1."""

import msgspec

from coordinator_logic.config import LOGIC_VERSION, CoordinatorConfig
from coordinator_logic.messages import OffsetCommitRequest, PartitionToCommit, RequestEnvelope, TopicToCommit
from streaming.contract.topics import TopicNames
from streaming.job.group_batch.replay import process_batch
from streaming.job.group_batch.settings import Settings
from streaming.job.group_batch.starts import Start
from streaming.job.lifecycle.query_start import protocol_config
from streaming.job.options import JobOptions
from streaming.job.rows.records import KafkaRecord
from streaming.job.topics.layout import Partitions

TOPICS = TopicNames()
PLANNED, GROUP_ID = 5_000, "billing"


def present(epoch: int) -> CoordinatorConfig:
    """The configuration that this release records with a start."""
    options = JobOptions(bootstrap_servers="-", checkpoint="-")
    config = protocol_config(options, Partitions(4, 4, 1))
    return msgspec.structs.replace(config, job_epoch=epoch)


def of_earlier_release(config: CoordinatorConfig) -> CoordinatorConfig:
    """The configuration as a release without versions of the logic has recorded it."""
    recorded = msgspec.to_builtins(config)
    del recorded["logic.version"]
    return msgspec.convert(recorded, CoordinatorConfig)


def commit(offset: int) -> KafkaRecord:
    body = OffsetCommitRequest(GROUP_ID, topics=[TopicToCommit("orders", [PartitionToCommit(0, offset)])])
    envelope = RequestEnvelope("OffsetCommit", 8, f"commit-{offset}", 0, msgspec.Raw(msgspec.json.encode(body)))
    return KafkaRecord(1_000, 0, offset, GROUP_ID.encode(), msgspec.json.encode(envelope))


def journal(*starts: Start) -> list[bytes]:
    """The values of the journal's rows of a batch, which the last start runs."""
    config = starts[-1].config
    assert config is not None
    settings = Settings(TOPICS, 4, config, starts, has_deadline_checks=True)
    outcome = process_batch(settings, GROUP_ID, [commit(1), commit(2)], None, PLANNED)
    return [row.value or b"" for row in outcome.rows if row.topic == TOPICS.journal]


def test_the_job_records_the_present_version_with_its_starts() -> None:
    assert present(1).logic_version == LOGIC_VERSION
    assert of_earlier_release(present(1)).logic_version == 0


def test_a_batch_of_an_earlier_release_that_runs_again_gives_its_old_bytes() -> None:
    old = Start(started_at=1_000, config=of_earlier_release(present(1)))
    planned = journal(old)
    assert not any(b"endsTurn" in value for value in planned)
    now = Start(started_at=9_000, config=present(2), open_batch_time=PLANNED, open_batch_epoch=1)
    assert journal(old, now) == planned


def test_a_batch_of_a_release_that_did_not_record_its_configuration_gives_its_old_bytes() -> None:
    now = Start(started_at=9_000, config=present(2), open_batch_time=PLANNED)
    assert not any(b"endsTurn" in value for value in journal(Start(started_at=1_000), now))


def test_requests_that_an_earlier_release_has_read_give_its_old_bytes_when_they_are_played_again() -> None:
    old = Start(started_at=500, config=of_earlier_release(present(1)))
    now = Start(started_at=4_000, config=present(2), replay_until={0: 3}, replay_until_time=2_000, copied_epoch=1)
    assert now.replays
    replayed = journal(old, now)
    assert len(replayed) == 3
    assert not any(b"endsTurn" in value for value in replayed)
    assert all(b'"jobEpoch":1' in value for value in replayed)


def test_the_last_entry_of_each_turn_says_so() -> None:
    created, first, second = journal(Start(started_at=1_000, config=present(1)))
    assert b'"endsTurn":false' in created
    assert b'"endsTurn":true' in first
    assert b'"endsTurn":true' in second
