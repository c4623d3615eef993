"""Builds requests of Kafka's protocol."""

from datetime import timedelta
from typing import Any

from kio.index import load_payload_module
from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.fetch.v11.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.types import GroupId, TopicName
from kio.static.constants import EntityType
from kio.static.primitive import i16, i32, i32Timedelta, i64
from kio.static.protocol import RequestPayload

from streaming.gateway.wire.api_keys import PRODUCE

SECOND = i32Timedelta.parse(timedelta(seconds=1))


def produce(
    version: int, *, acks: int, transactional_id: str | None = None, topic: str | None = None, records: bytes = b""
) -> RequestPayload:
    """A Produce request: without a topic, or with record batches for partition 0 of one."""
    module: Any = load_payload_module(PRODUCE, version, EntityType.request)
    data = []
    if topic is not None:
        partition = module.PartitionProduceData(index=i32(0), records=records)
        data.append(module.TopicProduceData(name=TopicName(topic), partition_data=(partition,)))
    request: RequestPayload = module.ProduceRequest(
        transactional_id=transactional_id, acks=i16(acks), timeout=SECOND, topic_data=tuple(data)
    )
    return request


def fetch(topic: str, max_bytes: int, offset: int = 0) -> FetchRequest:
    """A Fetch of partition 0 that returns at once."""
    partition = FetchPartition(partition=i32(0), fetch_offset=i64(offset), partition_max_bytes=i32(max_bytes))
    return FetchRequest(
        max_wait=i32Timedelta.parse(timedelta(0)),
        min_bytes=i32(0),
        max_bytes=i32(max_bytes),
        topics=(FetchTopic(topic=TopicName(topic), partitions=(partition,)),),
        forgotten_topics_data=(),
    )


def metadata(*topics: str) -> MetadataRequest:
    """Metadata for these topics."""
    return MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=TopicName(topic), topic_id=None) for topic in topics),
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )


def heartbeat(group_id: str = "group") -> HeartbeatRequest:
    """A Heartbeat of version 4."""
    return HeartbeatRequest(
        group_id=GroupId(group_id), generation_id=i32(1), member_id="member", group_instance_id=None
    )


def api_versions() -> ApiVersionsRequest:
    """ApiVersions, every client's first request."""
    return ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
