"""What a transactional member reports of itself, without a broker."""

import threading
import time
from io import BytesIO

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.recovery.chaos.transactional import TransactionalMember, living
from tests.recovery.checker import Recorder

LIMIT_SECONDS = 0.2


class Hanging(TransactionalMember):
    """A member whose client never returns."""

    def _live(self, ended: threading.Event) -> None:
        ended.wait()
        time.sleep(5 * LIMIT_SECONDS)


class Crashing(TransactionalMember):
    """A member with an error of its own."""

    def _live(self, ended: threading.Event) -> None:
        raise AssertionError("completed twice")


class Orderly(TransactionalMember):
    """A member that ends with the run."""

    def _live(self, ended: threading.Event) -> None:
        ended.wait()


def member(kind: type[TransactionalMember]) -> TransactionalMember:
    return kind(Recorder(BytesIO()), "unused:9092", "group", "orders", "shipments", "member", 1)


@pytest.mark.parametrize(
    ("kind", "failures"), [(Hanging, ["has not ended"]), (Crashing, ["completed twice"]), (Orderly, [])]
)
def test_a_member_that_crashes_or_does_not_end_is_a_failure(
    kind: type[TransactionalMember], failures: list[str]
) -> None:
    found: list[str] = []
    with living([member(kind)], found, LIMIT_SECONDS):
        pass
    assert len(found) == len(failures)
    assert all(part in failure for part, failure in zip(failures, found, strict=True))


def test_a_member_that_has_lost_its_partitions_has_none() -> None:
    alive = member(TransactionalMember)
    consumer = Consumer({"group.id": "unused", "bootstrap.servers": "127.0.0.1:1", "log_level": 0})
    try:
        partitions = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
        alive._on_assign(consumer, partitions)
        assert alive.has_partitions
        alive._on_revoke(consumer, partitions)
        assert not alive.has_partitions
    finally:
        consumer.close()


def test_a_member_that_did_nothing_has_not_worked() -> None:
    assert not member(TransactionalMember).has_worked_since(0.0)
