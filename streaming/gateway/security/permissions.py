"""Probes a real broker for what the requesting client may do. No probe changes anything.

A broker authorizes a request before it validates anything else. So a request that cannot succeed still reveals whether
it is authorized, at any broker and with any authorizer, super users included.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from kio.schema.describe_acls.v2.request import DescribeAclsRequest
from kio.schema.describe_cluster.v0.request import DescribeClusterRequest
from kio.schema.describe_configs.v1.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v0.request import AlterConfigsResource, IncrementalAlterConfigsRequest
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.offset_commit.v8.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_delete.v0.request import OffsetDeleteRequest
from kio.schema.offset_fetch.v8.request import OffsetFetchRequest, OffsetFetchRequestGroup
from kio.schema.txn_offset_commit.v2.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kio.schema.types import GroupId, ProducerId, TopicName, TransactionalId
from kio.static.primitive import i8, i16, i32, i64

from streaming.gateway.wire.forwarding import Forward
from streaming.gateway.wire.values import text_of_topic_id, topic_id_of_text

PROBE_TOPIC = TopicName("group-coordinator-gateway-asks")
PROBE_GROUP = GroupId(PROBE_TOPIC)
INVALID_PARTITION = i32(-1)
"""No topic has it, so the broker refuses to commit to it even if the client is authorized."""

GROUP_CONFIG_RESOURCE = i8(32)
"""Kafka's number of groups among the resources that have a configuration."""

NO_SETTING = "none"

RESOURCE_GROUP, PATTERN_LITERAL, OPERATION_ANY, PERMISSION_ANY = i8(3), i8(3), i8(1), i8(1)
NO_PRODUCER = ProducerId(-1)


class Operation(IntEnum):
    """Kafka's codes of the operations on groups and topics that the group APIs require."""

    READ = 3
    WRITE = 4
    DELETE = 6
    DESCRIBE = 8
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11

    @property
    def bit(self) -> int:
        """The operation's bit in ``authorizedOperations`` (KIP-430)."""
        return 1 << self


class TopicAccess(NamedTuple):
    """What a client may do with a topic. ``partitions`` is 0 for a topic that does not exist or is hidden from it.

    ``topic_id``, in Kafka's text form, is empty for such a topic.
    """

    partitions: int
    may_describe: bool = True
    may_read: bool = True
    topic_id: str = ""


HIDDEN = TopicAccess(0, may_describe=False, may_read=False)
"""The access to a topic that the client may not even describe."""


class TopicsOfIds(NamedTuple):
    """The names of topics by id, and the ids of those that are hidden from the client. Other ids are unknown."""

    names: Mapping[str, str]
    hidden: Collection[str]


async def has_authorizer(forward: Forward) -> bool:
    """Whether the cluster has an authorizer."""
    answer: Any = await forward(
        DescribeAclsRequest(
            resource_type_filter=RESOURCE_GROUP,
            resource_name_filter=PROBE_TOPIC,
            pattern_type_filter=PATTERN_LITERAL,
            principal_filter=None,
            host_filter=None,
            operation=OPERATION_ANY,
            permission_type=PERMISSION_ANY,
        )
    )
    return answer.error_code is not ErrorCode.security_disabled


async def may_describe_cluster(forward: Forward) -> bool:
    """Whether the client may describe the cluster, and with it all groups."""
    answer: Any = await forward(DescribeClusterRequest(include_cluster_authorized_operations=True))
    return bool(answer.cluster_authorized_operations & Operation.DESCRIBE.bit)


async def describable_groups(forward: Forward, group_ids: Sequence[str]) -> list[bool]:
    """Whether the client may describe each of the groups."""
    groups = tuple(OffsetFetchRequestGroup(group_id=GroupId(group_id), topics=()) for group_id in group_ids)
    answer: Any = await forward(OffsetFetchRequest(groups=groups))
    refused = {group.group_id for group in answer.groups if _is_denied(group.error_code)}
    return [group_id not in refused for group_id in group_ids]


