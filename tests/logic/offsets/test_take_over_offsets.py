"""TakeOverOffsets: a group begins with the offsets that it has at the brokers' coordinator."""

from coordinator_logic.committed_offsets import CommittedOffset
from coordinator_logic.errors import Error
from coordinator_logic.messages import (
    PartitionToCommit,
    TakeOverOffsetsRequest,
    TakeOverOffsetsResponse,
    TopicToCommit,
)
from coordinator_logic.records import GroupCreated, OffsetsCommitted, RequestCause
from coordinator_logic.states import State
from tests.logic.driver import Answer, Driven

TOPIC_ID = "A" * 21 + "Q"


def taken_over(driven: Driven, offset: int = 7, metadata: str | None = "m") -> Answer[TakeOverOffsetsResponse]:
    partition = PartitionToCommit(0, offset, 3, committed_metadata=metadata)
    body = TakeOverOffsetsRequest(driven.group_id, [TopicToCommit("topic", [partition], TOPIC_ID)])
    return driven.send("TakeOverOffsets", body)


def test_an_absent_group_begins_with_the_offsets_their_epochs_and_their_metadata(driven: Driven) -> None:
    assert taken_over(driven).body == TakeOverOffsetsResponse(taken_over=True)
    assert driven.group.offsets["topic"][0] == CommittedOffset(7, 3, "m", driven.now, None, 2, TOPIC_ID)
    assert driven.state() is State.EMPTY


def test_the_journal_says_where_the_offsets_come_from(driven: Driven) -> None:
    taken_over(driven)
    created, committed = driven.journal
    assert isinstance(created.record, GroupCreated)
    assert isinstance(committed.record, OffsetsCommitted)
    assert committed.record.reason == "taken over from the brokers' group coordinator"
    assert isinstance(committed.cause, RequestCause)
    assert committed.cause.api == "TakeOverOffsets"


def test_a_group_that_exists_keeps_what_it_has(driven: Driven) -> None:
    driven.commit(offsets={("topic", 0): 100})
    journal = list(driven.journal)
    assert taken_over(driven).body == TakeOverOffsetsResponse(taken_over=False)
    assert driven.group.offsets["topic"][0].offset == 100
    assert driven.journal == journal


def test_a_second_event_changes_nothing(driven: Driven) -> None:
    taken_over(driven, 7)
    assert taken_over(driven, 8).body == TakeOverOffsetsResponse(taken_over=False)
    assert driven.group.offsets["topic"][0].offset == 7


def test_metadata_that_the_brokers_have_accepted_is_accepted(driven: Driven) -> None:
    assert taken_over(driven, metadata="m" * 10_000).error is Error.NONE
    assert len(driven.group.offsets["topic"][0].metadata) == 10_000


def test_the_offsets_expire_as_if_they_were_committed_now() -> None:
    driven = Driven(offsets_retention_minutes=1, offsets_retention_check_interval_ms=1)
    taken_over(driven)
    driven.sleep(59_999)
    assert driven.fetch_one().committed_offset == 7
    driven.sleep(1)
    assert driven.fetch_one().committed_offset == -1


def test_an_empty_group_id_is_refused() -> None:
    driven = Driven(group_id="")
    assert taken_over(driven).error is Error.INVALID_GROUP_ID
    assert not driven.exists
