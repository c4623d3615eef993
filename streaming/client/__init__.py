"""The Python clients of the coordinator, which need confluent-kafka and no Spark.

The room may import ``streaming.contract`` and ``coordinator_logic``; the gateway, the job and the rooms above
import it.

* :class:`CoordinatorClient` offers Kafka's group APIs as method calls over the coordinator's topics.
* :class:`GroupMember` is a member of a group of any protocol type, or of a consumer group in which the coordinator
  assigns (KIP-848): it joins, sends heartbeats and rejoins.
* :class:`Consumer` subscribes, polls, commits and rebalances as Kafka's own consumer does.
"""

from coordinator_logic.embedded_protocols import TopicPartition
from streaming.client.answers import Answer
from streaming.client.consumer.consumer import Consumer
from streaming.client.consumer.types import ConsumerConfig, ConsumerRecord, OffsetAndMetadata, RebalanceListener
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
    UnreleasedInstanceId,
)
from streaming.client.membership.consumer_groups.types import PartitionCallbacks, TopicSubscription
from streaming.client.membership.group_member import GroupMember
from streaming.client.membership.membership_state import Generation
from streaming.client.membership.types import MemberCallbacks, MemberConfig, MemberEvent, MemberEventKind
from streaming.contract.identity import PrincipalKey, read_principal_key

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
    "PartitionCallbacks",
    "PrincipalKey",
    "RebalanceInProgress",
    "RebalanceListener",
    "RequestTimedOut",
    "TopicPartition",
    "TopicSubscription",
    "UnknownMemberId",
    "UnreleasedInstanceId",
    "read_principal_key",
]
