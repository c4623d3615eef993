"""The consumer group protocol alone (KIP-848), without Spark: a heartbeat beside a classic one, and an assignment.

Both heartbeats change nothing, and both groups have as many members and partitions. As in a worker, a step decodes the
snapshot, processes the request and encodes the new snapshot.
"""

import gc
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from coordinator_logic import snapshot
from coordinator_logic.assignors.server import SubscribedMember, assign_uniformly
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.embedded_protocols import (
    Assignment,
    Subscription,
    TopicPartition,
    encode_assignment,
    encode_subscription,
)
from coordinator_logic.group import Group
from coordinator_logic.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    TopicDescription,
    TopicIdPartitions,
)
from coordinator_logic.step import step
from tests.bench.figures import LogicFigure
from tests.bench.logic import GROUP_ID, NOW, request, stable_group

RATIO_GOAL = 1.3
ASSIGNMENT_GOAL_MS = 200.0
ROUNDS = 40
STEPS_PER_ROUND = 50
TOPIC = "orders"
CONFIG = CoordinatorConfig(group_initial_rebalance_delay_ms=0, group_consumer_assignment_interval_ms=0)


class GroupSize(NamedTuple):
    """The members of a group, and the partitions of its topic."""

    members: int
    partitions: int


SIZES = tuple(GroupSize(*size) for size in ((1, 6), (1, 900), (10, 60), (10, 900), (10, 5_000), (100, 600)))


class Compared(NamedTuple):
    """The time of a heartbeat that changes nothing, in microseconds, with either protocol."""

    classic: float
    consumer: float


def figures(sizes: Sequence[GroupSize] = SIZES, rounds: int = ROUNDS) -> Iterator[LogicFigure]:
    """Compare heartbeats in groups of several sizes, and measure the uniform assignor."""
    for size in sizes:
        compared = compare_heartbeats(size, rounds)
        name = f"a heartbeat in a consumer group, {size.members} members and {size.partitions} partitions, step"
        yield LogicFigure(f"{name}, to a classic one", compared.consumer / compared.classic, "x", RATIO_GOAL)
    for different in (False, True):
        kind = "different" if different else "equal"
        name = f"uniform, 2,000 partitions for 200 members, {kind} subscriptions"
        yield LogicFigure(name, assignment_milliseconds(different=different), "ms", ASSIGNMENT_GOAL_MS)


def compare_heartbeats(size: GroupSize, rounds: int) -> Compared:
    """Measure both heartbeats alternately, so that what slows the machine slows both."""
    classic, consumer = _classic_group(size), _consumer_group(size)
    times: tuple[list[float], list[float]] = ([], [])
    gc.disable()
    try:
        for _ in range(rounds):
            times[0].append(_microseconds(*classic))
            times[1].append(_microseconds(*consumer))
    finally:
        gc.enable()
    return Compared(*(statistics.median(measured) for measured in times))


def _microseconds(stored: bytes, body: HeartbeatRequest | ConsumerGroupHeartbeatRequest) -> float:
    sent = request(body, 1)
    began = time.perf_counter()
    for _ in range(STEPS_PER_ROUND):
        result = step(GROUP_ID, snapshot.decode(stored), [sent], NOW + 1, started_at=0, config=CONFIG)
        assert result.group is not None
        assert not result.journal
        snapshot.encode(result.group)
    return (time.perf_counter() - began) / STEPS_PER_ROUND * 1e6


def _classic_group(size: GroupSize) -> tuple[bytes, HeartbeatRequest]:
    per_member = size.partitions // size.members
    assignment = encode_assignment(Assignment([TopicPartition(TOPIC, number) for number in range(per_member)]))
    return stable_group(size.members, encode_subscription(Subscription([TOPIC])), assignment)


def _consumer_group(size: GroupSize) -> tuple[bytes, ConsumerGroupHeartbeatRequest]:
    group: Group | None = None
    epochs = {f"member-id-of-22-{number:06}": 0 for number in range(size.members)}
    owned: dict[str, list[TopicIdPartitions]] = {}
    topic = TopicDescription(TOPIC, f"{TOPIC:_<22}", size.partitions)
    for number in range(5):
        for index, (member_id, epoch) in enumerate(epochs.items()):
            beat = ConsumerGroupHeartbeatRequest(
                GROUP_ID,
                member_id,
                epoch,
                rebalance_timeout_ms=300_000,
                subscribed_topic_names=[TOPIC],
                topic_partitions=owned.get(member_id, []),
                topics=[topic],
            )
            place = number * size.members + index
            result = step(GROUP_ID, group, [request(beat, place)], NOW, started_at=0, config=CONFIG)
            group, (answered,) = result.group, result.responses
            assert isinstance(answered.body, ConsumerGroupHeartbeatResponse)
            assert answered.body.assignment is not None
            epochs[member_id] = answered.body.member_epoch
            owned[member_id] = answered.body.assignment.topic_partitions
    assert group is not None
    assert group.state.value == "Stable"
    assert sum(len(topic.partitions) for listed in owned.values() for topic in listed) == size.partitions
    member_id, epoch = max(epochs.items())
    return snapshot.encode(group), ConsumerGroupHeartbeatRequest(GROUP_ID, member_id, epoch)


def assignment_milliseconds(topics: int = 100, partitions: int = 20, members: int = 200, *, different: bool) -> float:
    """Measure uniform for a new group, and for a group that lost a member; return the longer time."""
    counts = {f"topic-{number:016}": partitions for number in range(topics)}
    names = list(counts)
    subscribed = [
        SubscribedMember(
            f"member-{number}",
            None,
            frozenset(names[number % topics :] if different else names),
            {},
        )
        for number in range(members)
    ]
    began = time.perf_counter()
    targets = assign_uniformly(subscribed, counts)
    first = time.perf_counter() - began
    left = [member._replace(previous=targets[member.member_id]) for member in subscribed[1:]]
    began = time.perf_counter()
    assign_uniformly(left, counts)
    return max(first, time.perf_counter() - began) * 1000
