"""Clients of the coordinator: request and reply, a member of any kind of group, a consumer. No Spark needed.

* :class:`CoordinatorClient` makes Kafka's group APIs into calls over the coordinator's topics.
* :class:`GroupMember` joins a group of any protocol type and stays in it.
* :class:`Consumer` is used like Kafka's own consumer.
"""

from coordinator_logic.consumer_protocol import TopicPartition
from streaming.client.apis import Answer
from streaming.client.consumer import Consumer
from streaming.client.consumer_types import ConsumerConfig, ConsumerRecord, OffsetAndMetadata, RebalanceListener
from streaming.client.coordinator_client import CoordinatorClient
from streaming.client.errors import (
    CommitFailed,
    CoordinatorError,
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    MemberIdRequired,
    NonEmptyGroup,
    NoOffsetForPartition,
    RebalanceInProgress,
    RequestTimedOut,
    UnknownMemberId,
)
from streaming.client.group_member import GroupMember
from streaming.client.member_types import MemberCallbacks, MemberConfig, MemberEvent, MemberEventKind
from streaming.client.membership import Generation

__all__ = [
    "Answer",
    "CommitFailed",
    "Consumer",
    "ConsumerConfig",
    "ConsumerRecord",
    "CoordinatorClient",
    "CoordinatorError",
    "CoordinatorNotAvailable",
    "FencedInstanceId",
    "Generation",
    "GroupIdNotFound",
    "GroupMember",
    "IllegalGeneration",
    "MemberCallbacks",
    "MemberConfig",
    "MemberEvent",
    "MemberEventKind",
    "MemberIdRequired",
    "NoOffsetForPartition",
    "NonEmptyGroup",
    "OffsetAndMetadata",
    "RebalanceInProgress",
    "RebalanceListener",
    "RequestTimedOut",
    "TopicPartition",
    "UnknownMemberId",
]
