"""Writing rows, without Spark or Kafka."""

import base64
import json

import pytest

from coordinator_logic.events import ReplyAddress, Response
from coordinator_logic.groups.classic.records import StateChanged
from coordinator_logic.messages import DescribedGroup, DescribeGroupsResponse, HeartbeatResponse
from coordinator_logic.records import (
    EXPIRED,
    GroupCreated,
    GroupDirectoryEntry,
    JournalEntry,
    OffsetCommitted,
    OffsetsCommitted,
    OffsetsDeleted,
    RequestCause,
    TimerCause,
    TopicPartitions,
    TransactionalOffsetsCommitted,
    TransactionEnded,
)
from streaming.client.key_partition import partition_of_key
from streaming.contract.topics import MAX_REQUEST_BYTES, MAX_ROW_BYTES, TopicNames
from streaming.job.measures import AnsweredRequest, Increment, MovedBack
from streaming.job.rows.writing import RowTooLarge, RowWriter
from tests.job.rows.records import a_request, rejected

TOPICS = TopicNames("p-")


def a_writer(group_id: str = "g", batch_time: int = 0) -> RowWriter:
    return RowWriter(TOPICS, group_id, batch_time)


def test_a_reject_row_has_the_place_and_the_bytes_of_its_record() -> None:
    row = a_writer().reject(rejected(b"\xffnonsense", b"\xfekey"))
    assert (row.topic, row.partition, row.key) == ("p-group-rejects", None, b"\xfekey")
    reject = json.loads(row.value or b"")
    assert base64.b64decode(reject.pop("value")) == b"\xffnonsense"
    assert "not UTF-8" in reject.pop("reason")
    assert reject == {"errorCode": 42, "partition": 2, "offset": 7, "timestamp": 1_000}


def test_the_largest_record_that_kafka_accepts_fits_into_the_rejects_topic() -> None:
    for value in (b"\x00" * MAX_REQUEST_BYTES, b'"' * MAX_REQUEST_BYTES):
        reject = rejected(value, b"\x00" * 30_000)
        a_writer().reject(reject)
    long_key = rejected(a_request(), b"\x00" * MAX_REQUEST_BYTES)
    assert long_key.address is not None
    a_writer().reject(long_key)
    a_writer("\x00" * MAX_REQUEST_BYTES).error(long_key.address, long_key.error, "\x00" * 10**7)


def test_a_groups_rows_stay_in_the_partitions_that_the_topics_had_at_first() -> None:
    writer = RowWriter(TOPICS, "billing", 0, keyed_partitions=(4, 1))
    line = GroupDirectoryEntry("billing", "Empty", "classic", "", 0, 0)
    entry = JournalEntry("billing", "0-0", 1, 0, GroupCreated(), TimerCause("expiry", "", 0))
    assert writer.journal(entry).partition == partition_of_key(b"billing", 4)
    assert (writer.directory(line).partition, writer.directory(None).partition) == (0, 0)


def test_a_response_row_goes_to_the_partition_that_the_request_named() -> None:
    response = Response(ReplyAddress("Heartbeat", 4, "c1", 3, 1_000), "g", 27, HeartbeatResponse(27))
    row = a_writer(batch_time=1_234).response(response)
    assert (row.topic, row.partition, row.key) == ("p-group-responses", 3, b"c1")
    assert json.loads(row.value or b"") == {
        "api": "Heartbeat",
        "version": 4,
        "correlationId": "c1",
        "groupId": "g",
        "errorCode": 27,
        "body": {"errorCode": 27},
        "errorMessage": None,
        "jobEpoch": 0,
    }
    assert row.measure == AnsweredRequest("Heartbeat", 27, 234)


def test_a_response_beyond_the_limit_of_its_topic_raises() -> None:
    groups = [DescribedGroup("g", error_message="x" * MAX_ROW_BYTES)]
    address = ReplyAddress("DescribeGroups", 5, "c", 0, 0)
    with pytest.raises(RowTooLarge, match="group-responses"):
        a_writer().response(Response(address, "g", 0, DescribeGroupsResponse(groups)))


def test_a_completed_rebalance_is_measured_in_the_journal() -> None:
    cause = RequestCause("SyncGroup", 5, "m", "c", "/h", "id", 0, 0)
    stable = JournalEntry("g", "0-0-0", 2, 5, StateChanged("CompletingRebalance", "Stable", ""), cause)
    created = JournalEntry("g", "0-0-0", 1, 5, GroupCreated(), cause)
    assert a_writer().journal(stable).measure == Increment("rebalances_completed", 1)
    assert a_writer().journal(created).measure is None


def test_a_journal_record_counts_the_offsets_that_it_made_lower_by_what_did_it() -> None:
    committed = OffsetsCommitted([OffsetCommitted("t", partition, 1, None, "", 0, None) for partition in range(3)])
    for api, record, measure in (
        ("OffsetCommit", committed, MovedBack("commit", 2, 3)),
        ("ResetOffsets", committed, MovedBack("reset", 2, 3)),
        ("WriteTxnMarkers", TransactionEnded(1, 0, True), MovedBack("commit", 2, 0)),
    ):
        entry = JournalEntry("g", "0-0-0", 1, 5, record, RequestCause(api, 0, "m", "c", "/h", "id", 0, 0))
        assert a_writer().journal(entry, moved_back=2).measure == measure


def test_journal_records_of_offsets_count_partitions() -> None:
    cause = RequestCause("OffsetCommit", 5, "m", "c", "/h", "id", 0, 0)
    committed = OffsetCommitted("t", 0, 1, None, "", 0, None)
    for record, measure in (
        (OffsetsCommitted([committed]), Increment("offsets_committed", 1)),
        (TransactionalOffsetsCommitted("x", 1, 0, [committed, committed]), Increment("offsets_committed", 2)),
        (
            OffsetsDeleted([TopicPartitions("t", [0, 1]), TopicPartitions("u", [5])], "deleted by a request"),
            Increment("offsets_deleted", 3),
        ),
        (OffsetsDeleted([TopicPartitions("t", [0])], EXPIRED), Increment("offsets_expired", 1)),
    ):
        assert a_writer().journal(JournalEntry("g", "0-0-0", 1, 5, record, cause)).measure == measure
