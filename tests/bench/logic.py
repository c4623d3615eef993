"""The protocol alone, without Spark: the time of one step, with decoding and encoding of the snapshot.

Each figure is the median of many steps from the same snapshot, in one process. As in a worker, a step decodes the
snapshot, processes the request and encodes the new snapshot.
"""

import statistics
import time
from collections.abc import Iterator, Sequence

from coordinator_logic import snapshot
from coordinator_logic.config import CoordinatorConfig
from coordinator_logic.events import Place, ReplyAddress, Request
from coordinator_logic.messages import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    MemberAssignment,
    OffsetCommitRequest,
    PartitionToCommit,
    Protocol,
    RequestBody,
    SyncGroupRequest,
    TopicToCommit,
)
from coordinator_logic.step import step
from tests.bench.figures import LogicFigure

GROUP_ID = "group"
CONFIG = CoordinatorConfig(group_initial_rebalance_delay_ms=0)
NOW = 1_700_000_000_000
STEPS = 400
WARM_UP_STEPS = 100

PARTITIONS_OF_TOPIC, MANY_TOPICS = 100, 100

METADATA = bytes(40)
ASSIGNMENT = bytes(60)
"""About the size that a consumer of one or two topics sends."""


def figures() -> Iterator[LogicFigure]:
    """Measure a heartbeat in groups of 10 and 100 members, and a commit in groups with 100 and 10,000 offsets."""
    for members, goal in ((10, 60.0), (100, 300.0)):
        group, heartbeat = stable_group(members)
        yield LogicFigure(f"a heartbeat in a group of {members}, step", _microseconds(group, heartbeat), "us", goal)
    few, many = (_microseconds(*group_with_offsets(topics)) for topics in (1, MANY_TOPICS))
    yield LogicFigure("a commit in a group with 10,000 offsets, step", many / 1000, "ms", 0.5)
    yield LogicFigure("a commit in a group with 10,000 offsets, step, to one with 100", many / few, "x", 1.5)


def _microseconds(stored: bytes, body: RequestBody) -> float:
    sent = request(body, 1)
    times = []
    for _ in range(WARM_UP_STEPS + STEPS):
        began = time.perf_counter()
        result = step(GROUP_ID, snapshot.decode(stored), [sent], NOW + 1, started_at=0, config=CONFIG)
        assert result.group is not None
        snapshot.encode(result.group)
        times.append(time.perf_counter() - began)
    return statistics.median(times[WARM_UP_STEPS:]) * 1e6


def request(body: RequestBody, offset: int) -> Request:
    """A request at this offset of the log."""
    api = type(body).__name__.removesuffix("Request")
    version = {"JoinGroup": 3, "SyncGroup": 3, "Heartbeat": 4, "OffsetCommit": 8, "ConsumerGroupHeartbeat": 1}[api]
    address = ReplyAddress(api, version, f"00000000-0000-0000-0000-{offset:012}", 0, NOW)
    return Request(Place(NOW, 0, offset), address, "client", "/127.0.0.1", body)


def _stepped(stored: bytes | None, bodies: Sequence[RequestBody]) -> tuple[bytes, list[JoinGroupResponse]]:
    group = None if stored is None else snapshot.decode(stored)
    # Member ids are derived from places in the log, so each place may be used only once.
    first = 0 if group is None else 1_000 * group.sequence
    requests = [request(body, first + number) for number, body in enumerate(bodies)]
    result = step(GROUP_ID, group, requests, NOW, started_at=0, config=CONFIG)
    assert result.group is not None
    joined = [response.body for response in result.responses if isinstance(response.body, JoinGroupResponse)]
    return snapshot.encode(result.group), joined


def stable_group(
    members: int, metadata: bytes = METADATA, assignment: bytes = ASSIGNMENT
) -> tuple[bytes, HeartbeatRequest]:
    """The snapshot of a classic group in which all members have synced, and a heartbeat of one of them."""
    join = JoinGroupRequest(GROUP_ID, 45_000, "consumer", [Protocol("range", metadata)], 300_000)
    # Without an initial delay the first member forms a generation alone; its rejoin completes the next one.
    stored, (first,) = _stepped(None, [join])
    rejoin = JoinGroupRequest(GROUP_ID, 45_000, "consumer", join.protocols, 300_000, first.member_id)
    stored, joined = _stepped(stored, [*[join] * (members - 1), rejoin])
    assert len(joined) == members
    generation, leader = joined[0].generation_id, joined[0].leader
    assignments = [MemberAssignment(member.member_id, assignment) for member in joined]
    followers = [member.member_id for member in joined if member.member_id != leader]
    syncs = [SyncGroupRequest(GROUP_ID, generation, follower) for follower in followers]
    stored, _ = _stepped(stored, [*syncs, SyncGroupRequest(GROUP_ID, generation, leader, assignments=assignments)])
    assert snapshot.decode(stored).state.value == "Stable"
    return stored, HeartbeatRequest(GROUP_ID, generation, joined[-1].member_id)


def topics_to_commit(topics: int) -> list[TopicToCommit]:
    """A hundred partitions of each topic, with offsets that range over a hundred thousand."""
    partitions = range(PARTITIONS_OF_TOPIC)
    return [
        TopicToCommit(
            f"topic-{number}",
            [PartitionToCommit(index, 1_000_000 + 7_919 * (number + 1) * index % 100_003) for index in partitions],
        )
        for number in range(topics)
    ]


def group_with_offsets(topics: int) -> tuple[bytes, OffsetCommitRequest]:
    """The snapshot of a group with the offsets of so many topics, and a commit of one of them."""
    stored, _ = _stepped(None, [OffsetCommitRequest(GROUP_ID, topics_to_commit(topics))])
    return stored, OffsetCommitRequest(GROUP_ID, [TopicToCommit("topic-0", [PartitionToCommit(3, 2_000_000)])])
