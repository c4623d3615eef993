"""A transaction whose end never comes is aborted after ``transactional.id.expiration.ms``, whatever its group does."""

from typing import Any

import msgspec
import pytest

from coordinator_logic.config import FIRST_LOGIC_VERSION_ABORTING_TRANSACTIONS, LOGIC_VERSION
from coordinator_logic.errors import Error
from coordinator_logic.records import EXPIRED, GroupDeleted, TimerCause, TransactionEnded
from tests.logic.driver import Driven, reading
from tests.logic.groups.consumer.driver import Consumer, DrivenConsumers

WEEK_MS = 7 * 24 * 3_600_000
MONTH_MS = 30 * 24 * 3_600_000
TICK_MS = 600_000
LASTING: dict[str, Any] = {"offsets_retention_check_interval_ms": TICK_MS, "offsets_retention_minutes": 2**31}


@pytest.fixture
def driven() -> Driven:
    """A group with Kafka's defaults, but for committed offsets that last for years."""
    return Driven(**LASTING)


def stable_read(driven: Driven, partition: int = 0) -> Error | int:
    """What a consumer that asks for stable offsets gets: the offset, -1 for none, or the error."""
    (topic,) = driven.fetch({"topic": [partition]}, require_stable=True)
    (fetched,) = topic.partitions
    return Error(fetched.error_code) if fetched.error_code else fetched.committed_offset


def test_a_transaction_that_nobody_ends_no_longer_blocks_stable_reads_after_a_week(driven: Driven) -> None:
    driven.commit(offsets={("topic", 0): 1})
    driven.commit_in_transaction({("topic", 0): 100})
    driven.sleep(WEEK_MS - TICK_MS)
    assert stable_read(driven) is Error.UNSTABLE_OFFSET_COMMIT
    driven.sleep(2 * TICK_MS)
    assert stable_read(driven) == 1
    aborted = driven.journal[-1]
    assert aborted.record == TransactionEnded(7, 0, committed=False)
    assert isinstance(aborted.cause, TimerCause)
    assert aborted.cause.timer == "expiry"


def test_it_does_not_block_a_group_with_a_member_either(driven: Driven) -> None:
    (member,) = driven.stable_group(1, session_ms=600_000, protocols=reading("topic"))
    driven.commit_in_transaction({("topic", 0): 100})
    for _ in range(WEEK_MS // 500_000 + 3):
        driven.sleep(500_000)
        assert driven.heartbeat(member).error is Error.NONE
    assert stable_read(driven) == -1
    assert "expiry" not in driven.group.timers


def test_it_does_not_block_a_consumer_group_either() -> None:
    driven = DrivenConsumers(offsets_retention_check_interval_ms=TICK_MS)
    consumer = Consumer(driven, "a").join("topic", topics={"topic": 1})
    driven.converge(consumer)
    driven.commit_in_transaction({("topic", 0): 100})
    assert stable_read(driven) is Error.UNSTABLE_OFFSET_COMMIT
    driven.sleep(WEEK_MS + TICK_MS)
    assert stable_read(driven) == -1


def test_a_group_with_nothing_else_is_deleted_with_it(driven: Driven) -> None:
    driven.commit_in_transaction({("topic", 0): 100})
    driven.sleep(MONTH_MS)
    assert not driven.exists
    assert driven.records[-2:] == [TransactionEnded(7, 0, committed=False), GroupDeleted(EXPIRED)]


def test_the_time_counts_from_the_newest_offset_of_each_transaction(driven: Driven) -> None:
    driven.commit_in_transaction({("topic", 0): 1}, producer_id=7)
    driven.commit_in_transaction({("topic", 1): 1}, producer_id=8)
    driven.sleep(WEEK_MS // 2)
    driven.commit_in_transaction({("topic", 2): 1}, producer_id=8)
    driven.sleep(WEEK_MS // 2 + 2 * TICK_MS)
    assert list(driven.group.open_transactions) == [8]
    assert stable_read(driven, 1) is Error.UNSTABLE_OFFSET_COMMIT
    driven.end_transaction(commit=True, producer_id=8)
    assert (stable_read(driven, 1), stable_read(driven, 2)) == (1, 1)


def test_a_producer_that_comes_back_afterwards_begins_a_new_transaction(driven: Driven) -> None:
    driven.commit(offsets={("topic", 0): 1})
    driven.commit_in_transaction({("topic", 0): 100})
    driven.sleep(MONTH_MS)
    # The end that nobody expects any more ends nothing.
    driven.end_transaction(commit=True)
    assert stable_read(driven) == 1
    driven.commit_in_transaction({("topic", 0): 200})
    driven.end_transaction(commit=True)
    assert stable_read(driven) == 200


def test_a_transaction_whose_offsets_were_all_deleted_keeps_no_group(driven: Driven) -> None:
    driven.commit_in_transaction({("topic", 0): 100})
    driven.topics_deleted("topic")
    driven.sleep(WEEK_MS + TICK_MS)
    assert not driven.exists


def test_an_open_transaction_of_an_earlier_release_is_aborted_too() -> None:
    driven = Driven(**LASTING, logic_version=FIRST_LOGIC_VERSION_ABORTING_TRANSACTIONS - 1)
    driven.commit(offsets={("topic", 0): 1})
    driven.commit_in_transaction({("topic", 0): 100})
    driven.sleep(MONTH_MS)
    assert stable_read(driven) is Error.UNSTABLE_OFFSET_COMMIT
    driven.config = msgspec.structs.replace(driven.config, logic_version=LOGIC_VERSION)
    driven.commit(offsets={("topic", 1): 1})
    driven.sleep(2 * TICK_MS)
    assert stable_read(driven) == 1