async def may_read_group(forward: Forward, group_id: str) -> bool:
    """Whether the client may join the group and commit."""
    partition = OffsetCommitRequestPartition(
        partition_index=INVALID_PARTITION, committed_offset=i64(0), committed_metadata=None
    )
    topic = OffsetCommitRequestTopic(name=PROBE_TOPIC, partitions=(partition,))
    answer: Any = await forward(OffsetCommitRequest(group_id=GroupId(group_id), member_id="", topics=(topic,)))
    return not _is_denied(answer.topics[0].partitions[0].error_code)


async def may_delete_group(forward: Forward, group_id: str) -> bool:
    """Whether the client may delete the group."""
    answer: Any = await forward(OffsetDeleteRequest(group_id=GroupId(group_id), topics=()))
    return not _is_denied(answer.error_code)


async def may_describe_group_configs(forward: Forward, group_id: str) -> bool:
    """Whether the client may describe the configuration of the group."""
    resource = DescribeConfigsResource(
        resource_type=GROUP_CONFIG_RESOURCE, resource_name=group_id, configuration_keys=(NO_SETTING,)
    )
    answer: Any = await forward(DescribeConfigsRequest(resources=(resource,)))
    return not _is_denied(answer.results[0].error_code)


async def may_alter_group_configs(forward: Forward, group_id: str) -> bool:
    """Whether the client may change the configuration of the group."""
    resource = AlterConfigsResource(resource_type=GROUP_CONFIG_RESOURCE, resource_name=group_id, configs=())
    answer: Any = await forward(IncrementalAlterConfigsRequest(resources=(resource,), validate_only=True))
    return not _is_denied(answer.responses[0].error_code)


async def may_write_transactionally(forward: Forward, transactional_id: str) -> bool:
    """Whether the client may use the transactional id. A broker checks that before the client's right to the group."""
    partition = TxnOffsetCommitRequestPartition(
        partition_index=INVALID_PARTITION, committed_offset=i64(0), committed_metadata=None
    )
    answer: Any = await forward(
        TxnOffsetCommitRequest(
            transactional_id=TransactionalId(transactional_id),
            group_id=PROBE_GROUP,
            producer_id=NO_PRODUCER,
            producer_epoch=i16(-1),
            topics=(TxnOffsetCommitRequestTopic(name=PROBE_TOPIC, partitions=(partition,)),),
        )
    )
    return answer.topics[0].partitions[0].error_code is not ErrorCode.transactional_id_authorization_failed


async def topic_access(forward: Forward, topics: Iterable[str]) -> Mapping[str, TopicAccess]:
    """Return what the client may do with each topic."""
    answer: Any = await forward(
        _metadata_request(MetadataRequestTopic(name=TopicName(topic), topic_id=None) for topic in topics)
    )
    return {topic.name: _access(topic) for topic in answer.topics}


async def topics_of_ids(forward: Forward, topic_ids: Iterable[str]) -> TopicsOfIds:
    """Return the names of the topics with these ids, and which of the ids the client may not describe."""
    answer: Any = await forward(
        _metadata_request(MetadataRequestTopic(name=None, topic_id=topic_id_of_text(each)) for each in topic_ids)
    )
    hidden = {
        text_of_topic_id(topic.topic_id)
        for topic in answer.topics
        if topic.error_code is ErrorCode.topic_authorization_failed
    }
    names = {text_of_topic_id(topic.topic_id): topic.name for topic in answer.topics if topic.name}
    return TopicsOfIds(names, hidden)


def _metadata_request(topics: Iterable[MetadataRequestTopic]) -> MetadataRequest:
    return MetadataRequest(
        topics=tuple(topics), allow_auto_topic_creation=False, include_topic_authorized_operations=True
    )


def _access(topic: Any) -> TopicAccess:
    if topic.error_code is ErrorCode.topic_authorization_failed:
        return HIDDEN
    if not topic.partitions:
        # Permissions on a topic that does not exist make no difference.
        return TopicAccess(0)
    may_read = bool(topic.topic_authorized_operations & Operation.READ.bit)
    return TopicAccess(len(topic.partitions), may_read=may_read, topic_id=text_of_topic_id(topic.topic_id))


def _is_denied(error: ErrorCode) -> bool:
    return error is ErrorCode.group_authorization_failed
