"""The time from a change of topics until members of consumer groups (KIP-848) are assigned as it demands.

    python -m tests.bench.gateway.topic_changes [--groups 10] [--smallest]

Broker, coordinator, gateway and librdkafka's members run on this machine, with their defaults. The groups have topics
of their own and begin at different times, so that their heartbeats do; one request changes the topics of all of them.
The same at the broker's own coordinator, at the same time. In both, a member learns of its assignment from a heartbeat,
every five seconds.
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from streaming.embedded.broker import EmbeddedBroker
from tests.support.coordinator_process import CoordinatorProcess
from tests.support.gateway_process import GatewayProcess
from tests.support.topics import unique
from tests.support.waiting import LIMIT_SECONDS

SETTLING_SECONDS = 8.0
HEARTBEAT_SECONDS = 5.0
PAUSE_SECONDS = 0.01


class Topics(NamedTuple):
    """The topics of a group: one that stays, and another one, which may not exist yet or no longer."""

    kept: str
    other: str

    def partitions(self, kept: int, other: int) -> set[tuple[str, int]]:
        """The first partitions of each, as many as given."""
        return {(self.kept, number) for number in range(kept)} | {(self.other, number) for number in range(other)}


class Change(NamedTuple):
    """What becomes of the topics of all groups; ``before`` and ``after`` are the partitions of both topics.

    ``subscription`` returns what a group's members subscribe to.
    """

    before: tuple[int, int]
    after: tuple[int, int]
    subscription: Callable[[Topics], list[str]]
    carry_out: Callable[[AdminClient, list[Topics]], Mapping[str, Future[Any]]]


def _create(admin: AdminClient, topics: list[Topics]) -> Mapping[str, Future[Any]]:
    return admin.create_topics([NewTopic(each.other, 2, 1) for each in topics])


CHANGES = {
    "a topic is deleted": Change(
        (2, 2), (2, 0), list, lambda admin, topics: admin.delete_topics([each.other for each in topics])
    ),
    "a topic gets partitions": Change(
        (2, 0),
        (4, 0),
        lambda topics: [topics.kept],
        lambda admin, topics: admin.create_partitions([NewPartitions(each.kept, 4) for each in topics]),
    ),
    "a named topic is created": Change((2, 0), (2, 2), list, _create),
    "a topic that a pattern matches is created": Change((2, 0), (2, 2), lambda topics: [f"^{topics.kept}.*"], _create),
}


class Group:
    """Members with a subscription. They join at once, and follow their assignments while they are polled."""

    def __init__(self, bootstrap_servers: str, subscription: list[str], members: int) -> None:
        config = {"bootstrap.servers": bootstrap_servers, "group.id": unique("follows"), "group.protocol": "consumer"}
        self._members = [Consumer(config) for _ in range(members)]
        for member in self._members:
            member.subscribe(subscription)

    def poll(self) -> None:
        """Let the members take the next step."""
        for member in self._members:
            member.poll(0)

    def owns(self, partitions: set[tuple[str, int]]) -> bool:
        """Whether the members own these partitions now, each of them once."""
        owned = [(each.topic, each.partition) for member in self._members for each in member.assignment()]
        return len(owned) == len(partitions) and set(owned) == partitions

    def close(self) -> None:
        """Leave the group."""
        for member in self._members:
            member.close()


def measure(bootstrap_servers: str, change: Change, groups: int, members: int, waits: float = 1.0) -> list[float]:
    """Make a change for that many groups of so many members; return the seconds that each group took.

    ``waits`` multiplies how long the groups settle, and how much later each one begins.
    """
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    topics = [Topics(name, f"{name}-other") for name in (unique("kept") for _ in range(groups))]
    new = [NewTopic(name, 2, 1) for each in topics for name in each[: 2 if change.before[1] else 1]]
    _await(admin.create_topics(new))
    with ExitStack() as stack:
        following: dict[Topics, Group] = {}
        for each in topics:
            following[each] = Group(bootstrap_servers, change.subscription(each), members)
            stack.callback(following[each].close)
            _poll(following.values(), waits * random.uniform(0, 2 * HEARTBEAT_SECONDS / groups))
        _follow(following, change.before)
        _poll(following.values(), waits * (SETTLING_SECONDS + random.uniform(0, HEARTBEAT_SECONDS)))
        begin = time.monotonic()
        _await(change.carry_out(admin, topics))
        return [at - begin for at in _follow(following, change.after)]


def _await(answers: Mapping[str, Future[Any]]) -> None:
    for answer in answers.values():
        answer.result(LIMIT_SECONDS)


def _poll(groups: Collection[Group], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for group in groups:
            group.poll()
        time.sleep(PAUSE_SECONDS)


def _follow(groups: Mapping[Topics, Group], counts: tuple[int, int]) -> list[float]:
    """Poll all members until all groups own their partitions; return when each group did. Raises TimeoutError."""
    followed: dict[Topics, float] = {}
    deadline = time.monotonic() + LIMIT_SECONDS
    while len(followed) < len(groups):
        _poll(groups.values(), PAUSE_SECONDS)
        for topics, group in groups.items():
            if group.owns(topics.partitions(*counts)):
                followed.setdefault(topics, time.monotonic())
        if time.monotonic() > deadline:
            raise TimeoutError(f"{len(groups) - len(followed)} groups do not own their partitions")
    return sorted(followed.values())


def main() -> None:
    """Measure both, and print the times."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--groups", type=int, default=10)
    parser.add_argument("--smallest", action="store_true", help="one change for one group of one member: a smoke test")
    arguments = parser.parse_args()
    changes, groups, sizes, waits = list(CHANGES.items()), arguments.groups, [1, 2], 1.0
    if arguments.smallest:
        changes, groups, sizes, waits = changes[:1], 1, [1], 0.0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="topic-changes-")))
        broker = stack.enter_context(EmbeddedBroker())
        coordinator = CoordinatorProcess(broker.bootstrap_servers, folder, defaults={})
        stack.callback(coordinator.kill)
        coordinator.start()
        gateway = GatewayProcess(broker.bootstrap_servers, coordinator.topics.prefix)
        stack.callback(gateway.kill)
        gateway.start()
        addresses = {"broker": broker.bootstrap_servers, "gateway": gateway.bootstrap_servers}
        pool = stack.enter_context(ThreadPoolExecutor(len(addresses)))
        for what, change in changes:
            for members in sizes:
                measuring = partial(measure, change=change, groups=groups, members=members, waits=waits)
                found = pool.map(measuring, addresses.values())
                for name, seconds in zip(addresses, found, strict=True):
                    each = " ".join(f"{second:.1f}" for second in seconds)
                    mean = statistics.mean(seconds)
                    print(f"{what}, {members} members, {name}: mean {mean:.1f} s of {each}", flush=True)


if __name__ == "__main__":
    main()
