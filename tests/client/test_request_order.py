"""The order of a member's commits in the log, while the broker is paused."""

import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from coordinator_logic.messages import OffsetCommitRequest, PartitionToCommit, ResponseEnvelope, TopicToCommit
from streaming.client import CoordinatorNotAvailable, RequestTimedOut
from streaming.client.request_reply import RequestReply
from streaming.contract.topics import TopicNames
from streaming.embedded.broker import EmbeddedBroker
from tests.support.kafka_io import reading
from tests.support.topics import create_topic, unique
from tests.support.waiting import LIMIT_SECONDS, wait_until

GROUP = "group"
STALL_SECONDS = 1.0
PATIENCE_SECONDS = 3.0
"""How long each client waits for an answer; by then a request that could be given up is given up."""

PAUSE_SECONDS = 4.0


@dataclass
class Commits:
    """The commits of one member, each of the next offset."""

    channel: RequestReply
    sent: int = 0
    acknowledged: list[int] = field(default_factory=list)
    futures: dict[int, Future[ResponseEnvelope]] = field(default_factory=dict)

    def send(self, timeout: float = LIMIT_SECONDS) -> int:
        """Commit the next offset; returns it."""
        self.sent += 1
        offset = self.sent
        body = OffsetCommitRequest(GROUP, [TopicToCommit("topic", [PartitionToCommit(0, offset)])], 1, "member")
        self.futures[offset] = self.channel.send(
            GROUP, "OffsetCommit", 9, body, timeout, on_appended=lambda: self.acknowledged.append(offset)
        )
        return offset

    def send_and_wait(self) -> int:
        """Commit the next offset, and wait until it is acknowledged."""
        offset = self.send()
        wait_until(lambda: offset in self.acknowledged, f"offset {offset} is acknowledged")
        return offset

    def failed_with(self, kind: type[Exception]) -> set[int]:
        """The offsets whose commits have failed in this way."""
        return {
            offset for offset, future in self.futures.items() if future.done() and isinstance(future.exception(), kind)
        }


@contextmanager
def committing(bootstrap_servers: str) -> Iterator[tuple[Commits, TopicNames]]:
    topics = TopicNames(unique("order") + "-")
    for topic in (topics.requests, topics.responses):
        create_topic(bootstrap_servers, topic, 1)
    channel = RequestReply(bootstrap_servers, topics, "gateway", "", {}, LIMIT_SECONDS, STALL_SECONDS)
    try:
        yield Commits(channel), topics
    finally:
        channel.close()


def offsets_in_log(bootstrap_servers: str, topics: TopicNames) -> list[int]:
    with reading(bootstrap_servers, topics.requests) as reader:
        bodies = [record.value["body"] for record in reader.to_the_end()]
    return [body["topics"][0]["partitions"][0]["committedOffset"] for body in bodies]


@pytest.fixture
def paused_broker() -> Iterator[EmbeddedBroker]:
    """A broker that a test may pause."""
    with EmbeddedBroker() as broker:
        yield broker
        os.kill(broker.pid, signal.SIGCONT)


@pytest.mark.jvm
def test_commits_keep_their_order_and_their_answers_are_true_while_the_broker_is_paused(
    paused_broker: EmbeddedBroker,
) -> None:
    with committing(paused_broker.bootstrap_servers) as (commits, topics):
        for _ in range(5):
            commits.send_and_wait()
        os.kill(paused_broker.pid, signal.SIGSTOP)
        # The producer has the first ones; the client of each hears nothing within its patience and tries again.
        resumed_at = time.monotonic() + PAUSE_SECONDS
        while time.monotonic() < resumed_at:
            commits.send(PATIENCE_SECONDS)
            time.sleep(0.01)
        os.kill(paused_broker.pid, signal.SIGCONT)
        wait_until(lambda: all(commits.futures[offset].done() for offset in range(6, commits.sent + 1)), "all failed")
        last = commits.send_and_wait()

        in_log = offsets_in_log(paused_broker.bootstrap_servers, topics)
        assert in_log == sorted(set(in_log)), "an older commit is behind a newer one"
        assert set(commits.acknowledged) <= set(in_log)
        assert in_log[-1] == last
        timed_out, refused = commits.failed_with(RequestTimedOut), commits.failed_with(CoordinatorNotAvailable)
        assert timed_out | refused == set(range(6, last))
        assert timed_out
        assert refused.isdisjoint(in_log), "a commit that was answered not to be sent is in the log"
        assert refused
