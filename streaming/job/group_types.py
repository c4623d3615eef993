"""What differs in the job by a group's type. No other module of the job names a type, its states or its messages."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from coordinator_logic.apis import JOIN_GROUP, SYNC_GROUP
from coordinator_logic.groups.classic.records import StateChanged
from coordinator_logic.messages import ConsumerGroupDescribeResponse, DescribeGroupsResponse
from coordinator_logic.messages.consumer_groups import DescribedAssignment, DescribedConsumerGroup
from coordinator_logic.messages.groups import CLASSIC_TYPE, CONSUMER_TYPE
from coordinator_logic.states import State

DESCRIBED_GROUP, DESCRIBED_MEMBER = 140, 100
"""Bytes in DescribeGroups of a group and of a member without its texts: the names of the fields."""

DESCRIBED_CONSUMER_GROUP, DESCRIBED_CONSUMER, DESCRIBED_TOPIC, DESCRIBED_PARTITION = 160, 220, 40, 2
"""The same in ConsumerGroupDescribe, and of the topics and partitions of a member."""


class GroupType(NamedTuple):
    """A type of groups.

    states: the states of its groups in the directory.
    rebalances: the states of a group that rebalances, with how many generations have begun since the one that the
        rebalance ends.
    rebalance_ends: the records that may complete a rebalance, with whether one does.
    parked_apis: the APIs whose requests may be answered by a later batch than the one that reads them.
    least_sizes: by a message that may repeat its groups, a lower bound of its bytes as JSON.
    """

    states: tuple[State, ...]
    rebalances: Mapping[State, int]
    rebalance_ends: Mapping[type, Callable[[Any], bool]]
    parked_apis: frozenset[str]
    least_sizes: Mapping[type, Callable[[Any], int]]


def _enters_stable(record: StateChanged) -> bool:
    return record.to_state == State.STABLE.value


def _classic_description(response: DescribeGroupsResponse) -> int:
    return sum(DESCRIBED_GROUP + DESCRIBED_MEMBER * len(group.members) for group in response.groups)


def _consumer_description(response: ConsumerGroupDescribeResponse) -> int:
    described = [group for group in response.groups if group.members]
    # A group that the request repeats is one object.
    sizes = {id(group): _consumers(group) for group in {id(group): group for group in described}.values()}
    return DESCRIBED_CONSUMER_GROUP * len(response.groups) + sum(sizes[id(group)] for group in described)


def _consumers(group: DescribedConsumerGroup) -> int:
    return sum(
        DESCRIBED_CONSUMER
        + sum(map(len, member.subscribed_topic_names))
        + _assigned((member.assignment, member.target_assignment))
        for member in group.members
    )


def _assigned(assignments: Iterable[DescribedAssignment]) -> int:
    topics = (topic for assignment in assignments for topic in assignment.topic_partitions)
    return sum(
        DESCRIBED_TOPIC + len(topic.topic_name) + DESCRIBED_PARTITION * len(topic.partitions) for topic in topics
    )


GROUP_TYPES: Mapping[str, GroupType] = {
    CLASSIC_TYPE: GroupType(
        states=(State.EMPTY, State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE, State.STABLE),
        rebalances={State.PREPARING_REBALANCE: 0, State.COMPLETING_REBALANCE: 1},
        rebalance_ends={StateChanged: _enters_stable},
        parked_apis=frozenset({JOIN_GROUP.name, SYNC_GROUP.name}),
        least_sizes={DescribeGroupsResponse: _classic_description},
    ),
    CONSUMER_TYPE: GroupType(
        states=(State.EMPTY, State.ASSIGNING, State.RECONCILING, State.STABLE),
        rebalances={},
        rebalance_ends={},
        parked_apis=frozenset(),
        least_sizes={ConsumerGroupDescribeResponse: _consumer_description},
    ),
}
"""Every type, by its name in ListGroups."""
