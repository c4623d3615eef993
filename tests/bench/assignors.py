"""The time that a leader takes to decode subscriptions, assign partitions and encode assignments.

It is measured for a new group, and for a group that one member has left since its last rebalance.
"""

import time
from collections.abc import Iterator
from random import Random
from statistics import median
from typing import NamedTuple

from coordinator_logic.assignors import GroupSubscription, TopicMetadata, assignor_by_name
from coordinator_logic.embedded_protocols import (
    Assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tests.bench.figures import LogicFigure
from tests.logic.assignors.groups import DrivenGroup

RACKS = ("a", "b", "c")
ROUNDS_TO_SETTLE = 9
REPETITIONS = 5
GOAL_MS = 1000.0


class GroupSize(NamedTuple):
    """The size of a group. ``partitions`` is the total of all topics."""

    topics: int
    partitions: int
    members: int


LARGE = GroupSize(topics=100, partitions=2_000, members=200)


def figures(size: GroupSize = LARGE) -> Iterator[LogicFigure]:
    """Measure both sticky assignors.

    Members subscribe to the same topics, to different halves of them, or to different halves in several racks.
    """
    name = f"{size.partitions:,} partitions for {size.members} members"
    for assignor_name in ("sticky", "cooperative-sticky"):
        for different, racks, kind in (
            (False, False, "equal subscriptions"),
            (True, False, "mixed subscriptions"),
            (True, True, "mixed subscriptions in racks"),
        ):
            group = _group(assignor_name, size, different=different, racks=racks)
            yield LogicFigure(f"{name}, {assignor_name}, {kind}, new", _milliseconds(group), "ms", GOAL_MS)
            group.rebalance_until_settled(ROUNDS_TO_SETTLE)
            group.leave("consumer-0")
            yield LogicFigure(f"{name}, {assignor_name}, {kind}, one left", _milliseconds(group), "ms", GOAL_MS)


def _group(assignor_name: str, size: GroupSize, *, different: bool, racks: bool) -> DrivenGroup:
    chance = Random(size.members)
    count = size.partitions // size.topics
    topics = {
        f"topic-{i}": TopicMetadata(count, [frozenset(chance.sample(RACKS, 2)) for _ in range(count)] if racks else ())
        for i in range(size.topics)
    }
    group = DrivenGroup(assignor_name, topics)
    for i in range(size.members):
        wanted = chance.sample(list(topics), size.topics // 2) if different else list(topics)
        group.join(f"consumer-{i}", wanted, chance.choice(RACKS) if racks else None)
    return group


def _milliseconds(group: DrivenGroup) -> float:
    encoded = [(member.member_id, encode_subscription(member.subscription)) for member in group.subscriptions()]
    assignor = assignor_by_name(group.assignor_name)
    took = []
    for _ in range(REPETITIONS):
        began = time.perf_counter()
        members = [GroupSubscription(member_id, None, decode_subscription(data)) for member_id, data in encoded]
        for partitions in assignor.assign(group.topics, members).values():
            encode_assignment(Assignment(partitions))
        took.append(time.perf_counter() - began)
    return median(took) * 1000
