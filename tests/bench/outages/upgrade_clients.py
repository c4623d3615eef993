"""The clients of the measurement of an upgrade: ``python upgrade_clients.py SERVERS TOPIC``.

It runs with the code of any release, of which it imports nothing but the client. Each line of its output is a JSON
array: a time by ``time.monotonic``, what happened (``acked``, ``error`` or ``assigned``), to which group, and for an
acknowledged commit its partition and offset. SIGTERM ends it in order.
"""

import json
import signal
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from itertools import count
from typing import Any

from coordinator_logic import apis
from coordinator_logic.messages import OffsetCommitRequest, PartitionToCommit, TopicToCommit
from streaming.client import (
    Consumer,
    CoordinatorClient,
    CoordinatorError,
    OffsetAndMetadata,
    RebalanceListener,
    TopicPartition,
)

GROUPS_OF_COMMITS = 20
INTERVAL_SECONDS = 0.05
"""Between two commits of groups without members: 20 a second."""

MEMBERS = 2
"""Of each group with members."""

MEMBER_COMMITS_SECONDS = 0.5

_writing = threading.Lock()


def report(what: str, group: str, *details: object) -> None:
    with _writing:
        sys.stdout.write(json.dumps([time.monotonic(), what, group, *details]) + "\n")
        sys.stdout.flush()


class Reporting(RebalanceListener):
    """Reports each assignment that a member gets."""

    def __init__(self, group: str) -> None:
        self._group = group

    def on_partitions_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Report it."""
        report("assigned", self._group)


def commit_without_members(servers: str, topic: str, ended: threading.Event) -> None:
    """Commit for one group after the other, without waiting for the answers."""

    def finish(group: str, offset: int, answered: "Future[Any]") -> None:
        try:
            errors = [each.error_code for each in answered.result().unwrap().topics[0].partitions if each.error_code]
        except CoordinatorError as error:
            report("error", group, type(error).__name__)
        else:
            report("error", group, *errors) if errors else report("acked", group, 0, offset)

    with CoordinatorClient(servers) as client:
        for number in count(1):
            if ended.wait(INTERVAL_SECONDS):
                return
            group = f"commits-{number % GROUPS_OF_COMMITS}"
            request = OffsetCommitRequest(group, [TopicToCommit(topic, [PartitionToCommit(0, number)])])
            client.ask(apis.OFFSET_COMMIT, group, request).add_done_callback(partial(finish, group, number))


def consume(servers: str, topic: str, group: str, settings: dict[str, Any], ended: threading.Event) -> None:
    """Be a member of a group, and commit for the partitions that it has."""
    with Consumer(servers, group, enable_auto_commit=False, **settings) as consumer:
        consumer.subscribe([topic], Reporting(group))
        while not ended.is_set():
            due = time.monotonic() + MEMBER_COMMITS_SECONDS
            while time.monotonic() < due and not ended.is_set():
                consumer.poll(0.1)
            try:
                assigned = consumer.assignment
                # Higher than what another member has committed for the partition before.
                offset = int(1_000 * time.monotonic())
                consumer.commit({partition: OffsetAndMetadata(offset) for partition in assigned})
            except CoordinatorError as error:
                report("error", group, type(error).__name__)
            else:
                for partition in assigned:
                    report("acked", group, partition.partition, offset)


def main(servers: str, topic: str) -> None:
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with ExitStack() as stack:
        threads = [threading.Thread(target=commit_without_members, args=(servers, topic, ended))]
        for protocol in ("classic", "consumer"):
            settings = {"group_protocol": protocol}
            arguments = (servers, topic, f"{protocol}-members", settings, ended)
            threads += [threading.Thread(target=consume, args=arguments) for _ in range(MEMBERS)]
        for thread in threads:
            thread.start()
            stack.callback(thread.join)
        ended.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
